"""The fork server of a run, forked from a process that has torch loaded, in place of a program that loads it anew.

A run spends two seconds of CPU time on its fork server's imports, which is more than the rest of most runs in tests. To
know a process by its name, ask `called`.
"""

import contextlib
import os
import select
import signal
import subprocess
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import psutil

from edgebed.runtimes.processes import fork_server, forking

FORK_SERVER = "fork_server"
"""The name of a process that is one."""


def called(process: psutil.Process) -> str:
    """The name of a process, and the words that it was started with."""
    return " ".join((process.name(), *process.cmdline()))


class Forked:
    """A fork server that is a child of this process, with what there is of `subprocess.Popen`."""

    def __init__(self, words: Sequence[str], *, stderr: BinaryIO, env: Mapping[str, str], **_: Any) -> None:
        """Fork it; no thread but this one goes on in it."""
        self.args = words
        self.returncode: int | None = None
        theirs, self.stdin, self.stdout = piped()
        self.pid = os.fork()
        if self.pid == 0:
            os.environ.update(env)
            become(FORK_SERVER, *theirs, stderr.fileno())
            be_fork_server()
        for each in theirs:
            os.close(each)
        self.ended = os.pidfd_open(self.pid)

    def poll(self) -> int | None:
        """Return its exit code, negative for a signal; None: it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return its exit code; subprocess.TimeoutExpired where it takes longer."""
        if self.returncode is None:
            if not select.select([self.ended], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            os.close(self.ended)
        return self.returncode

    def kill(self) -> None:
        """Kill it, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def piped() -> tuple[tuple[int, int], BinaryIO, BinaryIO]:
    """The ends of two pipes: its standard input and output, and what writes to the one and reads from the other."""
    their_input, ours = os.pipe2(os.O_CLOEXEC)
    heard, their_output = os.pipe2(os.O_CLOEXEC)
    return (their_input, their_output), os.fdopen(ours, "wb", 0), os.fdopen(heard, "rb", 0)  # type: ignore[return-value]


def started_by(program: Any) -> types.SimpleNamespace:
    """What `forking` is to have for `subprocess`, so that it starts this."""
    return types.SimpleNamespace(Popen=program, PIPE=subprocess.PIPE, TimeoutExpired=subprocess.TimeoutExpired)


def fork_servers_from_here() -> None:
    """Let the runs of this process fork their fork servers from it."""
    forking.subprocess = started_by(Forked)  # type: ignore[attr-defined]


def become(name: str, *standard: int) -> None:
    """Be a process of that name, in a group of its own, with these descriptors alone, and signals as at first."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.setpgid(0, 0)
    for target, source in enumerate(standard):
        os.dup2(source, target)
    os.closerange(3, max(int(each.name) for each in Path("/proc/self/fd").iterdir()) + 1)
    Path("/proc/self/comm").write_text(name)


def be_fork_server() -> NoReturn:
    """Serve until standard input closes, and end."""
    code = 1
    try:
        code = fork_server.main()
    finally:
        os._exit(code)
