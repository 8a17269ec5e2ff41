"""How a worker spends its time: computing, encoding, waiting for the model, pausing before it sends."""

from dataclasses import dataclass

from edgebed.core import records
from edgebed.roles.work import GradientResult
from edgebed.wire.messages import AnyMessage, Model, Push


@dataclass
class Times:
    """Seconds that a worker has spent on each phase of its steps since it started."""

    steps: int = 0
    compute_s: float = 0.0
    encode_s: float = 0.0
    wait_s: float = 0.0
    pause_s: float = 0.0
    absorbed_s: float = 0.0
    """Seconds of waiting for a core without effect on pacing: the node would have rested for as long."""
    computed_at_s: float | None = None
    """When a gradient was computed that has not been sent yet."""
    busy_until_s: float = 0.0
    """When the last job was done: while one is, messages that come are not seen."""
    waits_since_s: float | None = None
    """When the node began to wait for a model."""

    def computed(self, result: object, now: float) -> None:
        """Add the job that was done just now; only gradients are steps."""
        self.busy_until_s = now
        if isinstance(result, GradientResult) and not result.is_push:
            self.compute_s += result.compute_s
            self.waits_since_s = now if self.waits_since_s is not None else None
        elif isinstance(result, GradientResult):
            self.steps += 1
            self.compute_s += result.compute_s
            self.encode_s += result.encode_s
            self.computed_at_s = now

    def sent(self, message: AnyMessage, now: float) -> None:
        """Note a message that the heart sends; the time before a push was a pause, unless it is sent once more."""
        if isinstance(message, Push) and self.computed_at_s is not None:
            self.pause_s += now - self.computed_at_s
            self.computed_at_s, self.waits_since_s = None, now
        elif self.waits_since_s is None:
            self.waits_since_s = now

    def received(self, message: AnyMessage, now: float) -> None:
        """Note a message that came; for a model the node has waited since it asked for it, however often it did."""
        if isinstance(message, Model) and self.waits_since_s is not None:
            self.wait_s += now - self.waits_since_s
            self.waits_since_s = None

    def record(self) -> records.Phases:
        """The times as a record of the journal."""
        return records.Phases(
            steps=self.steps,
            compute_s=round(self.compute_s, 6),
            encode_s=round(self.encode_s, 6),
            wait_s=round(self.wait_s, 6),
            pause_s=round(self.pause_s, 6),
        )
