"""A clock that follows estimates of another's without ever running backwards, and knows how wrong it is. Pure.

A better estimate does not set the clock: from where it stands it runs a little faster or slower until it agrees. One
that is found far behind, as on a host that was suspended, is set forward at once; one that is ahead waits.
"""

from typing import NamedTuple, Self

from edgebed.runtimes.live.clocks.estimate import Estimate

SLEW = 0.01
"""Share by which the clock may run faster or slower than it is estimated to: of 1 ms nothing is left after 0.1 s."""
STEP_NS = 100_000_000
"""What it is behind by to be set at once."""


class Steering(NamedTuple):
    """How one's own clock is made into the other's, since some moment."""

    estimate: Estimate
    since_ns: int
    """One's own clock at that moment."""
    ahead_ns: int = 0
    """By how much the clock was ahead of the estimate then; negative: behind."""

    @classmethod
    def begin(cls, estimate: Estimate) -> Self:
        """The clock that is what the first estimate says."""
        return cls(estimate, estimate.at_ns)

    def towards(self, estimate: Estimate, own_ns: int) -> Self:
        """The clock that runs towards another estimate from `own_ns` on."""
        ahead_ns = self.offset_ns(own_ns) - estimate.offset_ns(own_ns)
        return type(self)(estimate, own_ns, 0 if ahead_ns < -STEP_NS else ahead_ns)

    def offset_ns(self, own_ns: int) -> int:
        """What is added to one's own clock at that time."""
        return self.estimate.offset_ns(own_ns) + self._ahead_ns(own_ns)

    def error_ns(self, own_ns: int) -> int:
        """The most by which the clock can differ from the other at that time."""
        return self.estimate.error_ns(own_ns) + abs(self._ahead_ns(own_ns))

    def _ahead_ns(self, own_ns: int) -> int:
        left_ns = max(0, abs(self.ahead_ns) - int(SLEW * max(0, own_ns - self.since_ns)))
        return left_ns if self.ahead_ns > 0 else -left_ns
