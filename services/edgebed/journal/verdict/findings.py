"""What the rules of the verdict share: what they look at, what they find, and their words."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from edgebed.core import records
from edgebed.core.actions import ACTIONS
from edgebed.core.framing import MTU
from edgebed.core.plan import NodePlan, Plan, Waiting, WorkerPlan
from edgebed.core.quantities import first_text
from edgebed.journal.accounts.seen_pushes import WorkerPushes
from edgebed.journal.missed_faults import Missed
from edgebed.journal.programs.series import ProgramSeries
from edgebed.journal.series_faults import TimedFault
from edgebed.journal.verdict.hosts import HostConditions
from edgebed.journal.verdict.measured import DirectionConditions, NodeConditions
from edgebed.journal.verdict.presence import Freeze
from edgebed.journal.verdict.sightings import Sighting

BUSY_MIN = 0.9
"""Share of all cores' time from which on what is late is the host's fault."""
LOAD_MIN = 2.0
"""Threads per core that run or wait, on the mean, from which on what is late is the host's fault, however busy the
cores were: whoever is woken up waits for another's slice of 3 to 4 ms, most of what a message may take to be handled.
Idle cores at other times do not help: the others came in bursts."""
STARVED_MAX = 0.1
"""Share of the training that nodes of a class may lose on the mean, since they had no core: as large a share of what
they were promised."""
STARVED_WORST_MAX = 0.2
"""Share of the training that the worst node may lose so: twice as much as the mean, so that one unlucky node does not
condemn a run."""
SERVER_BUSY_MIN = 0.8
"""Share of a core, or of its cap, from which on the server is busy: then messages wait for it, and what it waits for
holds everybody up."""
FOREIGN_MIN = 0.25
"""Share of all cores' time from which on what does not belong to the trial is worth stopping."""
NAMED_MAX = 2
"""Nodes that a finding names."""


class Finding(NamedTuple):
    """What a rule has found."""

    text: str
    is_fault: bool = True
    """Whether something that was asked for did not hold; else the finding is only worth knowing."""
    advice: str = ""
    """What to do about it, where several findings may have the same: it is shown once."""


class Judged(NamedTuple):
    """A node: what was asked of its conditions, and its row."""

    plan: NodePlan
    row: NodeConditions

    @property
    def name(self) -> str:
        """The node's name."""
        return self.plan.node

    def way(self, direction: str) -> DirectionConditions:
        """The node's link in one direction, `up` or `down`."""
        return self.row.uplink if direction == "up" else self.row.downlink

    def ways(self, direction: str) -> "tuple[DirectionConditions, ...]":
        """The node's link in one direction by receivers of its messages, if they are reported; else all together."""
        return tuple(way for way in self.row.pairs if way.direction == direction) or (self.way(direction),)


