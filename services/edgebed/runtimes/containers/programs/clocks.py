"""The clock of a program's witness, where it is another than the controller's: its host has one of its own.

    controller --- ask ---> witness      several in a row, when the witness begins and then every ten seconds at most
               <-- theirs --

A witness tells times of its own clock, and follows a link's timeline by that. What is known of the difference is
journaled as nodes of edgebed's own do it (runtimes/live/clocks).
"""

import time
from collections.abc import Callable

from edgebed.core.records import Clock
from edgebed.runtimes.live.clocks.estimate import Estimate, Estimator, Exchange
from edgebed.runtimes.live.clocks.following import EVERY_S, EXCHANGES, FIRST_S, is_news


class WitnessClock:
    """What the controller knows of it; a witness is asked by `due` questions, whose answers come by `answered`."""

    def __init__(self, own_ns: Callable[[], int] = time.monotonic_ns) -> None:
        """`own_ns` reads the controller's."""
        self.own_ns = own_ns
        self.estimator = Estimator()
        self.estimate: Estimate | None = None
        """The witness's clock less the controller's; None: not known yet."""
        self.told: Clock | None = None
        self.found: list[Exchange] = []
        self.next_ns = 0
        self.pause_s = FIRST_S

    def due(self) -> int:
        """The controller's clock as a question to be asked now; 0 where there is none to ask."""
        now_ns = self.own_ns()
        if now_ns < self.next_ns:
            return 0
        self.next_ns = now_ns + round(FIRST_S * 1e9)  # again, if nobody answers
        return now_ns

    def answered(self, asked_ns: int, theirs_ns: int) -> Clock | None:
        """Take in an answer; return what is news for the journal."""
        now_ns = self.own_ns()
        self.found.append(Exchange(asked_ns, theirs_ns, theirs_ns, now_ns))
        self.next_ns = now_ns
        if len(self.found) < EXCHANGES:
            return None
        round_trip_ns = min(each.round_trip_ns for each in self.found)
        self.estimate, self.found = self.estimator.add(self.found), []
        self.next_ns = now_ns + round(self.pause_s * 1e9)
        self.pause_s = min(EVERY_S, 2.0 * self.pause_s)
        offset_ns = self.estimate.offset_ns(now_ns)
        clock = Clock(
            offset_s=-offset_ns * 1e-9,
            own_s=(now_ns + offset_ns) * 1e-9,
            drift=round(-self.estimate.drift, 9),
            error_s=round(self.estimate.error_ns(self.next_ns + round(FIRST_S * 1e9)) * 1e-9, 9),
            round_trip_s=round_trip_ns * 1e-9,
        )
        if self.told and not is_news(self.told, clock):
            return None
        self.told = clock
        return clock

    def ours_s(self, theirs_s: float) -> float:
        """The controller's clock when the witness's showed that, a moment ago."""
        return theirs_s - self._offset_s()

    def theirs_s(self, ours_s: float) -> float:
        """The witness's clock when the controller's shows that, now or a moment ago."""
        return ours_s + self._offset_s()

    def _offset_s(self) -> float:
        assert self.estimate is not None, "it is not known yet"
        return self.estimate.offset_ns(self.own_ns()) * 1e-9
