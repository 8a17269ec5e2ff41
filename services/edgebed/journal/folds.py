"""Folding a journal: what is computed from its records, in one pass, and the reader's knowledge that all folds share.

    (t, node, record) ... --> Fold.add --> the methods marked `@on` with the record's type: its parts' first, its own

`Timeline` knows how long training has gone on and which incarnation each node is in; `Counters` keeps cumulative
reports, and knows whether one begins anew. Folds that share one of them name it as a part; it takes in each record
once. Pure and streaming: a look-up a record and a call for each method that wants it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Self, TypeVar

import msgspec

from edgebed.core import records
from edgebed.core.recorded.measured import CUMULATIVE
from edgebed.core.records import Record
from edgebed.journal.journal import Entry

Handler = Callable[[float, str, Any], None]
"""A method that takes in a record: time in seconds since the launch, node, record."""
H = TypeVar("H", bound=Callable[..., None])
R = TypeVar("R", bound=Record)


def on(*kinds: type[Record]) -> Callable[[H], H]:
    """Mark a method of a fold as the one that takes in these types of records."""

    def mark(method: H) -> H:
        method.kinds = kinds  # type: ignore[attr-defined]
        return method

    return mark


def of_type(entries: Iterable[Entry], kind: type[R]) -> Iterator[tuple[float, str, R]]:
    """The entries with a record of one type, in order."""
    return ((t, node, record) for t, node, record in entries if isinstance(record, kind))


class Fold:
    """Something computed from a journal's records, taken in one by one in the journal's order."""

    _marked: ClassVar[tuple[tuple[type[Record], str], ...]] = ()

    def __init_subclass__(cls) -> None:
        own = [(kind, name) for name, value in vars(cls).items() for kind in getattr(value, "kinds", ())]
        cls._marked = (*cls._marked, *own)

    def __init__(self, *parts: "Fold") -> None:
        """`parts` take in each record before this fold does, by their marked methods: their own `add` is not called."""
        self.last_t = 0.0
        """The latest time that `add` was given, in seconds since the launch."""
        self.handlers: dict[type[Record], tuple[Handler, ...]] = {}
        for part in parts:
            for kind, handlers in part.handlers.items():
                self._take(kind, *handlers)
        for kind, name in self._marked:
            self._take(kind, getattr(self, name))

    def _take(self, kind: type[Record], *handlers: Handler) -> None:
        """Call these for records of that type; what is a part twice is called once."""
        self.handlers[kind] = tuple(dict.fromkeys((*self.handlers.get(kind, ()), *handlers)))

    def add(self, t: float, node: str, record: Record) -> None:
        """Take in one record, reported by `node` at `t` seconds since the launch."""
        self.last_t = max(self.last_t, t)
        for handle in self.handlers.get(type(record), ()):
            handle(t, node, record)

    def add_all(self, entries: Iterable[Entry]) -> Self:
        """Take in a whole journal, or what follows of it; return the fold itself."""
        for entry in entries:
            self.add(*entry)
        return self


class Timeline(Fold):
    """How long training has gone on, and which incarnation each node is in.

    Training time stands still from the end of a controller until the trial is resumed, and training starts again. Nodes
    may have gone on alone for a while: what the server's log brings of that has its own times.

        record            trial   continued   update   update   trial
        t in the journal     10          16       17       19      31
        seconds trained       0           6        7        9       9

    An incarnation reports nothing before it has joined, and nothing is heard of the one before after that.
    """

    def __init__(self, began_s: float | None = None) -> None:
        """`began_s`: when training began, in seconds since the launch, if that was before the first record."""
        super().__init__()
        self.began_s = began_s
        """When training began, in seconds since the launch, or would have begun if it had never stood still since.
        None: not yet."""
        self.launched_s = 0.0
        """When the present controller launched its nodes."""
        self.stands_at_s: float | None = None
        """Seconds of training at which time stands still; None: it runs."""
        self.continued_s: list[float] = []
        """Seconds of training, as observed, at which the trial was resumed."""
        self.unobserved_s = 0.0
        """Seconds of training without a controller."""
        self.unobserved_updates = 0
        """Updates that the server applied in that time."""
        self.incarnations: dict[str, int] = {}
        """Incarnation of each node that has joined, as the controller counts them."""
        self.joins: Counter[str] = Counter()
        """How often each node has joined the controller, or a program of its has ended: what it tells begins anew."""

    def since_began(self, t: float) -> float:
        """Seconds of training until `t`, negative before; from the launch while it has not begun.

        `t` belongs to the record that is taken in, or to a time after it.
        """
        since_s = t - (self.began_s or 0.0)
        return since_s if self.stands_at_s is None else min(since_s, self.stands_at_s)

    def elapsed_s(self, t: float) -> float:
        """Seconds of training until `t`; before it begins, since the launch."""
        return max(0.0, self.since_began(t))

    @on(records.Continued)
    def _continued(self, t: float, _: str, record: records.Continued) -> None:
        self.launched_s, self.stands_at_s = t, record.trained_s
        self.continued_s.append(record.trained_s)

    @on(records.Trial)
    def _trial(self, t: float, _: str, record: records.Trial) -> None:
        if self.began_s is None or self.stands_at_s is not None:
            self.began_s = t - record.trained_s
        self.stands_at_s = None

    @on(records.Update)
    def _update(self, t: float, _: str, __: records.Update) -> None:
        """Note an update that the log of a server brings whose controller was gone."""
        if self.stands_at_s is None or self.began_s is None:
            return
        since_s = t - self.began_s
        if since_s >= self.stands_at_s:
            self.unobserved_s += since_s - self.stands_at_s
            self.unobserved_updates += 1
            self.stands_at_s = since_s

    @on(records.Node)
    def _node(self, _: float, __: str, record: records.Node) -> None:
        if record.state == "joined":
            self.incarnations[record.name] = record.incarnation
            self.joins[record.name] += 1

    @on(records.Exited)
    def _exited(self, _: float, __: str, record: records.Exited) -> None:
        self.joins[record.name] += 1


class Reports(msgspec.Struct):
    """Cumulative reports of one node that continue each other."""

    joins: int
    """How often the node had joined when it made the last of them."""
    before: Any = None
    """The report before the last; None where the last begins anew."""
    lives: list[Any] = msgspec.field(default_factory=list)
    """The last report of each incarnation."""


class Counters(Fold):
    """Nodes' cumulative reports, by type, node and the fields of `CUMULATIVE`.

    A report begins anew if its node has joined since the one before, or has counted less: also where no join was heard.
    """

    def __init__(self, timeline: Timeline) -> None:
        super().__init__(timeline)
        self.timeline = timeline
        self._reports: dict[type[Record], dict[tuple[str, ...], Reports]] = {kind: {} for kind in CUMULATIVE}

    def reports(self, kind: type[Record], *key: str) -> Reports | None:
        """Reports of a type by a node, with these values of the fields that tell them apart; None: there are none."""
        return self._reports[kind].get(key)

    def lives(self, kind: type[R]) -> dict[tuple[str, ...], list[R]]:
        """The last report of each incarnation, by the node and the values of the fields that tell reports apart."""
        return {key: reports.lives for key, reports in self._reports[kind].items()}

    def totals(self, kind: type[R]) -> dict[tuple[str, ...], R]:
        """The sum over all incarnations, by key as in `lives`."""
        return {key: total(lives) for key, lives in self.lives(kind).items()}

    @on(*CUMULATIVE)
    def _report(self, _: float, node: str, record: Record) -> None:
        grows, fields = CUMULATIVE[type(record)]
        key = (node, *[getattr(record, name) for name in fields])
        joins = self.timeline.joins[node]
        reports = self._reports[type(record)].setdefault(key, Reports(joins))
        last = reports.lives[-1] if reports.lives and reports.joins == joins else None
        if last is None or getattr(record, grows) < getattr(last, grows):
            reports.joins, reports.before = joins, None
            reports.lives.append(record)
        else:
            reports.before, reports.lives[-1] = last, record


def total(lives: Sequence[R]) -> R:
    """The last of several reports with each number summed over all of them, as far as they have it."""
    last = lives[-1]
    if len(lives) == 1:
        return last
    sums: dict[str, Any] = {}
    for name in last.__struct_fields__:
        known = [value for life in lives if isinstance(value := getattr(life, name), int | float)]
        if known:
            sums[name] = sum(known)
    return msgspec.structs.replace(last, **sums)
