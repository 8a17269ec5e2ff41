"""How long traced messages took between the server and the workers, from the journal of a trial with tracing."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from edgebed.core import records
from edgebed.core.framing import burst_bytes, wire_bytes
from edgebed.journal.folds import of_type
from edgebed.journal.journal import Entry

KINDS = ("push", "model")


@dataclass(frozen=True)
class Passed:
    """A message that passed a worker's link."""

    worker: str
    kind: str
    """push or model"""
    bytes: int
    """Payload in bytes."""
    sent_s: float
    """When its first byte left, in seconds of the trial."""
    time_s: float
    """Seconds from the first byte until all of the message was there."""

    def ideal_s(self, rate_bit_s: int) -> float:
        """Seconds that the message should take after a silence: what is in the burst passes at once."""
        return max(0, wire_bytes(self.bytes) - burst_bytes(rate_bit_s)) * 8 / rate_bit_s


def passed(entries: Iterable[Entry]) -> Iterator[Passed]:
    """The pushes and models of the workers, in the journal's order."""
    for t, node, record in of_type(entries, records.Received):
        if record.message in KINDS and node != "evaluator" and record.sent_s >= 0.0:
            worker = record.sender if record.message == "push" else node
            yield Passed(worker, record.message, record.bytes, record.sent_s, t - record.sent_s)
