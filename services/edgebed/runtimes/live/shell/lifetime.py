"""A node's life by the trial's clock: when training began, and why the node has to end."""

import math
from dataclasses import dataclass, field

from edgebed.runtimes.live.clocks.following import NodeClock, SameClock
from edgebed.wire.messages import Stop


@dataclass
class Lifetime:
    """What the node knows of the trial's course; times are seconds since the trial's launch."""

    epoch_ns: int
    """The controller's monotonic clock at the launch."""
    clock: NodeClock = field(default_factory=SameClock)
    """The controller's monotonic clock now, as far as the node knows it."""
    errors_s: dict[str, float] = field(default_factory=dict)
    """How far the times of other nodes may be wrong, where their clock is not the controller's."""
    began_s: float | None = None
    """When training began; None before that."""
    stop: Stop | None = None
    """Why the node ends, and for how long it may stay for Prometheus; None while it goes on."""

    def now(self) -> float:
        """Seconds since the trial's launch."""
        return (self.clock.now_ns() - self.epoch_ns) * 1e-9

    def error_s(self, other: str) -> float:
        """The most that times of another node and the node's own may be wrong by, compared with each other."""
        return self.clock.error_s() + self.errors_s.get(other, 0.0)

    @property
    def trained_s(self) -> float:
        """Seconds since training began; minus infinity before that."""
        return -math.inf if self.began_s is None else self.now() - self.began_s
