"""A link that is cut for a while, where no kernel cuts it: time stands still for what is on its way.

    cut ........ heal              up to DEAD_S: all that is on its way, and all that is sent meanwhile, comes later
    cut ........................ heal .. connected      longer: it is lost, up to the moment of the new connection

So does TCP: it sends again what was not acknowledged, until a probe that nobody answers ends the connection. Neither
end hears anything while the link is cut; each learns of the end of a connection when there is a new one, or by silence.

The simulation asks it in virtual time, the live shell in real time. Times are seconds of the trial.
"""

DEAD_S = 3.0
"""A cut that is longer kills the connection."""
RECONNECT_S = 0.5
"""So long after the heal there is a new connection, where the old one was killed."""


class Outage:
    """Whether a link is cut, and what becomes of what is on its way."""

    def __init__(self) -> None:
        self.since_s: float | None = None
        """When the link was cut; None: it is not."""

    @property
    def is_cut(self) -> bool:
        """Whether nothing passes."""
        return self.since_s is not None

    def cut(self, now: float) -> None:
        """From now on nothing passes; of a link that is cut already nothing changes."""
        if self.since_s is None:
            self.since_s = now

    def heal(self, now: float) -> float | None:
        """How much later what was on its way at the cut is due, in seconds; None: the connection is dead, it is lost.

        What was sent during the cut is sent as of now, or is lost as well. 0 for a link that was not cut.
        """
        if self.since_s is None:
            return 0.0
        later_s, self.since_s = now - self.since_s, None
        return later_s if later_s <= DEAD_S else None
