"""The controller's end of the fork server: its process, the commands for it and what it says.

It is started with the first trial of a run and serves all of them: to load torch takes seconds. When it dies its nodes
die with it, and it can be started anew.
"""

import json
import os
import select
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from edgebed.core.errors import InfrastructureError
from edgebed.core.last_words import END_S, how_it_ended

PROGRAM = "edgebed.runtimes.processes.fork_server"


class ForkServer:
    """A fork server that runs. Commands never block."""

    def __init__(self, log: Path) -> None:
        """`log` gets its own output. InfrastructureError where it cannot be started."""
        self.log = log
        self.start()

    def start(self) -> None:
        """Start its process, in place of one that has ended if there was one. InfrastructureError if it cannot be."""
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        try:
            with self.log.open("ab") as output:
                self.process = subprocess.Popen(  # noqa: S603 # every word is ours
                    [sys.executable, "-m", PROGRAM],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=output,
                    env=environment,
                    bufsize=0,
                    process_group=0,  # the controller handles signals to its own group
                )
        except OSError as error:
            raise InfrastructureError(f"the fork server cannot be started: {error}") from error
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        os.set_blocking(self.stdin.fileno(), False)
        self.pending = b""
        self.commands: deque[bytes] = deque()
        """Commands that it has not taken yet."""

    @property
    def is_alive(self) -> bool:
        """Whether its process has not ended."""
        return self.process.poll() is None

    def fileno(self) -> int:
        """A file descriptor that is readable when `hear` has something."""
        return self.stdout.fileno()

    def order(self, command: dict[str, Any]) -> None:
        """Give it a command, as soon as it takes one."""
        self.commands.append(_line(command))
        self.flush()

    def try_order(self, command: dict[str, Any]) -> bool:
        """Give it a command; False if it takes no more now."""
        return not self.commands and self._write(_line(command))

    def flush(self) -> None:
        """Give it the commands that wait, as far as it takes them."""
        while self.commands and self._write(self.commands[0]):
            self.commands.popleft()

    def hear(self) -> list[dict[str, Any]]:
        """Return what it has said since. InfrastructureError where it has ended."""
        data = os.read(self.stdout.fileno(), 65536)
        if not data:
            raise InfrastructureError(f"the fork server ended: {how_it_ended(self.process, self.log)}")
        *lines, self.pending = (self.pending + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def end_nodes(self, pids: Sequence[int]) -> None:
        """Kill these nodes, which are all that are left of a trial, and forget what was said of it.

        A fork server that does not do it in time, or is gone, is ended with them; one that is frozen never does it.
        """
        try:
            self.commands.clear()
            self.order({"end": True})
            while select.select([self.stdout], [], [], END_S)[0]:
                if {"ended": True} in self.hear():
                    return
        except InfrastructureError:
            pass
        self.close(pids)

    def close(self, pids: Sequence[int] = ()) -> None:
        """End it, and these nodes of its, which a frozen fork server could not; none of them runs afterwards."""
        self.stdin.close()
        for pid in pids:
            _end_and_wait(pid)
        try:
            self.process.wait(timeout=END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.stdout.close()

    def _write(self, line: bytes) -> bool:
        """Write a line, if it is taken; one that has ended takes none, which `hear` tells."""
        try:
            return self.stdin.write(line) is not None
        except OSError:
            return False


def _end_and_wait(pid: int) -> None:
    """Kill a process that is no child of this one, and wait for its end."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, signal.SIGKILL)
        poll = select.poll()
        poll.register(process, select.POLLIN)
        poll.poll(END_S * 1000)
    finally:
        os.close(process)


def _line(command: dict[str, Any]) -> bytes:
    line = json.dumps(command).encode() + b"\n"
    assert len(line) <= select.PIPE_BUF, "a pipe takes such a line as a whole or not at all"
    return line
