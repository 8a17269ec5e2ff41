"""The process runtime: each node is a local process, forked from one parent that has torch loaded.

Where this process has the rights of root, each node's data sockets are in a network namespace of its own whose link the
kernel limits (emulation/namespaces.py), and the node is in a cgroup of its own with its caps (emulation/cgroups.py).
Elsewhere the transport models links, and CPU caps are held by pacing: a node stretches its own work. Which of these
acted is noted in the run (emulation/local.py).

What faults do to a node is done where it can be: the fork server, its parent, sends it signals, the process that holds
the namespaces changes its link, its CPU cap is changed here. Where the kernel holds no link or no cap, the node does it
itself, on a message of the controller. A node that is launched again has the namespace and the cgroup of the one
before.
"""

import json
import os
import select
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from edgebed.core.console import say
from edgebed.core.errors import InfrastructureError
from edgebed.core.last_words import last_line, last_words, out_of_memory
from edgebed.core.plan import LINK_ACTIONS, Injection, NodePlan, Plan
from edgebed.core.runtimes import Emulation
from edgebed.emulation.cgroups import Cgroups, remove_leftovers
from edgebed.emulation.local import local_mechanisms
from edgebed.emulation.namespaces import Namespaces
from edgebed.emulation.resources import CgroupUsage
from edgebed.roles.events import Injected, NodeExited, NodeStarted

SIGNALS = {"kill": signal.SIGKILL, "freeze": signal.SIGSTOP, "thaw": signal.SIGCONT}


