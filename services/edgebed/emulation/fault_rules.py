"""Rules of the verdict about faults: what was asked for was done, and in time.

A fault that was asked for is a condition like any other: a node that was killed, frozen, cut off or changed as asked is
as it should be, and so is one with which there was nothing to do, e.g. because it had died before.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from edgebed.emulation.findings import FaultRule, Finding, seconds_text
from edgebed.observe.series_faults import BY_HAND, Done

LATE_S = 0.25
"""So much later than asked a fault may be done to one node."""
LATE_A_NODE_S = 0.05
"""And to several at once: 1 s to twenty."""
TAKES_TIME = ("launch", "memory")
"""Actions that are under way for as long as a node takes; they begin in time, or are late in `back after`."""


def undone(faults: Sequence[Done]) -> Iterator[Finding]:
    """What could not be done. What a user asked for by hand was answered at once."""
    failed = [done for done in faults if done.record.problem and done.record.name != BY_HAND]
    if failed:
        first = failed[0].record
        more = f", and {len(failed) - 1:,} more" if len(failed) > 1 else ""
        yield Finding(f"faults: {first.action} of {first.target} could not be done: {first.problem}{more}")


def late(faults: Sequence[Done]) -> Iterator[Finding]:
    """What the scenario asked for and was done too late. By hand nothing is prepared, and nobody counts on a time."""
    timely = [
        done
        for done in faults
        if done.was_done and done.record.action not in TAKES_TIME and done.record.name != BY_HAND
    ]
    found = []
    for _, group in groupby(sorted(timely, key=_moment), key=_moment):
        together = list(group)
        allowed_s = max(LATE_S, LATE_A_NODE_S * len(together))
        found += [done for done in together if done.delay_s > allowed_s]
    if found:
        worst = max(found, key=lambda done: done.delay_s)
        what = f"{worst.record.action} of {worst.record.target}"
        others = f", and {len(found) - 1:,} others were late" if len(found) > 1 else ""
        yield Finding(
            f"faults: {what} was done {seconds_text(worst.delay_s)} after it was asked for{others}; the host was busy, "
            "or too much was asked for at once"
        )


def _moment(done: Done) -> tuple[float, str]:
    """What was asked for at once."""
    return done.asked_t, done.record.name


FAULT_RULES: tuple[FaultRule, ...] = (undone, late)
