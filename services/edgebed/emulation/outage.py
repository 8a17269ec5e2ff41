"""A link that is cut for a while, where no kernel cuts it: time stands still for what is on its way.

    cut ........ heal              up to DEAD_S: all that is on its way, and all that is sent meanwhile, comes later
    cut ........................ heal .. connected      longer: it is lost, up to the moment of the new connection

So does TCP: it sends again what was not acknowledged, until a probe that nobody answers ends the connection. Neither
end hears anything while the link is cut; each learns of the end of a connection when there is a new one, or by silence.

The simulation asks it in virtual time, the live shell in real time. Times are seconds of the trial.
"""

DEAD_S = 3.0
"""Seconds after which a cut kills the connection."""
RECONNECT_S = 0.5
"""Seconds from the heal to a new connection, where the old one was killed."""


class Outage:
    """Whether a link is cut, and what becomes of what is on its way."""

    def __init__(self) -> None:
        self.since_s: float | None = None
        """Time when the link was cut; None: it is not."""

    @property
    def is_cut(self) -> bool:
        """Whether the link lets nothing pass."""
        return self.since_s is not None

    def cut(self, now: float) -> None:
        """Cut the link: from now on nothing passes; on a link that is cut already this has no effect."""
        if self.since_s is None:
            self.since_s = now

    def heal(self, now: float) -> float | None:
        """Heal the link; return how much later what was on its way at the cut is due, in seconds; None: it is lost.

        A dead connection loses it. What was sent during the cut is sent as of now, or is lost as well. 0 for a link
        that was not cut.
        """
        if self.since_s is None:
            return 0.0
        later_s, self.since_s = now - self.since_s, None
        return later_s if later_s <= DEAD_S else None
