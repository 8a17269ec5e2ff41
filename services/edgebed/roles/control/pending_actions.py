"""What is to be done to nodes, later or as soon as it can be, and when the last of it is due.

The controller asks for the latest time at every check and every death, with a day of churn still to come; so the latest
is remembered for each node and action, and not looked for.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

import msgspec

from edgebed.core.actions import BRINGS_BACK, Action
from edgebed.core.planned.fault import Injection

ON_FAILURE = "on_failure"
BEGUN, UNDOES_ALL = "begun", ""
"""Parts of the keys of steps; see `_subjects`."""
Key = TypeVar("Key", bound=Hashable)


class FaultCause(msgspec.Struct, frozen=True):
    """Why something is done to a node."""

    name: str
    """Name of the cause, as in the record."""
    trigger: str
    asked_s: float
    waiting: str = ""
    """Worker that waits where the fault has stopped it."""
    ticket: int | None = None
    """Ticket of the user who waits for an answer."""
    again: bool = False
    """Whether the step had been done to the incarnation before: no news."""
    undoes_all: bool = False
    """Whether the step is a thaw or heal of its own, which ends what any fault has done."""
    begun_s: float | None = None
    """When the first step of the same fault was to be done, in seconds of the trial; None: this is the first."""

    @property
    def is_planned(self) -> bool:
        """Whether it is a fault of the plan's, and neither a policy nor the user."""
        return self.name != ON_FAILURE and self.ticket is None


class Latest:
    """A bag of times that knows its latest; what was removed leaves the heap on top, or when it is half of it."""

    def __init__(self) -> None:
        self.times: Counter[float] = Counter()
        """Times in the bag, and how often each."""
        self.heap: list[float] = []
        """Negatives of the times, once each, and of some that were in the bag."""

    def add(self, time_s: float) -> None:
        """Put a time in the bag."""
        self.times[time_s] += 1
        if self.times[time_s] == 1:
            heappush(self.heap, -time_s)

    def remove(self, time_s: float) -> None:
        """Take out a time that is in the bag."""
        self.times[time_s] -= 1
        if not self.times[time_s]:
            del self.times[time_s]
        if len(self.heap) > 2 * len(self.times):
            self.heap = [-each for each in self.times]
            heapify(self.heap)

    def latest_s(self) -> float | None:
        """Return the latest time; None: the bag is empty."""
        while self.heap and -self.heap[0] not in self.times:
            heappop(self.heap)
        return -self.heap[0] if self.heap else None


class PendingActions(Generic[Key]):
    """Steps to come, each with its key; indexed by node and action."""

    def __init__(self) -> None:
        self.all: dict[Key, tuple[FaultCause, Injection]] = {}
        self.latest: defaultdict[Hashable, Latest] = defaultdict(Latest)
        """Times by what they are of, as `_subjects` has it."""

    def __contains__(self, key: object) -> bool:
        """Whether the step of this key is still to be done."""
        return key in self.all

    def __getitem__(self, key: Key) -> tuple[FaultCause, Injection]:
        """Return why the step of this key is to be done, and what."""
        return self.all[key]

    def add(self, key: Key, cause: FaultCause, injection: Injection) -> None:
        """Add a step, to be done at `cause.asked_s`."""
        self.all[key] = cause, injection
        for subject, time_s in _subjects(cause, injection):
            self.latest[subject].add(time_s)

    def pop(self, key: Key) -> tuple[FaultCause, Injection]:
        """Remove and return a step that is no longer to be done."""
        cause, injection = self.all.pop(key)
        for subject, time_s in _subjects(cause, injection):
            self.latest[subject].remove(time_s)
        return cause, injection

    def clear(self) -> None:
        """Remove all steps."""
        self.all.clear()
        self.latest.clear()

    def causes(self) -> Iterator[FaultCause]:
        """Yield the causes of all steps."""
        return (cause for cause, _ in self.all.values())

    def latest_s(self, node: str, action: Action) -> float | None:
        """Return when `action` is to be done to a node for the last time; None: it is not."""
        return self._latest_s((node, action))

    def is_absent(self, node: str, now: float) -> bool:
        """Whether a fault that has begun is to launch a node: its kill has been asked for, its launch has not."""
        first = self._latest_s((node, BEGUN))
        return first is not None and -first <= now

    def is_undone(self, node: str, action: Action, names: Collection[str]) -> bool:
        """Whether `action`, thaw or heal, is to come for each of these faults by name, or one that undoes them all."""
        if self._latest_s((node, action, UNDOES_ALL)) is not None:
            return True
        return all(self._latest_s((node, action, name)) is not None for name in names)

    def last_return_s(self) -> float | None:
        """Return when the last node that the plan, or the user, brings back is brought back; None: there is none."""
        return self._latest_s(BRINGS_BACK)

    def _latest_s(self, subject: Hashable) -> float | None:
        return self.latest[subject].latest_s() if subject in self.latest else None


def _subjects(cause: FaultCause, injection: Injection) -> Iterator[tuple[Hashable, float]]:
    """Yield the keys by which a step is indexed, each with a time.

    By node and action: when it is due. By BRINGS_BACK: when whatever brings a node back is due, but for what a policy
    does. By node and BEGUN: when a launch's fault begins, negated, since the first is asked for. By node, action and
    name of the fault: when a thaw or heal is due; without a name where it undoes all.
    """
    node, action = injection.node, injection.action
    yield (node, action), cause.asked_s
    if action in BRINGS_BACK and cause.name != ON_FAILURE:
        yield BRINGS_BACK, cause.asked_s
    if action == "launch":
        yield (node, BEGUN), -(cause.asked_s if cause.begun_s is None else cause.begun_s)
    elif action in BRINGS_BACK:
        yield (node, action, UNDOES_ALL if cause.undoes_all else cause.name), cause.asked_s
