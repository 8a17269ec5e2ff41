"""How long a trial has taken by the wall clock, and how long it will still take at the pace that it has had so far."""

from typing import NamedTuple

from edgebed.journal.trial_state import TrialStatus
from edgebed.roles.control.controller import Phase

SHARE_MIN = 0.02
"""Share of a trial from which on its pace says something."""


class Times(NamedTuple):
    """Seconds of the wall clock."""

    wall_s: float
    """Since the trial was announced."""
    left_s: float | None
    """Until it ends by the limit that it will meet first; None where that cannot be told yet, or there is no limit."""


class Pace:
    """Follows one trial. What a measure's value ends may end sooner than it says."""

    def __init__(self, began_s: float) -> None:
        self._began_s = began_s
        self._first: tuple[float, float] | None = None
        """Clock and share at the first look at which training was under way."""

    def look(self, status: TrialStatus, now_s: float) -> Times:
        """Return the times at `now_s` of the clock that told when the trial was announced."""
        share = share_of(status)
        wall_s = now_s - self._began_s
        if not share or status.state in (Phase.ENDING.value, Phase.OVER.value):
            return Times(wall_s, None)
        self._first = self._first or (now_s, share)
        since_s, done = now_s - self._first[0], share - self._first[1]
        if done < SHARE_MIN or share >= 1.0:
            return Times(wall_s, None)
        return Times(wall_s, since_s * (1.0 - share) / done)


def share_of(status: TrialStatus) -> float | None:
    """Return how much of a trial is over, from 0 to 1, by the limit that is nearer; None where there is none."""
    trained_s = 0.0 if status.state == Phase.LAUNCHED.value else status.elapsed_s
    shares = [
        done / limit
        for done, limit in ((status.updates, status.stop_updates), (trained_s, status.stop_time_s))
        if limit
    ]
    return min(1.0, max(shares)) if shares else None
