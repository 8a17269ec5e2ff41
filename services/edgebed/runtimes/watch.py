"""What the user sees of a running trial, taken from its records; the same for every runtime."""

import time
from collections.abc import Callable

from edgebed.observe.progress import Status
from edgebed.roles import records
from edgebed.roles.controller import Controller, Phase
from edgebed.roles.members import PRESENT

SHOW_S = 0.25
RATE_WINDOW_S = 3.0
TROUBLES_MAX = 40


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
        self.counts: list[tuple[float, int]] = []
        self.next_s = 0.0

    def follow(self, record: records.Record) -> None:
        """Take from a record what the user watches."""
        self.observe(record)
        if isinstance(record, records.Update):
            self.updates = record.version
            self.ingress_bytes += record.bytes
        elif isinstance(record, records.Restored):
            self.updates = record.version
            self._tell(f"the server goes on from update {record.version:,}")
        elif isinstance(record, records.Node):
            self._node(record)
        elif isinstance(record, records.Fault):
            change = f" {record.change}" if record.change else ""
            outcome = f": could not be done: {record.problem}" if record.problem else ""
            if not record.moot:
                self._tell(f"{record.target}: {record.action}{change} ({record.name}){outcome}")
        elif isinstance(record, records.Evaluated):
            self.accuracy, self.loss = record.accuracy, record.loss

    def _node(self, record: records.Node) -> None:
        """What has become of a node; one that is no longer there, or is again."""
        was_unresponsive = record.name in self.unresponsive
        self.unresponsive.discard(record.name)
        if record.state == "unresponsive":
            self.unresponsive.add(record.name)
        if record.state in ("died", "missing", "unresponsive"):
            self._tell(f"{record.name} {record.state}: {record.reason}".removesuffix(": "))
        elif record.state == "running" and was_unresponsive:
            self._tell(f"{record.name} is back")

    def _tell(self, text: str) -> None:
        """What a user should know at once, while it is not too much."""
        if len(self.troubles) < TROUBLES_MAX:
            self.troubles.append(text)
        elif len(self.troubles) == TROUBLES_MAX:
            self.troubles.append("what else happens to nodes is in the report")

    def tick(self, now: float) -> None:
        """Show the status if it is time to; `now` is the trial's."""
        wall_s = time.monotonic()
        if wall_s < self.next_s:
            return
        self.next_s = wall_s + SHOW_S
        members = self.heart.members.values()
        status = Status(
            trial=self.heart.plan.trial,
            state="waiting for Prometheus' last scrape" if self.heart.is_lingering else self.heart.phase.value,
            updates=self.updates,
            updates_per_s=self._rate(wall_s),
            accuracy=self.accuracy,
            loss=self.loss,
            ingress_bytes=self.ingress_bytes,
            nodes_up=sum(member.state in PRESENT and member.state != "unresponsive" for member in members),
            nodes_expected=len(members),
            elapsed_s=max(0.0, now - self.heart.started_at_s),
            stop_updates=self.heart.plan.stop_updates,
            interrupted=self.interrupted,
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
