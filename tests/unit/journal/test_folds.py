"""The reader of a journal: every fold takes in each record once, and counters know when they begin anew."""

from collections import defaultdict
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core import records
from edgebed.journal.folds import CUMULATIVE, Counters, Fold, Timeline, of_type, on, total
from edgebed.journal.journal import Entry

TRIAL = records.Trial(scenario="s", trial="t", seed=1, runtime="process", nodes=2, parameters=6)
NODES = ("edge-0", "edge-1", "server")
HAPPENINGS = st.lists(
    st.tuples(st.sampled_from(NODES), st.sampled_from(("report", "unheard", "restart")), st.integers(0, 50)),
    max_size=40,
)
"""What happens to a node: it counts so much and reports it, it counts and nobody hears of it, it is started anew."""


def counted(kind: type[records.Record], amount: int) -> records.Record:
    """A report whose every required number is the amount; every text is the same."""
    required = {field.name: field.type for field in msgspec.structs.fields(kind) if field.required}
    grows, _ = CUMULATIVE[kind]
    return kind(**{name: "x" if declared is str else amount for name, declared in required.items()} | {grows: amount})


def joined(node: str, incarnation: int) -> records.Node:
    """The controller's line on a hello."""
    return records.Node(name=node, state="joined", incarnation=incarnation)


def told(kind: type[records.Record], happenings: list[tuple[str, str, int]]) -> tuple[list[Entry], dict[str, int]]:
    """A journal of what happened; the sum of what each node had counted in each incarnation when last heard of."""
    entries: list[Entry] = [(0.0, "controller", joined(node, 1)) for node in NODES]
    incarnations, counts = dict.fromkeys(NODES, 1), dict.fromkeys(NODES, 0)
    heard: dict[tuple[str, int], int] = {}
    for k, (node, what, amount) in enumerate(happenings):
        if what == "restart":
            incarnations[node] += 1
            counts[node] = 0
            entries.append((float(k), "controller", joined(node, incarnations[node])))
            continue
        counts[node] += amount
        if what == "report":
            heard[node, incarnations[node]] = counts[node]
            entries.append((float(k), node, counted(kind, counts[node])))
    sums: dict[str, int] = defaultdict(int)
    for (node, _), count in heard.items():
        sums[node] += count
    return entries, dict(sums)


@pytest.mark.parametrize("kind", CUMULATIVE, ids=lambda kind: kind.__name__)
@given(happenings=HAPPENINGS)
def test_what_all_incarnations_counted_is_the_sum_of_the_differences(
    kind: type[records.Record], happenings: list[tuple[str, str, int]]
) -> None:
    """Also where an incarnation begins with more than the one before had counted: that it has joined is enough."""
    entries, sums = told(kind, happenings)
    counters = Counters(Timeline())
    grows, _ = CUMULATIVE[kind]
    grown: dict[str, int] = defaultdict(int)
    for t, node, record in entries:
        counters.add(t, node, record)
        if isinstance(record, kind):
            key = next(key for key in counters.lives(kind) if key[0] == node)
            reports = counters.reports(kind, *key)
            assert reports is not None
            assert reports.lives[-1] is record
            grown[node] += getattr(record, grows) - (getattr(reports.before, grows) if reports.before else 0)

    assert {node: getattr(each, grows) for (node, *_), each in counters.totals(kind).items()} == sums
    assert grown == sums


@given(
    happenings=HAPPENINGS,
    kinds=st.lists(st.sampled_from(list(CUMULATIVE)), min_size=1, max_size=3, unique=True),
    data=st.data(),
)
def test_a_journal_may_be_read_in_parts(
    happenings: list[tuple[str, str, int]], kinds: list[type[records.Record]], data: st.DataObject
) -> None:
    """As much as there is now and the rest later; types do not get into each other's way."""
    journals = [told(kind, happenings)[0] for kind in kinds]
    entries = [(0.0, "controller", TRIAL), *(entry for journal in journals for entry in journal)]
    place = data.draw(st.integers(0, len(entries)))
    whole, parts = Counters(Timeline()).add_all(entries), Counters(Timeline()).add_all(entries[:place])
    parts.add_all(entries[place:])

    assert parts.last_t == whole.last_t
    assert parts.timeline.incarnations == whole.timeline.incarnations
    for kind in kinds:
        assert parts.lives(kind) == whole.lives(kind)


