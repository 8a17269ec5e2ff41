"""A link that is cut for a while, where no kernel cuts it: what becomes of what is on its way.

    cut ........ heal .... tried again            it all comes later, by the time that nothing passed
    cut ........................ heal .. connected      after DEAD_S without an answer it is lost; there is a new
                                                        connection RECONNECT_S later

So does TCP. It sends again what was not acknowledged: once soon, as a probe for a loss, then after the retransmission
time-out, which doubles each time (RFC 6298, RFC 8985). So a healed link stays silent until the next try, up to as long
again as it was cut: after cuts of 0.8, 2 and 2.5 s TCP went on after 1.0, 3.8 and 3.8 s. Who waits for an answer gives
a silent connection up. Neither end hears anything meanwhile; each learns of the end of a connection when there is a new
one, or by silence. Where nothing is held up, a healed link passes messages at once.

The simulation asks it in virtual time, the live shell in real time. Times are seconds of the trial.
"""

import math

PROBE_S = 0.1
"""Seconds after which TCP first sends again what is not acknowledged: two round trips of a link of 10 ms, and more."""
TIMEOUT_S = 0.24
"""Its retransmission time-out then: 0.2 s, the kernel's least variation, and a round trip."""
DEAD_S = 4.0
"""Seconds without an answer after which who waits for one gives the connection up (runtimes/live/data_endpoints.py)."""
RECONNECT_S = 0.5
"""Seconds until there is a new connection."""


class Outage:
    """Whether a link is cut, or has yet to be tried again, and since when it has held something up."""

    def __init__(self) -> None:
        self.since_s: float | None = None
        """Time when the link was cut; None: messages pass."""
        self.stalled_s: float | None = None
        """Time when it held the first message up; None: there was none."""

    @property
    def is_cut(self) -> bool:
        """Whether the link lets nothing pass."""
        return self.since_s is not None

    def cut(self, now: float, *, stalls: bool) -> None:
        """Cut the link; `stalls`: something was on its way. On a link that is cut already this has no effect."""
        if self.since_s is None:
            self.since_s = now
            self.stalled_s = now if stalls else None

    def stall(self, now: float) -> None:
        """Note that a message is to pass."""
        if self.is_cut and self.stalled_s is None:
            self.stalled_s = now

    def goes_on_s(self, healed_s: float) -> float:
        """Return when messages pass again after the heal; infinity if the connection is given up before."""
        if self.stalled_s is None:
            return healed_s
        after_s = tried_after_s(healed_s - self.stalled_s)
        return self.stalled_s + after_s if after_s <= DEAD_S else math.inf

    def renewed_s(self, healed_s: float) -> float:
        """Return when there is a new connection in place of one that is given up."""
        given_up_s = healed_s if self.stalled_s is None else max(healed_s, self.stalled_s + DEAD_S)
        return given_up_s + RECONNECT_S

    def end(self, now: float) -> float:
        """Let messages pass again; return for how long they did not, in seconds."""
        since_s, self.since_s, self.stalled_s = self.since_s, None, None
        return 0.0 if since_s is None else now - since_s


def tried_after_s(silent_s: float) -> float:
    """Return after how many seconds TCP sends again for the first time that is not before `silent_s`."""
    if silent_s <= PROBE_S:
        return PROBE_S if silent_s > 0.0 else 0.0
    tries = math.ceil(math.log2((silent_s - PROBE_S) / TIMEOUT_S + 1.0) - 1e-9)
    return PROBE_S + TIMEOUT_S * (2.0**tries - 1.0)
