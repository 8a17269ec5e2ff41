"""What became of the steps that a shard has begun in one history; step_accounts.py collects what is needed for that.

Steps are counted in spans, never one by one, whatever a journal says.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

import msgspec

from edgebed.core import records
from edgebed.roles.layerwise.histories import HISTORIES

NEVER = 2**63
"""A step number that no shard reaches."""


class Span(NamedTuple):
    """A range of mini-batches, from `start` up to `end`, which is not in it."""

    start: int
    end: int

    def count(self, every: int) -> int:
        """How many mini-batches of the span are multiples of `every`."""
        return max(0, _ceil(self.end, every) - _ceil(self.start, every)) // every

    def below(self, step: int) -> "Span":
        """The part of the span before `step`."""
        return Span(self.start, min(self.end, step))

    def beyond(self, step: int) -> "Span":
        """The part of the span from `step` on."""
        return Span(max(self.start, step), self.end)


class End(NamedTuple):
    """How an incarnation of a shard ended."""

    is_gone: bool = False
    """Whether the shard died, or was never heard of again."""
    has_told_all: bool = False
    """Whether the shard said goodbye at the trial's end, and so reported everything."""
    may_be_further: bool = False
    """Whether the shard was killed, or frozen for good, and may have come further than it has reported."""


class ShardAccount(msgspec.Struct):
    """What a shard has reported of a history."""

    shard: str
    history: int
    incarnation: int
    """The shard's incarnation as the server knows it, until the shard itself has reported."""
    said: records.Progress | None = None
    """The shard's last report; None: none has come."""
    made: list[list[int]] = msgspec.field(default_factory=list)
    """First and last step of each run of consecutive steps that the shard reported as made."""


class Histories:
    """All histories of a trial, in order: which steps of each are in the model, and which were given up."""

    def __init__(
        self, began: Mapping[int, int], proven: Mapping[int, int], model: tuple[int, int] | None = None
    ) -> None:
        """`began` and `proven`: by history, the step at which it began, and before which all shards made theirs.

        `model`: the history of the final model, and its version; None: there is none.
        """
        self.began, self.proven, self.model = began, proven, model
        self.numbers = sorted(began)
        self.kept: dict[int, int] = {}
        """By history, the step at which the first later one began: steps before it were not given up."""
        self.in_model: dict[int, int] = {}
        """By history, the step before which its steps are in the model."""
        kept, in_model = NEVER, NEVER if model is None else 0
        for number in reversed(self.numbers):
            if model and number == model[0]:
                in_model = model[1]
            self.kept[number], self.in_model[number] = kept, in_model
            kept, in_model = min(kept, began[number]), min(in_model, began[number])

    def given_up(self, number: int, span: Span) -> Iterator[tuple[Span, bool]]:
        """The parts of a history's steps that later ones gave up, and whether another incarnation of the server did."""
        for later in self.numbers[bisect_right(self.numbers, number) :]:
            yield span.beyond(self.began[later]), later // HISTORIES != number // HISTORIES
            span = span.below(self.began[later])
            if span.end <= max(span.start, 0) or self.kept[later] >= span.end:
                return


def every_of(said: records.Progress) -> int:
    """Mini-batches from one of the shard's steps to the next."""
    return max(1, said.every)


def until(said: records.Progress, number: int) -> int:
    """The mini-batch that follows the first `number` of the shard's steps in this history."""
    return _ceil(said.since, every_of(said)) + number * every_of(said)


def is_heard_out(end: End, *, is_last: bool) -> bool:
    """Whether a shard has reported all of a history; `is_last`: it is the last history that the shard has reported."""
    return end.has_told_all or not is_last


def fates(account: ShardAccount, every: int, histories: Histories, end: End, *, is_last: bool) -> Counter[str]:
    """What became of a shard's steps, as counts by the names of a ledger's fields."""
    number, said = account.history, account.said
    first = _ceil(histories.began[number], every)
    lots = [Span(start, last + 1) for start, last in account.made]
    missing = [Span(before.end, after.start) for before, after in pairwise([Span(first, first), *lots])]
    come_to = _ceil(lots[-1].end, every) if lots else first
    if said:
        missing.append(Span(come_to, until(said, said.made)))
        come_to = max(come_to, missing[-1].end)
    witnessed = Span(come_to, histories.proven.get(number, 0))
    (missing if is_heard_out(end, is_last=is_last) else lots).append(witnessed)
    come_to = max(come_to, _ceil(witnessed.end, every))
    found: Counter[str] = Counter(unexplained=sum(span.count(every) for span in missing))
    for span in lots:
        in_model = histories.in_model[number]
        found["applied"] += span.below(in_model).count(every)
        found += _not_in_model(number, span.beyond(in_model), every, histories)
    in_progress = Span(come_to, until(said, said.begun) if said else come_to)
    if not (end.is_gone and is_last):
        return found + _not_in_model(number, in_progress, every, histories)
    is_done = histories.model is not None and come_to >= histories.model[1]
    is_at_another = said is not None and end.may_be_further and not is_done
    found["lost_with_worker"] += in_progress.count(every) or int(is_at_another)
    return found


def _not_in_model(number: int, span: Span, every: int, histories: Histories) -> Counter[str]:
    """What became of a span of steps that were made, or begun, and are not in the final model."""
    found: Counter[str] = Counter(unfinished=span.count(every))
    for part, is_another_life in histories.given_up(number, span):
        found["lost_with_server" if is_another_life else "rolled_back"] += part.count(every)
        found["unfinished"] -= part.count(every)
    return found


def _ceil(step: int, every: int) -> int:
    """The first multiple of `every` that is not below `step`."""
    return -(-step // every) * every
