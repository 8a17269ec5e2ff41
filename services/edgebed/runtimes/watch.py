"""What the user sees of a running trial, taken from its records; the same for every runtime."""

import time
from collections.abc import Callable, Collection, Sequence

from edgebed.observe.progress import Status
from edgebed.roles import records
from edgebed.roles.controller import Controller, Phase
from edgebed.roles.members import PRESENT

SHOW_S = 0.25
RATE_WINDOW_S = 3.0
TROUBLES_MAX = 40
NAMED_MAX = 6
"""So many nodes to which the same happened at once are named."""


class Watch:
    """Follows the records of a trial and shows its status a few times a second of real time."""

    def __init__(
        self, heart: Controller, show: Callable[[Status], None], observe: Callable[[records.Record], None]
    ) -> None:
        """`show` gets the status, `observe` every record."""
        self.heart = heart
        self.show = show
        self.observe = observe
        self.updates = 0
        self.ingress_bytes = 0
        self.accuracy: float | None = None
        self.loss: float | None = None
        self.interrupted = False
        self.troubles: list[str] = []
        self.unresponsive: set[str] = set()
        self.doing: dict[tuple[str, str], list[str]] = {}
        """(what, outcome): the nodes, not told yet; the same often happens to several at once."""
        self.deaths: dict[str, str] = {}
        """Not told yet: a death that was asked for goes without saying."""
        self.killed: set[str] = set()
        self.frozen: set[str] = set()
        self.counts: list[tuple[float, int]] = []
        self.next_s = 0.0

    def follow(self, record: records.Record) -> None:
        """Take from a record what the user watches."""
        self.observe(record)
        if isinstance(record, records.Update):
            self.updates = record.version
            self.ingress_bytes += record.bytes
        elif isinstance(record, records.Step):
            self.updates = record.made or self.updates
        elif isinstance(record, records.Resumed):
            self.updates = record.step
            if record.reason:
                self._tell(f"all shards go on from step {record.step:,}: {record.reason}")
        elif isinstance(record, records.Restored):
            self.updates = record.version
            goes_on = f"the server goes on from update {record.version:,}"
            self._tell(goes_on if record.version else "the server begins anew: there is no checkpoint yet")
        elif isinstance(record, records.Node):
            self._node(record)
        elif isinstance(record, records.Fault):
            self._fault(record)
        elif isinstance(record, records.Evaluated):
            self.accuracy, self.loss = record.accuracy, record.loss

    def _fault(self, record: records.Fault) -> None:
        """What was done to a node on purpose, or could not be; what took no doing is no news."""
        if record.moot:
            return
        if not record.problem:
            _note(record.action, record.target, ("kill", "memory"), ("launch",), self.killed)
            _note(record.action, record.target, ("freeze",), ("thaw", "kill", "launch"), self.frozen)
            if record.target in self.killed:
                self.deaths.pop(record.target, None)
        what = f"{record.action} {record.change}".rstrip()
        outcome = f": could not be done: {record.problem}" if record.problem else ""
        self.doing.setdefault((f"{what} ({record.name})", outcome), []).append(record.target)

    def _node(self, record: records.Node) -> None:
        """What has become of a node; one that is no longer there, or is again."""
        name = record.name
        was_unresponsive = name in self.unresponsive
        self.unresponsive.discard(name)
        text = f"{name} {record.state}: {record.reason}".removesuffix(": ")
        if record.state == "unresponsive" and name not in self.frozen:
            self.unresponsive.add(name)
            self._tell(text)
        elif record.state == "died" and name not in self.killed:
            self.deaths[name] = text
        elif record.state == "missing":
            self._tell(text)
        elif record.state == "running" and was_unresponsive:
            self._tell(f"{name} is back")

    def _tell(self, text: str = "") -> None:
        """What a user should know at once, while it is not too much, after what has been gathered."""
        texts = [*self.deaths.values()]
        texts += [f"{_nodes_text(nodes)}: {what}{outcome}" for (what, outcome), nodes in self.doing.items()]
        self.deaths.clear()
        self.doing.clear()
        for each in (*texts, text) if text else texts:
            if len(self.troubles) < TROUBLES_MAX:
                self.troubles.append(each)
            elif len(self.troubles) == TROUBLES_MAX:
                self.troubles.append("what else happens to nodes is in the report")

    def tick(self, now: float) -> None:
        """Show the status if it is time to; `now` is the trial's."""
        wall_s = time.monotonic()
        if wall_s < self.next_s:
            return
        self.next_s = wall_s + SHOW_S
        self._tell()
        members = self.heart.members.values()
        status = Status(
            trial=self.heart.plan.trial,
            state="waiting for Prometheus' last scrape" if self.heart.is_lingering else self.heart.phase.value,
            updates=self.updates,
            updates_per_s=self._rate(wall_s),
            accuracy=self.accuracy,
            loss=self.loss,
            ingress_bytes=None if self.heart.plan.workers()[0].shard else self.ingress_bytes,
            nodes_up=sum(member.state in PRESENT and member.state != "unresponsive" for member in members),
            nodes_expected=len(members),
            elapsed_s=max(0.0, now - self.heart.started_at_s),
            stop_updates=self.heart.plan.stop_updates,
            interrupted=self.interrupted,
            health={name: member.health for name, member in self.heart.members.items()},
            troubles=tuple(self.troubles),
        )
        self.show(status)

    def _rate(self, wall_s: float) -> float:
        """Updates per second of real time over the last few seconds."""
        count = self.updates
        if self.heart.phase is Phase.LAUNCHED:
            self.counts = []
            return 0.0
        self.counts = [(t, c) for t, c in self.counts if t >= wall_s - RATE_WINDOW_S] + [(wall_s, count)]
        first_s, first = self.counts[0]
        return max(0.0, (count - first) / (wall_s - first_s)) if wall_s > first_s else 0.0


def _note(action: str, node: str, begin: Collection[str], end: Collection[str], nodes: set[str]) -> None:
    """The nodes that are in a state that some actions begin and others end."""
    if action in begin:
        nodes.add(node)
    elif action in end:
        nodes.discard(node)


def _nodes_text(nodes: Sequence[str]) -> str:
    more = len(nodes) - NAMED_MAX
    return ", ".join(nodes) if more <= 1 else f"{', '.join(nodes[:NAMED_MAX])} and {more:,} more"