class ProcessLauncher:
    """Starts nodes as processes and reports their ends."""

    name = "process"
    host = "127.0.0.1"

    def __init__(
        self, plan: Plan, log_folder: Path, emulation: Emulation = "auto", server_log: Path | None = None
    ) -> None:
        """`emulation` says what is to hold links and caps, `server_log` is the folder of the server's log.

        Raises InfrastructureError where that cannot be made.
        """
        self.plan = plan
        self.log_folder = log_folder
        self.server_log = server_log
        self.local = local_mechanisms(plan, emulation)
        self.notes = tuple(self.local.notes())
        self.pids: dict[str, int] = {}
        self.log_begins: dict[str, int] = {}
        """Where in each node's log the output of its present incarnation begins."""
        self.pending = b""
        self.commands: deque[bytes] = deque()
        """Commands that the fork server has not taken yet."""
        self.injected: deque[Injected] = deque()
        """Finished actions that are not reported yet."""
        self.cgroups: Cgroups | None = None
        self.folders: dict[str, tuple[str, ...]] = {}
        """Folders of each node's cgroup."""
        self.namespaces: Namespaces | None = None
        self.stack = ExitStack()
        try:
            self._make_mechanisms()
            self._start_fork_server()
        except BaseException:
            self.stack.close()
            raise

    def _make_mechanisms(self) -> None:
        """Make namespaces and cgroups, as far as the plan needs them."""
        remove_leftovers(say)
        if self.local.cgroups:
            self.cgroups = Cgroups()
            self.stack.callback(self.cgroups.remove)
            self.folders = {node.node: self.cgroups.make(node) for node in self.plan.nodes}
        if self.local.mechanisms.by_kernel:
            links = {node.node: node.link for node in self.plan.nodes if node.role != "evaluator"}
            changeable = [node.node for node in self.plan.nodes if node.changeable]
            self.namespaces = Namespaces(links, self.log_folder / "namespaces.log", changeable)
            self.stack.callback(self.namespaces.close)

    def _start_fork_server(self) -> None:
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        self.fork_server_log = self.log_folder / "fork-server.log"
        try:
            with self.fork_server_log.open("ab") as log:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", "edgebed.runtimes.processes.fork_server"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=environment,
                    bufsize=0,
                    process_group=0,  # the controller handles signals to its own group
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
        self.bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.stack.callback(os.close, self.bell)
        self.poll.register(self.bell, select.EPOLLIN)
        if self.namespaces:
            self.poll.register(self.namespaces, select.EPOLLIN)

    def fileno(self) -> int:
        """A file descriptor that is readable when `poll_events` has events."""
        return self.poll.fileno()

    def launch(self, node: str, controller_address: str) -> bool:
        """Start a node; False if its last incarnation is not over, or the fork server takes no more commands now."""
        if node in self.pids or self.commands:
            return False
        log = self.log_folder / f"{node}.log"
        self.log_begins[node] = log.stat().st_size if log.exists() else 0
        if self.cgroups:
            self.cgroups.begin_incarnation(node)
        environment = self._environment(self.plan.node(node), controller_address)
        return self._write(_line({"fork": node, "log": str(log), "environment": environment}))

    def inject(self, number: int, injection: Injection) -> None:
        """Have an action but `launch` done to a node; `Injected(number)` is among the happenings. Never blocks."""
        node = self.plan.node(injection.node)
        if injection.change and (problem := self.local.mechanisms.why_not(node, injection.change)):
            self._tell(Injected(number, problem))
        elif injection.action in SIGNALS:
            self._signal(number, node.node, SIGNALS[injection.action])
        elif injection.action in LINK_ACTIONS and self.namespaces:
            self.namespaces.inject(number, injection)
        elif injection.action == "cpus":
            self._tell(Injected(number, self._cap(node, injection.cpus)))
        elif injection.action == "memory" and not (self.cgroups and node.memory_bytes):
            self._tell(Injected(number, f"the kernel holds no memory cap of {node.node}"))
        else:
            self._tell(Injected(number))  # the node does it

    def poll_events(self) -> Iterator[NodeStarted | NodeExited | Injected]:
        """Events of nodes since the last call; called when `fileno` is readable."""
        assert self.process.stdout is not None
        readable = [descriptor for descriptor, _ in self.poll.poll(0)]
        if self.bell in readable:
            os.eventfd_read(self.bell)
        while self.injected:
            yield self.injected.popleft()
        if self.namespaces and self.namespaces.fileno() in readable:
            for answer in self.namespaces.answers():
                assert answer.done is not None
                yield Injected(answer.done, answer.problem)
        if self.process.stdout.fileno() in readable:
            yield from self._hear_fork_server()

    def _hear_fork_server(self) -> Iterator[NodeStarted | NodeExited | Injected]:
        assert self.process.stdout is not None
        self._flush()
        data = os.read(self.process.stdout.fileno(), 65536)
        if not data:
            raise InfrastructureError(f"the fork server ended: {self._last_words()}")
        *lines, self.pending = (self.pending + data).split(b"\n")
        for line in lines:
            said = json.loads(line)
            if "forked" in said:
                self.pids[said["forked"]] = said["pid"]
                yield NodeStarted(said["forked"])
            elif "signalled" in said:
                yield Injected(said["signalled"], "its process has ended" if said["gone"] else "")
            elif self.pids.get(said["exited"]) == said["pid"]:
                del self.pids[said["exited"]]
                yield NodeExited(said["exited"], self._how_it_ended(said["exited"], said["reason"]))

    def began(self, monotonic_s: float) -> None:
        """Note that training began: links change with time from here on."""
        if self.namespaces:
            self.namespaces.began(monotonic_s)

    def close(self) -> None:
        """Kill what is left, wait for it, and leave no namespace and no cgroup."""
        self.stack.close()

    def _signal(self, number: int, node: str, signum: signal.Signals) -> None:
        if node in self.pids:
            self.commands.append(_line({"signal": signum, "pid": self.pids[node], "number": number}))
            self._flush()
        else:
            self._tell(Injected(number, f"{node} has no process"))

    def _cap(self, node: NodePlan, cpus: float | None) -> str:
        """Cap a node's CPU from now on, None: as planned; return why that cannot be done, empty if it can."""
        if self.cgroups is None:
            return "the kernel does not hold the server's CPU cap" if node.role == "server" else ""
        try:
            self.cgroups.cap_cpus(node.node, node.cpus if cpus is None else cpus)
        except InfrastructureError as error:
            return str(error)
        return ""

    def _tell(self, injected: Injected) -> None:
        self.injected.append(injected)
        os.eventfd_write(self.bell, 1)

    def _flush(self) -> None:
        while self.commands and self._write(self.commands[0]):
            self.commands.popleft()

    def _write(self, line: bytes) -> bool:
        """Give the fork server a command; False if it takes no more now."""
        assert self.process.stdin is not None
        try:
            return self.process.stdin.write(line) is not None
        except OSError as error:
            raise InfrastructureError(f"the fork server is gone: {self._last_words()}") from error

    def _environment(self, node: NodePlan, controller_address: str) -> dict[str, Any]:
        """Fields of `NodeEnvironment` for a node."""
        home = self.namespaces.homes.get(node.node) if self.namespaces else None
        return {
            "node": node.node,
            "controller_address": controller_address,
            "pace_cpus": self.cgroups is None,
            "cgroups": self.folders.get(node.node, ()),
            "mechanism": self.local.mechanisms.mechanism(node),
            "delay": self.local.mechanisms.delay(node),
            "log_folder": str(self.server_log.absolute()) if self.server_log and node.role == "server" else "",
        } | ({"namespace": home.namespace, "data_host": home.address} if home else {})

    def _how_it_ended(self, node: str, reason: str) -> str:
        usage = self.cgroups.account(node) if self.cgroups else CgroupUsage()
        if usage.oom_kills:
            known = {"limit": usage.memory_limit_bytes, "peak": usage.peak_bytes}
            return out_of_memory({name: size for name, size in known.items() if size is not None})
        return reason + last_line(self.log_folder / f"{node}.log", self.log_begins[node])

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


def _line(command: dict[str, Any]) -> bytes:
    line = json.dumps(command).encode() + b"\n"
    assert len(line) <= select.PIPE_BUF, "a pipe takes such a line as a whole or not at all"
    return line
