"""What nodes used in training: their accounts go on during the final evaluation, which is no part of it.

A node that waits there for a core loses nothing, and what it lost in training is no smaller a share for the wait. So
the times of its account are taken at the end of training, between the line before it and the one after.
"""

from collections.abc import Iterator

import msgspec

from edgebed.core import records
from edgebed.core.recorded.measured import Usage
from edgebed.journal.folds import Counters, Fold, Timeline, on

TIMES = (
    "time_s", "cpu_s", "starved_s", "throttled_s", "stopped_s", "capped_s", "capped_cpu_s", "capped_allowed_s",
    "allowed_s", "device_s", "device_late_s", "device_waits_s",
)  # fmt: skip
"""Fields of `Usage` that add up seconds."""
NOTHING = Usage(time_s=0.0, cpu_s=0.0)


class TrainingUsage(Fold):
    """Each node's account at the last line before the end of training, and at the first one after it."""

    def __init__(self, timeline: Timeline, counters: Counters) -> None:
        super().__init__(timeline, counters)
        self.timeline, self.counters = timeline, counters
        self.has_ended = False
        self.before: dict[str, tuple[float, Usage]] = {}
        self.after: dict[str, tuple[float, Usage]] = {}

    @on(records.Finished)
    def _finished(self, _: float, __: str, ___: records.Finished) -> None:
        self.has_ended = True
        self.after.clear()

    @on(records.Trial, records.Restored)
    def _goes_on(self, _: float, __: str, ___: records.Trial | records.Restored) -> None:
        self.has_ended = False
        self.before |= self.after

    @on(Usage)
    def _usage(self, t: float, node: str, record: Usage) -> None:
        told = (self.timeline.since_began(t), record)
        if not self.has_ended:
            self.before[node] = told
        else:
            self.after.setdefault(node, told)

    def lives(self, end_s: float) -> dict[str, tuple[Usage, ...]]:
        """The last account of each incarnation of each node, with its times as they were after `end_s` of training."""
        return {node: tuple(self._cut(node, lives, end_s)) for (node,), lives in self.counters.lives(Usage).items()}

    def _cut(self, node: str, lives: list[Usage], end_s: float) -> Iterator[Usage]:
        *earlier, last = lives
        yield from earlier
        if not self.has_ended or node not in self.after:
            yield last
            return
        after_s, after = self.after[node]
        before_s, before = self.before.get(node, (0.0, NOTHING))
        if before is NOTHING or before.cpu_s > after.cpu_s or before.time_s > after.time_s:  # of an earlier incarnation
            before_s, before = after_s - after.time_s, NOTHING
        share = min(1.0, max(0.0, (end_s - before_s) / (after_s - before_s))) if after_s > before_s else 1.0
        times = {name: _between(before, after, name, share) for name in TIMES}
        yield msgspec.structs.replace(last, differed=after.differed, differences=after.differences, **times)


def _between(before: Usage, after: Usage, name: str, share: float) -> float | None:
    """A time of the first account, and that share of what the second one has beyond it; None: not known."""
    first, second = getattr(before, name), getattr(after, name)
    return second if second is None else (first or 0.0) + share * (second - (first or 0.0))
