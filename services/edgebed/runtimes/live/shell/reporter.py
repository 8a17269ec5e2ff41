"""A node's records on their way to the journal: limited, counted in its metrics, and sent in batches."""

from edgebed.core import records
from edgebed.metrics.exporter import NodeMetrics
from edgebed.runtimes.live.endpoint import DealerEndpoint
from edgebed.runtimes.live.rate_limit import RateLimiter
from edgebed.runtimes.live.shell.lifetime import Lifetime
from edgebed.runtimes.server_log import ServerLog
from edgebed.wire.messages import Report

REPORT_RECORDS_MAX = 1024  # a header stays far below what the controller's socket takes


class Reporter:
    """Collects records until they are reported to the controller."""

    def __init__(
        self,
        node: str,
        management: DealerEndpoint,
        metrics: NodeMetrics,
        life: Lifetime,
        log: ServerLog | None = None,
    ) -> None:
        """`node` is the name that its reports are sent by; `log` is a server's, which has records to be reported."""
        self.node = node
        self.management = management
        self.metrics = metrics
        self.life = life
        self.limiter = RateLimiter()
        self.log = log
        self.unreported: list[tuple[float, records.AnyRecord]] = log.begin_report() if log else []
        self.num_reported = 0
        self.urgent = False
        """Whether a record waits that the controller acts upon."""
        self.latest: dict[type, records.Record] = {}
        """What the heart said last when it was looked at, by kind."""

    def journal(self, record: records.Record) -> None:
        """Have a record journaled; too many bad messages in a second are only counted."""
        if not isinstance(record, records.Dropped | records.Refused) or self.limiter.admit(record):
            self._note(record)

    def journal_change(self, record: records.Record) -> None:
        """Have a record journaled that differs from the last one of its kind."""
        if self.latest.get(type(record)) != record:
            self.latest[type(record)] = record
            self.journal(record)

    def complain(self, reason: str, network: str = "data") -> None:
        """Journal that a message was dropped."""
        self.journal(records.Dropped(socket=network, reason=reason))

    def release(self) -> None:
        """Journal how many records of bad messages were held back since the last call."""
        for held in self.limiter.release():
            self._note(held)

    def report(self) -> None:
        """Send all records to the controller."""
        self.urgent = False
        while self.unreported:
            part, self.unreported = self.unreported[:REPORT_RECORDS_MAX], self.unreported[REPORT_RECORDS_MAX:]
            durable = self.log.number(part) if self.log else None
            report = Report(sender=self.node, first=self.num_reported, records=tuple(part), durable=durable)
            self.num_reported += len(part)
            self.management.send(report, ())

    def _note(self, record: records.Record) -> None:
        self.metrics.observe(record)
        t = round(self.life.now(), 6)
        self.unreported.append((t, record))  # type: ignore[arg-type]
        self.urgent = self.urgent or isinstance(record, records.Evaluated | records.Finished)
