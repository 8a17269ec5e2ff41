"""The rule of the verdict about nodes that stood still: nobody but a fault may stop one.

A node notices gaps of its own clock (runtimes/live/shell/gaps.py). What it waited for a core, or was held back by its
own cap, is no part of them; of a node that its cap holds back all the time that leaves little. So the controller looks
from outside, too, whether its process is stopped. What faults, or a user by hand, froze is allowed for.
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
            still_s, node = max(found, key=lambda each: each[0] / each[1].row.time_s)
            yield Finding(
                f"stopped: {of_class([node for _, node in found], nodes)} stood still for {seconds_text(still_s)} of "
                f"{seconds_text(node.row.time_s)} ({share_text(still_s / node.row.time_s)}), which no fault asked for; "
                "perhaps a debugger, a freezer of cgroups, a machine that was paused, or memory that was swapped out",
                is_fault=takes_time(trial.plan),
            )


def _unasked_s(trial: Observed, node: Judged) -> float | None:
    """Seconds for which a node stood still unasked; None: too few to count, or not known."""
    still_s = max(node.row.stopped_s or 0.0, _seen_s(trial, node)) - trial.frozen_s.get(node.name, 0.0)
    return still_s if still_s > max(STOPPED_MIN_S, STOPPED_MAX * node.row.time_s) else None


def _seen_s(trial: Observed, node: Judged) -> float:
    """Seconds for which a node was seen stopped, some looks less: each is of a moment."""
    lives = trial.seen.get(node.name, ())
    last = lives[-1].last if lives else None
    if last is None or not last.looks:
        return 0.0
    return max(0, last.stopped - LOOKS_MORE) / last.looks * node.row.time_s


STOP_RULES: tuple[Rule, ...] = (stopped,)
