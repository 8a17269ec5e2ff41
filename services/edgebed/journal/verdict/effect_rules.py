"""Rules of the verdict about what faults did: who was killed ended, who was frozen stood still, who was cut was silent.

What is done is journaled by whoever did it. That it had its effect is seen by others: the end of the process by what
started it, CPU time and bytes by the controller from outside.
"""

from collections.abc import Iterator

from edgebed.core.quantities import bytes_text, number_text
from edgebed.journal.verdict.findings import Finding, Observed, Rule, seconds_text

FROZEN_CPU_MAX = 0.02
"""Share of a freeze that may be CPU time: what the kernel charges late."""
FROZEN_CPU_S_MAX = 0.05
"""Seconds of CPU time that are never too much."""
FROZEN_RUNNING_MIN = 2
"""Looks at a frozen node that must have found it running."""
CUT_BYTES_MAX = 2_000
"""Bytes that may come out of a link that was cut: a packet that was under way."""


def survived(trial: Observed) -> Iterator[Finding]:
    """Rule: nodes that were killed have ended."""
    if trial.survivors:
        first = trial.survivors[0].record
        more = f", and {len(trial.survivors) - 1:,} more went on" if len(trial.survivors) > 1 else ""
        yield Finding(f"faults: {first.action} of {first.target} had no effect: its process did not end{more}")


def frozen(trial: Observed) -> Iterator[Finding]:
    """Rule: nodes that were frozen did nothing."""
    for name, lives in trial.seen.items():
        last = lives[-1].last
        is_busy = last.frozen_cpu_s > max(FROZEN_CPU_S_MAX, FROZEN_CPU_MAX * last.frozen_s)
        if not is_busy and last.frozen_running < FROZEN_RUNNING_MIN:
            continue
        seen = [f"used {number_text(last.frozen_cpu_s)} s of CPU time in {seconds_text(last.frozen_s)}"] * is_busy
        if last.frozen_running:
            seen.append(f"was found running in {last.frozen_running:,} of {last.frozen_looks:,} looks")
        yield Finding(
            f"faults: {name} was frozen, and {' and '.join(seen)} all the same, as seen from outside; the freeze did "
            "not hold, or somebody ended it"
        )


def cut(trial: Observed) -> Iterator[Finding]:
    """Rule: nothing came out of links that were cut."""
    for name, lives in trial.seen.items():
        last = lives[-1].last
        if last.cut_bytes > CUT_BYTES_MAX:
            yield Finding(
                f"faults: the link of {name} was cut, and {bytes_text(last.cut_bytes)} came out of it all the same in "
                f"{seconds_text(last.cut_s)}, as seen from outside; the cut did not hold, or there is another way"
            )


def passed(trial: Observed) -> Iterator[Finding]:
    """Rule: nothing passed between two nodes while the way between them was cut."""
    for (node, peer), what in trial.passed.items():
        yield Finding(
            f"faults: the way between {node} and {peer} was cut, and {what} came to {peer} all the same; the cut did "
            "not hold, or there is another way"
        )


EFFECT_RULES: tuple[Rule, ...] = (survived, frozen, cut, passed)
