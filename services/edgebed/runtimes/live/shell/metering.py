"""What a node counts of its messages, and measures of itself once a second."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from edgebed.core import records
from edgebed.core.plan import TrainingNode
from edgebed.core.planned.fault import Injection
from edgebed.emulation.resources import InterfaceBytes
from edgebed.emulation.tcp import IncomingCount
from edgebed.roles.events import MessageReceived, Send
from edgebed.runtimes import tracing
from edgebed.runtimes.live.clocks.following import ClockMeter, FollowedClock
from edgebed.runtimes.live.meters import TransfersMeter
from edgebed.runtimes.live.shell.lifetime import Lifetime
from edgebed.runtimes.live.shell.reporter import Reporter
from edgebed.runtimes.live.shell.times import Times
from edgebed.runtimes.traffic import TrafficCount


class Meter(Protocol):
    """Measures something once a second."""

    def read(self, now: float, began_s: float | None) -> Iterable[records.Record]:
        """Records to be journaled; `now` in seconds of the trial, `began_s` when training began, None before that."""
        ...

    def inject(self, time_s: float, injection: Injection) -> None:
        """Note a fault of the node's link, so long after training began."""
        ...


@dataclass
class Metering:
    """A node's counts and meters; what they say is journaled."""

    plan: TrainingNode
    reporter: Reporter
    life: Lifetime
    times: Times
    interface: InterfaceBytes | None = None
    """Server: the counters of the interface that carries the data network."""
    incoming: IncomingCount | None = None
    """Server: counters of what its data connections received."""
    traffic: TrafficCount = field(default_factory=TrafficCount)
    meters: list[Meter] = field(default_factory=list)
    transfers: TransfersMeter | None = None
    """Measures each message that came; None where no link is asked for."""

    def tell_clock(self) -> None:
        """Have it journaled how the node's clock differs from the controller's, at once and whenever that is news."""
        if not isinstance(self.life.clock, FollowedClock):
            return
        meter = ClockMeter(self.life.clock)
        self.meters.append(meter)
        for record in meter.read(self.life.now(), None):
            self.reporter.journal(record)

    def sent(self, effect: Send, target: str, left_s: tuple[float, float], sent_bytes: int, *, paced: bool) -> None:
        """Count a message for `target`; `paced`: the shell itself held it back.

        `left_s`: when its first byte left, and when all of it was due to be given to the kernel.
        """
        self.traffic.sent(effect.message, sent_bytes)
        if self.transfers and sent_bytes:
            self.transfers.sent(self.life.now(), left_s, target, sent_bytes, paced=paced)
        self.reporter.metrics.count_bytes("egress", tracing.kind_of(effect.message), sent_bytes)
        self.trace_sent(effect, sent_bytes)

    def received(self, event: MessageReceived, source: str) -> None:
        """Count a message that has come from `source`, which may hand over what others made."""
        now = self.life.now()
        self.traffic.received(source, event.message, event.bytes)
        if self.transfers:
            self.transfers.received(now, event.message, event.bytes, source, self.times.busy_until_s)
        self.reporter.metrics.count_bytes("ingress", tracing.kind_of(event.message), event.bytes)
        self.times.received(event.message, now)
        self.trace_received(event)

    def trace_sent(self, effect: Send, sent_bytes: int) -> None:
        """Journal a message that left, where that is asked for."""
        if self.plan.trace and sent_bytes:
            self.reporter.journal(tracing.sent(effect.to, effect.message, sent_bytes))

    def trace_received(self, event: MessageReceived) -> None:
        """Journal a message that came, where that is asked for."""
        if self.plan.trace:
            self.reporter.journal(tracing.received(event.message.sender, event.message, event.bytes))

    def inject(self, injection: Injection) -> None:
        """Note a fault of a link."""
        for meter in self.meters:
            meter.inject(self.life.trained_s, injection)

    def observe(self) -> None:
        """Journal what has to be polled: time spent, bytes that crossed the interface, messages that were delayed."""
        self.reporter.release()
        for meter in self.meters:
            for record in meter.read(self.life.now(), self.life.began_s):
                self.reporter.journal(record)
        if self.plan.counts_traffic:
            by_kind = self.plan.counts_messages
            for record in self.traffic.account(self.interface, self.incoming, by_kind=by_kind):
                self.reporter.journal(record)
        if self.plan.role == "worker" and self.times.steps:
            self.reporter.journal(self.times.record())
