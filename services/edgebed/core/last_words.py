"""How a node's process ended, in words, and the end of what it printed."""

import os
import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

END_BYTES = 64 * 1024  # a log may be long
LINE_SHOWN = 500  # characters of a line that any code may have printed
END_S = 10.0
"""Time that a process has to end which has closed its output, or was asked to end."""
SIGNALLED = 128  # a shell's exit code for a child that a signal ended is this and the signal's number
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def describe_status(status: int) -> str:
    """Describe a wait status in words."""
    if os.WIFSIGNALED(status):
        return f"killed by {signal_name(os.WTERMSIG(status))}"
    return f"exited with code {os.WEXITSTATUS(status)}"


def signal_name(number: int) -> str:
    """The name of a signal, such as SIGKILL; of one that has none its number, in words."""
    known = number in signal.valid_signals() and number < signal.SIGRTMIN
    return signal.Signals(number).name if known else f"signal {number}"


def describe_exit_code(code: int) -> str:
    """Describe the exit code of a container or shell in words."""
    return describe_status(code - SIGNALLED if is_by_signal(code) else code << 8)


def is_by_signal(code: int) -> bool:
    """Whether the exit code of a container or shell is that of a child that a signal ended."""
    return SIGNALLED < code <= SIGNALLED + max(signal.valid_signals())


def how_it_ended(process: "subprocess.Popen[bytes]", log: Path) -> str:
    """Wait for the end of a child, kill it where it does not come, and describe it with the last line of its log."""
    try:
        code = process.wait(timeout=END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
    how = describe_status(-code if code < 0 else code << 8)
    return f"{how}; {last_words(log) or f'see {log}'}"


def out_of_memory(memory: Mapping[str, int]) -> str:
    """Describe an OOM kill, with the cgroup's `limit` and `peak` in bytes as far as they are known."""
    limit = f"its limit of {_mebibytes(memory['limit'])}" if "limit" in memory else "the machine's limit"
    peak = f", peak {_mebibytes(memory['peak'])}" if "peak" in memory else ""
    return f"out of memory: killed by the kernel at {limit}{peak}"


def end_of(log: Path, begins_at: int = 0) -> str:
    """Return the last lines of a log, empty if none; what lies before `begins_at` is an earlier incarnation's."""
    try:
        with log.open("rb") as file:
            file.seek(max(begins_at, log.stat().st_size - END_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def last_words(log: Path, begins_at: int = 0) -> str:
    """Return the last line of a log that is not blank."""
    return last_of(end_of(log, begins_at))


def last_of(text: str) -> str:
    """Return the last line that is not blank, without a terminal's colours."""
    lines = [line for line in _COLOURS.sub("", text).splitlines() if line.strip()]
    return lines[-1][:LINE_SHOWN] if lines else ""


def last_line(log: Path, begins_at: int = 0) -> str:
    """Return the last line of a log as an addition to how its node ended; empty if there is none."""
    return addition(last_words(log, begins_at))


def addition(line: str) -> str:
    """Return a last line as an addition to how its node ended."""
    return f"; last line: {line!r}" if line else ""


def _mebibytes(size: int) -> str:
    """Format a size in MiB, as caps are written."""
    return f"{size / 2**20:.0f}MiB"