@given(counts=st.lists(st.integers(0, 100), min_size=1, max_size=30))
def test_without_a_word_of_joins_a_counter_that_falls_begins_anew(counts: list[int]) -> None:
    """An incarnation that began with more cannot be told from the one before."""
    entries = [(0.0, "edge-0", counted(records.Phases, count)) for count in counts]
    ends = [before for before, after in pairwise(counts) if after < before]

    totals = Counters(Timeline()).add_all(entries).totals(records.Phases)
    assert totals["edge-0",].steps == sum([*ends, counts[-1]])


def test_reports_of_a_node_on_different_things_do_not_replace_each_other() -> None:
    """Messages by sender and kind, transfers by sender, direction and receiver."""
    lots = [
        records.Messages(source=source, message=message, count=1, bytes=10)
        for source in ("edge-0", "edge-1")
        for message in ("activation", "gradient")
    ]
    ways = [
        records.Transfers(name=name, direction=direction, to=to, messages=1, bytes=10, time_s=1.0, asked_s=1.0)
        for name in ("edge-0", "edge-1")
        for direction in ("up", "down")
        for to in ("", "edge-3")
    ]
    counters = Counters(Timeline()).add_all((0.0, "edge-2", each) for each in (*lots, *ways))

    assert counters.totals(records.Messages) == {("edge-2", lot.source, lot.message): lot for lot in lots}
    assert counters.totals(records.Transfers) == {("edge-2", way.name, way.direction, way.to): way for way in ways}


def test_a_total_has_what_any_incarnation_told_and_the_last_texts() -> None:
    """Unknown is not zero: it adds nothing, and is None if nobody knew."""
    lives = [
        records.Traffic(ingress_payload=1, egress_payload=2, ack_bytes=5, interface="eth0"),
        records.Traffic(ingress_payload=10, egress_payload=20, interface="eth1"),
    ]

    assert total(lives) == records.Traffic(ingress_payload=11, egress_payload=22, ack_bytes=5, interface="eth1")
    assert total(lives[:1]) is lives[0]


def test_time_counts_from_the_first_beginning() -> None:
    """A trial that is resumed has begun before; until training begins, time is that since the launch."""
    timeline = Timeline()
    assert timeline.since_began(2.0) == timeline.elapsed_s(2.0) == 2.0
    timeline.add_all([(3.0, "controller", TRIAL), (9.0, "controller", TRIAL), (5.0, "edge-0", records.Note(text="x"))])

    assert (timeline.since_began(2.0), timeline.elapsed_s(2.0), timeline.elapsed_s(10.0)) == (-1.0, 0.0, 7.0)
    assert timeline.last_t == 9.0
    assert Timeline(4.0).add_all([(9.0, "controller", TRIAL)]).began_s == 4.0


class Noted(Fold):
    """Notes by its own name which records it was given."""

    def __init__(self, name: str, notes: list[str], *parts: Fold) -> None:
        super().__init__(*parts)
        self.name, self.notes = name, notes

    @on(records.Update, records.Note)
    def _some(self, _: float, __: str, record: records.Record) -> None:
        self.notes.append(f"{self.name} some")

    @on(records.Note)
    def _note(self, _: float, node: str, record: records.Note) -> None:
        self.notes.append(f"{self.name} {node} {record.text}")


def test_parts_take_in_a_record_first_and_each_once() -> None:
    """Also one that several folds share; a record that nobody wants is nobody's."""
    notes: list[str] = []
    shared = Noted("shared", notes)
    whole = Noted("whole", notes, Noted("left", notes, shared), Noted("right", notes, shared))
    whole.add_all([(1.0, "edge-0", records.Note(text="hello")), (2.0, "controller", TRIAL)])

    assert notes == [
        f"{name} {what}" for name in ("shared", "left", "right", "whole") for what in ("some", "edge-0 hello")
    ]
    assert whole.last_t == 2.0


def test_entries_of_a_type_are_in_order() -> None:
    """With time and node."""
    entries: list[Entry] = [(1.0, "a", records.Note(text="x")), (2.0, "b", TRIAL), (3.0, "c", records.Note(text="y"))]

    assert list(of_type(entries, records.Note)) == [entries[0], entries[2]]