@dataclass(frozen=True)
class Observed:
    """The facts about a trial that rules look at."""

    plan: Plan
    everybody: tuple[Judged, ...]
    """All nodes, in the plan's order."""
    hosts: Mapping[str, HostConditions] = field(default_factory=dict)
    """The observed machines, by name; one that is alone has none."""
    frozen: Mapping[str, tuple[Freeze, ...]] = field(default_factory=dict)
    """When each node was frozen as asked."""
    went_on: Mapping[str, int] = field(default_factory=dict)
    """Updates of each node that was frozen, of the server's all, that came while it was, but for one under way."""
    passed: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """What came to the second node from the first while the way between the two was cut, in words."""
    faults: tuple[TimedFault, ...] = ()
    """What was done to nodes on purpose."""
    survivors: tuple[TimedFault, ...] = ()
    """Kills after which the node was there as before."""
    missed: tuple[Missed, ...] = ()
    """Faults that were to be done, and were not, since training had ended."""
    skipped: str = ""
    """Evaluations that were due, and were not made, in words; empty if all were."""
    lost: tuple[records.Node, ...] = ()
    """Nodes that died during training, or never came, unasked."""
    left: tuple[tuple[float, records.Left], ...] = ()
    """Workers that left during training as far as the server could tell, as (seconds since it began, record)."""
    pushes: Mapping[str, WorkerPushes] = field(default_factory=dict)
    """Pushes that the server saw of each worker."""
    was_restored: bool = False
    """Whether the server began anew, from its log or from a checkpoint."""
    traffic: records.Traffic | None = None
    """Bytes that passed the server's data socket, and its interface; None where nobody counted."""
    trained_s: float = 0.0
    """Duration of training, in seconds."""
    updates: int = 0
    """Updates that were applied."""
    alone_s: float = 0.0
    """Seconds of training without a controller."""
    alone_updates: int = 0
    """Updates that were applied in that time."""
    seen: Mapping[str, tuple[Sighting, ...]] = field(default_factory=dict)
    """What was seen of nodes from outside, by node and incarnation."""
    programs: ProgramSeries = field(default_factory=ProgramSeries)
    """What programs of the user's told and did."""
    carried: Mapping[str, int] = field(default_factory=dict)
    """Bytes that passed each node's link in both directions, where its interface is its own."""
    remade_updates: int = 0
    """Updates that a resume from a checkpoint lost, and that were made again."""
    was_stopped: bool = False
    """Whether the trial did not run to its end: somebody interrupted it, or it failed."""

    def frozen_s(self, name: str, *, reported: bool = False) -> float:
        """Seconds of training for which a node was frozen as asked; `told`: of which it lived to tell."""
        return sum(each.span.length_s for each in self.frozen.get(name, ()) if each.is_reported or not reported)

    def was_done(self, node: Judged, *actions: str) -> bool:
        """Whether one of these was done to a node; a cap changed while it was away is its next incarnation's."""
        return any(
            (done.was_done or (ACTIONS[done.record.action].by == "cap" and done.record.no_op))
            and node.name in (done.record.target, done.record.peer)
            and done.record.action in actions
            for done in self.faults
        )

    def end(self, name: str) -> Judged:
        """The node at the other end of a link: the one of that name, else the server."""
        return next((each for each in self.nodes if each.name == name), self.server)

    def is_lossy(self, node: Judged, to: str = "") -> bool:
        """Whether its messages with another node, else with the server, meet a link that loses packets, as asked."""
        return any(end.plan.link.lossy for end in (node, self.end(to)))

    @cached_property
    def nodes(self) -> tuple[Judged, ...]:
        """All nodes but the evaluator: watching is no condition of the experiment."""
        return tuple(node for node in self.everybody if node.plan.role != "evaluator")

    @property
    def server(self) -> Judged:
        """The parameter server."""
        return next(node for node in self.nodes if node.plan.role == "server")

    @property
    def workers(self) -> list[Judged]:
        """All workers."""
        return [node for node in self.nodes if node.plan.role == "worker"]

    def classes(self) -> Iterator[list[Judged]]:
        """The nodes of each device class; the server is its own."""
        found: dict[str, list[Judged]] = {}
        for node in self.nodes:
            found.setdefault(node.plan.device_class, []).append(node)
        return iter(found.values())

    def classes_by_host(self) -> Iterator[tuple[str, list[Judged], list[Judged]]]:
        """A host's nodes of a device class, for each class and host: (host, these nodes, all of the class)."""
        for nodes in self.classes():
            for host in dict.fromkeys(node.row.host for node in nodes):
                yield host, self.on(host, nodes), nodes

    @staticmethod
    def on(host: str, nodes: Iterable[Judged]) -> list[Judged]:
        """Return the nodes, of those given, that are on a host."""
        return [node for node in nodes if node.row.host == host]

    @cached_property
    def mtu(self) -> int:
        """The MTU of the data network, as far as a node told it."""
        return min((node.row.mtu for node in self.nodes), default=MTU)

    def is_overloaded(self, host: str) -> bool:
        """Whether nodes on a host waited for cores, whatever they were promised."""
        load = self.hosts.get(host)
        is_busy = load is not None and (load.busy >= BUSY_MIN or load.load >= LOAD_MIN)
        return is_busy or any((node.row.starved or 0.0) > STARVED_WORST_MAX for node in self.on(host, self.nodes))

    def busy_text(self, host: str) -> str:
        """How busy a host was, as words that follow what it explains."""
        load = self.hosts.get(host)
        if load is None:
            return ""
        own = f", of it {share_text(self._own_busy(load))} with this trial's nodes" if self._has_company(load) else ""
        waiting = f"; {load.load:.1f} threads a core ran or waited" if load.load >= LOAD_MIN else ""
        return f" (cores busy {share_text(load.busy)}{own}{waiting})"

    def advice(self, host: str) -> str:
        """What to do where a host's cores did not suffice."""
        load = self.hosts.get(host)
        caps = sum(node.plan.cpus or 0.0 for node in self.on(host, self.nodes))
        lower = "lower the caps, " if caps else ""
        stop = f"stop what else runs on {'it' if host else 'this host'}, " if load and self._has_company(load) else ""
        whose = f"{named(host)}: " if host else ""
        return f"{whose}{stop}{lower}ask for fewer nodes, or take a host with more cores"

    def _own_busy(self, load: HostConditions) -> float:
        """The share of a host's cores' time that the trial's own nodes used."""
        cpus = sum(node.row.cpus_measured or 0.0 for node in self.on(load.host, self.everybody))
        return cpus / load.cores if load.cores else load.busy

    def _has_company(self, load: HostConditions) -> bool:
        return load.busy - self._own_busy(load) >= FOREIGN_MIN


Rule = Callable[[Observed], Iterator[Finding]]


def can_be_spoiled(node: NodePlan) -> bool:
    """Whether the plan asks for anything that takes time, which a busy host stretches."""
    pauses = isinstance(node, WorkerPlan) and node.waiting != Waiting()
    return node.link.shaped or node.cpus is not None or node.compute_speed != 1.0 or node.core is not None or pauses


def takes_time(plan: Plan) -> bool:
    """Whether the plan asks for anything of any node that a busy host stretches."""
    return any(can_be_spoiled(node) for node in plan.nodes)


def is_promised(node: NodePlan) -> bool:
    """Whether the plan promises a node a core, or a part of one, or a speed."""
    if node.role == "server":
        return node.cpus is not None
    return node.cpus is not None or node.compute_speed < 1.0 or node.core is not None


def named(host: str) -> str:
    """What a host is called where a cause begins: `host` where it is alone."""
    return f"host {host}" if host else "host"


def the(host: str) -> str:
    """What a host is called in a sentence."""
    return named(host) if host else "the host"


def share_text(share: float) -> str:
    """A share in whole per cent, small ones with a digit more."""
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.1f} %"


def seconds_text(value_s: float) -> str:
    """Seconds as text, short times in milliseconds."""
    return f"{1000 * value_s:,.0f} ms" if value_s < 1.0 else f"{value_s:.1f} s"


def of_class(found: Sequence[Judged], nodes: Sequence[Judged]) -> str:
    """The nodes that a finding is about: one by its name, several as so many of their class."""
    if len(found) == 1:
        return found[0].name
    share = f"{len(found)} of {len(nodes)} nodes" if len(found) < len(nodes) else f"all {len(nodes)} nodes"
    return f"{share} of {nodes[0].plan.device_class}".replace("all 2 nodes", "both nodes")


def names_text(nodes: Iterable[Judged]) -> str:
    """The names of the first few nodes, and how many more."""
    return first_text([node.name for node in nodes], NAMED_MAX)
