"""The rule of the verdict about nodes that stood still: nobody but a fault may stop one.

A node notices gaps of its own clock (runtimes/live/shell/gaps.py). What it waited for a core, or was held back by its
own cap, is no part of them; of a node that its cap holds back all the time that leaves little. So the controller looks
from outside, too, whether its process is stopped. What faults, or a user by hand, froze is allowed for: of what the
node told itself as far as it lived to tell.
"""

from collections.abc import Iterator

from edgebed.journal.verdict.findings import (
    Finding,
    Judged,
    Observed,
    Rule,
    of_class,
    seconds_text,
    share_text,
    takes_time,
)

STOPPED_MAX = 0.05
"""Share of its time for which a node may stand still."""
STOPPED_MIN_S = 1.0
"""Seconds for which a node may stand still, however short the training."""
LOOKS_MORE = 2
"""Looks that may find a node stopped, beyond the time for which it was: where it is stopped and where it goes on."""


def stopped(trial: Observed) -> Iterator[Finding]:
    """Nodes that stood still, which no fault asked for."""
    for nodes in trial.classes():
        found = [(still_s, node) for node in nodes if (still_s := _unasked_s(trial, node)) is not None]
        if found:
            still_s, node = max(found, key=lambda each: each[0] / _time_s(trial, each[1]))
            time_s = _time_s(trial, node)
            yield Finding(
                f"stopped: {of_class([node for _, node in found], nodes)} stood still for {seconds_text(still_s)} of "
                f"{seconds_text(time_s)} ({share_text(still_s / time_s)}), which no fault asked for; "
                "perhaps a debugger, a freezer of cgroups, a machine that was paused, or memory that was swapped out",
                is_fault=takes_time(trial.plan),
            )


def _unasked_s(trial: Observed, node: Judged) -> float | None:
    """Seconds for which a node stood still unasked; None: too few to count, or not known."""
    told_s = (node.row.stopped_s or 0.0) - trial.frozen_s(node.name, reported=True)
    still_s = max(told_s, _seen_s(trial, node) - trial.frozen_s(node.name))
    return still_s if still_s > max(STOPPED_MIN_S, STOPPED_MAX * _time_s(trial, node)) else None


def _time_s(trial: Observed, node: Judged) -> float:
    """Seconds that a node measured itself; of one that told nothing, those of the training."""
    return node.row.time_s or trial.trained_s


def _seen_s(trial: Observed, node: Judged) -> float:
    """Seconds for which a node was seen stopped, some looks less: each is of a moment."""
    lives = trial.seen.get(node.name, ())
    watches = lives[-1].watches if lives else ()
    return sum(
        max(0, watch.last.stopped - LOOKS_MORE) / watch.last.looks * min(watch.lasted_s, trial.trained_s)
        for watch in watches
        if watch.last.looks
    )


STOP_RULES: tuple[Rule, ...] = (stopped,)
