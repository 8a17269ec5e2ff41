"""How long the nodes took to come up is computed from the journal alone, whenever it breaks off."""

import msgspec
import pytest

from edgebed.core import records
from edgebed.journal.journal import JournalWriter
from edgebed.journal.series import Series
from edgebed.journal.start_up import StartUp, start_up_lines, start_up_of
from edgebed.journal.summary import TrialSummary, summarise

WORKERS = ("edge-0", "edge-1")
NODES = ("server", "evaluator", *WORKERS)


def node(name, state):
    """A node's new state."""
    return records.Node(name=name, state=state)


def trial(runtime="docker"):
    """Training starts."""
    return records.Trial(scenario="s", trial="t", seed=1, runtime=runtime, nodes=4, parameters=640)


def update(worker, version):
    """A worker's push was applied."""
    return records.Update(
        worker=worker, incarnation=1, step=0, version=version, base=0, staleness=0, entries=1, bits=1, bytes=1, loss=1.0
    )


def journal():
    """Four nodes come up one after the other; edge-1 says hello before it is heard to have started."""
    yield from ((0.0, node(name, "expected")) for name in NODES)
    yield from ((1.0 + k, node(name, "started")) for k, name in enumerate(NODES[:3]))
    yield from ((5.0 + k, node(name, "joined")) for k, name in enumerate(NODES))
    yield from ((9.0, node(name, "ready")) for name in NODES)
    yield 10.0, trial()
    yield from ((10.0, node(name, "running")) for name in NODES)
    yield 10.5, update("edge-0", 1)
    yield 11.0, update("edge-0", 2)
    yield 12.5, update("edge-1", 3)
    yield 13.0, update("edge-0", 4)


@pytest.fixture
def plan(make_sample_plan):
    """Two workers."""
    return make_sample_plan(workers=WORKERS)


@pytest.fixture
def series_of(tmp_path):
    """`series_of(lines)`: the series of a journal of (t, record) lines."""

    def write(lines):
        path = tmp_path / "events.jsonl"
        path.unlink(missing_ok=True)
        with JournalWriter(path) as writer:
            writer.write_many((t, "controller", record) for t, record in lines)
        return Series.from_journal(path)

    return write


def test_each_phase_ends_with_its_last_node(plan, series_of):
    """In seconds since the launch, also after training has started."""
    expected = StartUp(nodes=4, started_s=8.0, joined_s=8.0, training_s=10.0, contributed_s=12.5)

    assert start_up_of(plan, series_of(journal())) == expected


@pytest.mark.parametrize(
    ("until", "known"),
    [(0.5, ()), (4.0, ()), (8.0, ("started_s", "joined_s")), (9.5, ("started_s", "joined_s")),
     (12.0, ("started_s", "joined_s", "training_s"))],
)  # fmt: skip
def test_a_phase_that_was_not_reached_is_unknown(plan, series_of, until, known):
    """Wherever the journal breaks off."""
    start_up = start_up_of(plan, series_of(line for line in journal() if line[0] <= until))
    reached = {name for name, value in msgspec.structs.asdict(start_up).items() if value is not None}

    assert reached == {"nodes", *known}


def test_a_node_that_starts_again_counts_once(plan, series_of):
    """Its second life is no start-up."""
    again = [(20.0, node("edge-0", "died")), (21.0, node("edge-0", "joined"))]

    assert start_up_of(plan, series_of([*journal(), *again])) == start_up_of(plan, series_of(journal()))


def test_the_simulation_starts_nothing(plan, series_of):
    """Nor does a trial without a journal."""
    simulated = [(t, trial("simulation") if isinstance(record, records.Trial) else record) for t, record in journal()]

    assert start_up_of(plan, series_of(simulated)) is None
    assert start_up_of(plan, Series.empty()) is None


def test_the_summary_keeps_it_and_one_without_it_is_read_all_the_same(plan, series_of):
    """As one of a simulation."""
    summary = summarise(plan, series_of(journal()))
    content = msgspec.json.encode(summary)
    without = msgspec.json.decode(content)
    del without["start_up"]

    assert msgspec.json.decode(content, type=TrialSummary).start_up == summary.start_up
    assert msgspec.convert(without, TrialSummary).start_up is None


def test_the_text_says_what_is_known_and_no_more(plan, series_of):
    """A reader takes a missing figure for a missing phase."""
    assert list(start_up_lines(start_up_of(plan, series_of(journal())))) == [
        "4 nodes started in 8.00 s, joined in 8.00 s, ready in 10.0 s",
        "every worker had an accepted update after 12.5 s",
    ]
    beginning = start_up_of(plan, series_of(line for line in journal() if line[0] < 5.0))
    assert list(start_up_lines(beginning)) == ["4 nodes did not all start"]
