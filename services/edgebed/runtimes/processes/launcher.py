"""The process runtime: each node is a local process, forked from one parent that has torch loaded.

Where this process has the rights of root, each node's data sockets are in a network namespace of its own whose link the
kernel limits (emulation/namespaces.py), and the node is in a cgroup of its own with its caps (emulation/cgroups.py).
Elsewhere the transport models links, and CPU caps are held by pacing: a node stretches its own work. Which of these
acted is noted in the run (emulation/local.py).

What faults do to a node is done where it can be: the fork server, its parent, sends it signals, the process that holds
the namespaces changes its link, its CPU cap is changed here. Where the kernel holds no link or no cap, the node does it
itself, on a message of the controller. A node that is launched again has the namespace and the cgroup of the one
before.

Where the policy restarts nodes, both of these processes may die: the one that died is started anew, and the nodes that
died with it, or lost their namespaces, are reported as ended.
"""

import select
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from edgebed.core.actions import ACTIONS
from edgebed.core.console import say
from edgebed.core.errors import InfrastructureError
from edgebed.core.last_words import last_line, out_of_memory
from edgebed.core.plan import TrainingNode, TrainingPlan
from edgebed.core.planned.fault import Injection
from edgebed.core.runtimes import Emulation
from edgebed.emulation.caps import starting_cpus
from edgebed.emulation.cgroups import Cgroups, remove_leftovers
from edgebed.emulation.local import local_mechanisms
from edgebed.emulation.namespaces import Namespaces, SwitchEndedError
from edgebed.emulation.resources import CgroupUsage
from edgebed.roles.events import Injected, NodeExited, NodeStarted
from edgebed.runtimes.processes.forking import ForkServer
from edgebed.runtimes.processes.local_launcher import LocalLauncher

ENDED = "its process has ended"
STARTS_MAX = 3
"""Times that a fork server is started anew without having forked a node before it is given up."""


