"""How a node's process ended, in words."""

import os
import signal
from pathlib import Path


def describe_status(status: int) -> str:
    """What a wait status means."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        known = number in signal.valid_signals() and number < signal.SIGRTMIN
        return f"killed by {signal.Signals(number).name}" if known else f"killed by signal {number}"
    return f"exited with code {os.WEXITSTATUS(status)}"


def last_line(log: Path) -> str:
    """The last line of a log, as an addition to how its node ended; nothing if there is none."""
    text = last_words(log)
    return f"; last line: {text!r}" if text else ""


def last_words(log: Path) -> str:
    """The last line of a log that is not blank."""
    try:
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    except OSError:
        return ""
    return lines[-1] if lines else ""
