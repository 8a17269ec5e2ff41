"""The process runtime: each node is a local process, forked from one parent that has torch loaded.

CPU caps are held by pacing (a node stretches its own work); memory caps are not held here. Both are noted in the run.
"""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from edgebed.errors import InfrastructureError
from edgebed.roles.events import NodeExited, NodeStarted
from edgebed.runtimes.last_words import last_line, last_words
from edgebed.scenario.plan import Plan


class ProcessLauncher:
    """Starts nodes as processes and tells of their ends."""

    name = "process"
    host = "127.0.0.1"
    notes: tuple[str, ...] = (
        "CPU caps below one core are held by pacing: workers and the evaluator stretch their own work.",
        "The server's CPU cap is not held.",
        "Memory caps are not held.",
        "Links are as fast as the machine.",
    )

    def __init__(self, plan: Plan, log_folder: Path) -> None:
        self.plan = plan
        self.log_folder = log_folder
        self.pids: dict[str, int] = {}
        self.pending = b""
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        self.fork_server_log = log_folder / "fork-server.log"
        try:
            with self.fork_server_log.open("ab") as log:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", "edgebed.runtimes.fork_server"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=environment,
                    bufsize=0,
                    process_group=0,  # what is sent to the controller's group is the controller's to answer
                )
        except OSError as error:
            raise InfrastructureError(f"the fork server cannot be started: {error}") from error
        assert self.process.stdin is not None
        os.set_blocking(self.process.stdin.fileno(), False)

    def fileno(self) -> int:
        """A file descriptor that is readable when `happenings` has something to say."""
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def launch(self, node: str, controller_address: str) -> bool:
        """Start a node; False if the fork server takes no more commands now."""
        command = {
            "fork": node,
            "controller": controller_address,
            "log": str(self.log_folder / f"{node}.log"),
            "pace_cpus": True,
        }
        assert self.process.stdin is not None
        line = json.dumps(command).encode() + b"\n"
        assert len(line) <= select.PIPE_BUF, "a pipe takes such a line as a whole or not at all"
        try:
            return self.process.stdin.write(line) is not None
        except OSError as error:
            raise InfrastructureError(f"the fork server is gone: {self._last_words()}") from error

    def happenings(self) -> Iterator[NodeStarted | NodeExited]:
        """Which nodes started and which ended, and how, since the last call; called when `fileno` is readable."""
        data = os.read(self.fileno(), 65536)
        if not data:
            raise InfrastructureError(f"the fork server ended: {self._last_words()}")
        *lines, self.pending = (self.pending + data).split(b"\n")
        for line in lines:
            said = json.loads(line)
            if "forked" in said:
                self.pids[said["forked"]] = said["pid"]
                yield NodeStarted(said["forked"])
            elif self.pids.get(said["exited"]) == said["pid"]:
                del self.pids[said["exited"]]
                yield NodeExited(said["exited"], said["reason"] + last_line(self.log_folder / f"{said['exited']}.log"))

    def began(self, monotonic_s: float) -> None:
        """Training began: links change with time from here on."""

    def close(self) -> None:
        """Kill what is left and wait for it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        for pid in self.pids.values():
            try:
                os.kill(pid, signal.SIGKILL)  # a frozen fork server could not
            except ProcessLookupError:
                continue
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def _last_words(self) -> str:
        return last_words(self.fork_server_log) or f"see {self.fork_server_log}"