class ProcessLauncher(LocalLauncher):
    """Starts nodes as processes and reports their ends."""

    plan: TrainingPlan
    name = "process"
    host = "127.0.0.1"

    def __init__(
        self,
        plan: TrainingPlan,
        log_folder: Path,
        forker: ForkServer,
        emulation: Emulation = "auto",
        server_log: Path | None = None,
    ) -> None:
        """`emulation` says what is to hold links and caps. Raises InfrastructureError where that cannot be made.

        `forker` has no nodes, and has none any more when the launcher is closed. `server_log` is the folder of the
        server's log; None: it keeps none.
        """
        super().__init__(plan)
        self.forker = forker
        self.log_folder = log_folder
        self.server_log = server_log
        self.local = local_mechanisms(plan, emulation)
        self.notes = tuple(self.local.notes())
        self.launching: dict[str, dict[str, Any]] = {}
        """Commands for nodes that the fork server has not forked yet."""
        self.signalling: set[int] = set()
        """Numbers of actions whose signals it has not sent yet."""
        self.starts = STARTS_MAX
        """Times that the fork server was started anew since it forked a node; one that never has is given up."""
        self.homeless: dict[str, str] = {}
        """Nodes that are ending since their namespaces are gone, and why these are."""
        self.log_begins: dict[str, int] = {}
        """Where in each node's log the output of its present incarnation begins."""
        self.folders: dict[str, tuple[str, ...]] = {}
        """Folders of each node's cgroup."""
        self.starting: dict[str, float | None] = {}
        """Nodes that are not built yet, and the CPU cap of each from then on, in cores; None: no cap."""
        try:
            self._make_mechanisms()
            self._listen()
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

    def _listen(self) -> None:
        self.stack.callback(lambda: self.forker.end_nodes(tuple(self.pids.values())))
        self.listen()
        self.poll.register(self.forker, select.EPOLLIN)

    def launch(self, node: str, controller_address: str, secret: str) -> bool:
        """Start a node; False if its last incarnation is not over, or the fork server takes no more commands now."""
        if node in self.pids:
            return False
        log = self.log_folder / f"{node}.log"
        self.log_begins[node] = log.stat().st_size if log.exists() else 0
        if self.cgroups:
            self.cgroups.begin_incarnation(node)
            self.starting[node] = self.plan.node(node).cpus
            self.cgroups.cap_cpus(node, starting_cpus(self.starting[node]))
        environment = self._environment(self.plan.node(node), controller_address, secret)
        command = {"fork": node, "log": str(log), "environment": environment}
        if not self.forker.try_order(command):
            return False
        self.launching[node] = command
        return True

    def inject(self, number: int, injection: Injection) -> None:
        """Have an action but `launch` done to a node; `Injected(number)` is among the happenings. Never blocks."""
        node, traits = self.plan.node(injection.node), ACTIONS[injection.action]
        if injection.change and (problem := self.local.mechanisms.why_not(node, injection.change)):
            self.tell(Injected(number, problem))
        elif traits.signal is not None:
            self._signal(number, node.node, traits.signal)
        elif traits.by == "link" and self.namespaces:
            self.namespaces.inject(number, injection)
        elif traits.by == "cap":
            self.tell(Injected(number, self._cap(node, injection.cpus)))
        elif injection.action == "memory" and not (self.cgroups and node.memory_bytes):
            self.tell(Injected(number, f"the kernel holds no memory cap of {node.node}"))
        else:
            self.tell(Injected(number))  # the node does it

    def cap(self, node: str) -> None:
        """Hold a node's CPU cap from now on: it is built."""
        if self.cgroups and node in self.starting:
            self.cgroups.cap_cpus(node, self.starting.pop(node))

    def poll_events(self) -> Iterator[NodeStarted | NodeExited | Injected]:
        """Events of nodes since the last call; called when `fileno` is readable."""
        readable = self.readable()
        while self.injected:
            yield self.injected.popleft()
        if self.namespaces and self.namespaces.fileno() in readable:
            yield from self._hear_namespaces(self.namespaces)
        if self.forker.fileno() in readable:
            yield from self._hear_fork_server()

    def _hear_namespaces(self, namespaces: Namespaces) -> Iterator[Injected]:
        try:
            for answer in namespaces.answers():
                assert answer.done is not None
                yield Injected(answer.done, answer.problem)
        except SwitchEndedError as error:
            if self.plan.on_failure != "restart":
                raise
            for node in namespaces.homes:
                if node in self.pids or node in self.launching:
                    self.homeless[node] = str(error)
                if node in self.pids:
                    self._end_homeless(node)
            namespaces.mend()
            self.poll.register(namespaces, select.EPOLLIN)

    def _end_homeless(self, node: str) -> None:
        """End a node whose namespace is gone: nothing that it sends arrives."""
        self.forker.order({"signal": signal.SIGKILL, "pid": self.pids[node], "number": None})

    def _hear_fork_server(self) -> Iterator[NodeStarted | NodeExited | Injected]:
        self.forker.flush()
        try:
            heard = self.forker.hear()
        except InfrastructureError as error:
            if self.plan.on_failure != "restart" or self.starts >= STARTS_MAX:
                raise
            yield from self._mend_fork_server(str(error))
            return
        for said in heard:
            if "forked" in said:
                yield self._forked(said["forked"], said["pid"])
            elif "signalled" in said:
                if (number := said["signalled"]) is not None:
                    self.signalling.discard(number)
                    yield Injected(number, no_op=ENDED if said["gone"] else "")
            elif self.pids.get(said["exited"]) == said["pid"]:
                del self.pids[said["exited"]]
                yield NodeExited(said["exited"], self._how_it_ended(said["exited"], said["reason"]))

    def _forked(self, node: str, pid: int) -> NodeStarted:
        self.starts = 0
        self.pids[node] = pid
        self.launching.pop(node, None)
        if node in self.homeless:
            self._end_homeless(node)
        return NodeStarted(node)

    def _mend_fork_server(self, reason: str) -> Iterator[NodeExited | Injected]:
        """Start the fork server anew, which forks what the last one had still to fork; its nodes have died with it."""
        nodes, self.pids = self.pids, {}
        signalling, self.signalling = self.signalling, set()
        self.starts += 1
        self.forker.close(tuple(nodes.values()))
        self.forker.start()
        self.poll.register(self.forker, select.EPOLLIN)
        for command in self.launching.values():
            self.forker.order(command)
        for number in sorted(signalling):
            yield Injected(number, no_op=ENDED)
        for node in nodes:
            yield NodeExited(node, self._how_it_ended(node, reason))

    def _signal(self, number: int, node: str, signum: signal.Signals) -> None:
        if node in self.pids:
            self.signalling.add(number)
            self.forker.order({"signal": signum, "pid": self.pids[node], "number": number})
        else:
            self.tell(Injected(number, no_op=ENDED))

    def _cap(self, node: TrainingNode, cpus: float | None) -> str:
        """Cap a node's CPU from now on, or once it is built; None: as planned. Return why not, empty if it can be."""
        if self.cgroups is None:
            return "the kernel does not hold the server's CPU cap" if node.role == "server" else ""
        asked = node.cpus if cpus is None else cpus
        if node.node in self.starting:
            self.starting[node.node] = asked
            return ""
        try:
            self.cgroups.cap_cpus(node.node, asked)
        except InfrastructureError as error:
            return str(error)
        return ""

    def _environment(self, node: TrainingNode, controller_address: str, secret: str) -> dict[str, Any]:
        """Fields of `NodeEnvironment` for a node."""
        home = self.namespaces.homes.get(node.node) if self.namespaces else None
        return {
            "node": node.node,
            "controller_address": controller_address,
            "secret": secret,
            "security": self.plan.security,
            "pace_cpus": self.cgroups is None,
            "cgroups": self.folders.get(node.node, ()),
            "mechanism": self.local.mechanisms.mechanism(node),
            "delay": self.local.mechanisms.delay(node),
            "log_folder": str(self.server_log.absolute()) if self.server_log and node.role == "server" else "",
        } | ({"namespace": home.namespace, "data_host": home.address} if home else {})

    def _how_it_ended(self, node: str, reason: str) -> str:
        if node in self.homeless:
            return self.homeless.pop(node)
        usage = self.cgroups.account(node) if self.cgroups else CgroupUsage()
        if usage.oom_kills:
            known = {"limit": usage.memory_limit_bytes, "peak": usage.peak_bytes}
            return out_of_memory({name: size for name, size in known.items() if size is not None})
        return reason + last_line(self.log_folder / f"{node}.log", self.log_begins[node])
