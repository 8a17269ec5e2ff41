"""The process runtime: each node is a local process, forked from one parent that has torch loaded.

Where this process has the rights of root, each node's data sockets are in a network namespace of its own whose link the
kernel limits (emulation/namespaces.py), and the node is in a cgroup of its own with its caps (emulation/cgroups.py).
Elsewhere the transport models links, and CPU caps are held by pacing: a node stretches its own work. Which of these
acted is noted in the run (emulation/local.py).
"""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from edgebed.emulation.cgroups import Cgroups, remove_leftovers
from edgebed.emulation.local import local_of
from edgebed.emulation.namespaces import Namespaces
from edgebed.errors import InfrastructureError
from edgebed.observe.output import say
from edgebed.observe.resources import CgroupUsage
from edgebed.roles.events import NodeExited, NodeStarted
from edgebed.runtimes import Emulation
from edgebed.runtimes.last_words import last_line, last_words, out_of_memory
from edgebed.scenario.plan import NodePlan, Plan


class ProcessLauncher:
    """Starts nodes as processes and tells of their ends."""

    name = "process"
    host = "127.0.0.1"

    def __init__(self, plan: Plan, log_folder: Path, emulation: Emulation = "auto") -> None:
        """`emulation` says what is to hold links and caps. Raises InfrastructureError where that cannot be made."""
        self.plan = plan
        self.log_folder = log_folder
        self.local = local_of(plan, emulation)
        self.notes = tuple(self.local.notes())
        self.pids: dict[str, int] = {}
        self.pending = b""
        self.cgroups: Cgroups | None = None
        self.folders: dict[str, tuple[str, ...]] = {}
        """Of each node's cgroup."""
        self.namespaces: Namespaces | None = None
        self.stack = ExitStack()
        try:
            self._make_means()
            self._start_fork_server()
        except BaseException:
            self.stack.close()
            raise

    def _make_means(self) -> None:
        """Namespaces and cgroups, as far as the plan needs them."""
        remove_leftovers(say)
        if self.local.cgroups:
            self.cgroups = Cgroups()
            self.stack.callback(self.cgroups.remove)
            self.folders = {node.node: self.cgroups.make(node) for node in self.plan.nodes}
        if self.local.means.by_kernel:
            links = {node.node: node.link for node in self.plan.nodes if node.role != "evaluator"}
            self.namespaces = Namespaces(links, self.log_folder / "namespaces.log")
            self.stack.callback(self.namespaces.close)

    def _start_fork_server(self) -> None:
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        self.fork_server_log = self.log_folder / "fork-server.log"
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
        self.stack.callback(self._end_fork_server)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdin.fileno(), False)
        self.poll = select.epoll()
        self.stack.callback(self.poll.close)
        self.poll.register(self.process.stdout, select.EPOLLIN)
        if self.namespaces:
            self.poll.register(self.namespaces, select.EPOLLIN)

    def fileno(self) -> int:
        """A file descriptor that is readable when `happenings` has something to say."""
        return self.poll.fileno()

    def launch(self, node: str, controller_address: str) -> bool:
        """Start a node; False if the fork server takes no more commands now."""
        command = {
            "fork": node,
            "log": str(self.log_folder / f"{node}.log"),
            "surroundings": self._surroundings(self.plan.node(node), controller_address),
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
        assert self.process.stdout is not None
        readable = [descriptor for descriptor, _ in self.poll.poll(0)]
        if self.namespaces and self.namespaces.fileno() in readable:
            self.namespaces.check()
        if self.process.stdout.fileno() not in readable:
            return
        data = os.read(self.process.stdout.fileno(), 65536)
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
                yield NodeExited(said["exited"], self._how_it_ended(said["exited"], said["reason"]))

    def began(self, monotonic_s: float) -> None:
        """Training began: links change with time from here on."""
        if self.namespaces:
            self.namespaces.began(monotonic_s)

    def close(self) -> None:
        """Kill what is left, wait for it, and leave no namespace and no cgroup."""
        self.stack.close()

    def _surroundings(self, node: NodePlan, controller_address: str) -> dict[str, Any]:
        """What the node is told, as fields of `Surroundings`."""
        home = self.namespaces.homes.get(node.node) if self.namespaces else None
        return {
            "node": node.node,
            "controller_address": controller_address,
            "pace_cpus": self.cgroups is None,
            "cgroups": self.folders.get(node.node, ()),
            "mechanism": self.local.means.mechanism(node),
            "delay": self.local.means.delay(node),
        } | ({"namespace": home.namespace, "data_host": home.address} if home else {})

    def _how_it_ended(self, node: str, reason: str) -> str:
        usage = self.cgroups.account(node) if self.cgroups else CgroupUsage()
        if usage.oom_kills:
            known = {"limit": usage.memory_limit_bytes, "peak": usage.peak_bytes}
            return out_of_memory({name: size for name, size in known.items() if size is not None})
        return reason + last_line(self.log_folder / f"{node}.log")

    def _end_fork_server(self) -> None:
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
