"""A node's life by the trial's clock: when training began, and why the node has to end."""

import math
import time
from dataclasses import dataclass

from edgebed.wire.messages import Stop


@dataclass
class Lifetime:
    """What the node knows of the trial's course; times are seconds since the trial's launch."""

    epoch_ns: int
    """The machine's monotonic clock at the launch."""
    began_s: float | None = None
    """When training began; None before that."""
    stop: Stop | None = None
    """Why the node ends, and for how long it may stay for Prometheus; None while it goes on."""

    def now(self) -> float:
        """Seconds since the trial's launch."""
        return (time.monotonic_ns() - self.epoch_ns) * 1e-9

    @property
    def trained_s(self) -> float:
        """Seconds since training began; minus infinity before that."""
        return -math.inf if self.began_s is None else self.now() - self.began_s
