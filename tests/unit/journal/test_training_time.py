"""Training time: from the start of training to its end, with outages, and without the time between two controllers."""

from itertools import pairwise

import msgspec
import pytest
from evaluated import evaluation
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core import records
from edgebed.core.records import Continued, Ended, Evaluated, Fault, Finished, Joined, Node, Restored, Step, Update
from edgebed.journal.folds import Timeline
from edgebed.journal.journal import JournalWriter
from edgebed.journal.run_folder import TrialFolder
from edgebed.journal.series import Series
from edgebed.journal.summary import summarise
from edgebed.journal.trial_state import TrialState
from edgebed.journal.verdict.fidelity import judge
from edgebed.reports.live.progress import ended_line
from edgebed.reports.run.faults_text import fault_rows, faults_line
from edgebed.running.resume import past_of

TRIAL = records.Trial(scenario="s", trial="t", seed=1, runtime="process", nodes=4, parameters=1)


def trial(trained_s=0.0):
    """Training starts, or goes on after so many seconds of it."""
    return msgspec.structs.replace(TRIAL, trained_s=trained_s)


def update(version, worker="edge-0", incarnation=1):
    """An update that was applied; the worker's first is its step 0 in each incarnation."""
    return Update(
        worker=worker, incarnation=incarnation, step=version - 1, version=version, base=version - 1, staleness=0,
        entries=1, bits=32, bytes=100, loss=1.0,
    )  # fmt: skip


def fault(action, target="server", asked_s=0.0):
    """Something was done to a node."""
    return Fault(name="f-1", action=action, target=target, asked_s=asked_s)


def by(entries):
    """Entries of the controller, unless the record is another's."""
    names = {Update: "server", Finished: "server", Joined: "server", Evaluated: "evaluator"}
    return [(t, names.get(type(record), "controller"), record) for t, record in entries]


def written(folder, entries):
    """A trial's folder with a journal of these."""
    trial_folder = TrialFolder(folder)
    folder.mkdir(exist_ok=True)
    with JournalWriter(trial_folder.journal) as journal:
        journal.write_many(by(entries))
    return trial_folder


def series_of(folder, entries, stop_time_s=None):
    """The series of a journal with these."""
    return Series.from_journal(written(folder, entries).journal, stop_time_s)


HALF = [
    (5.0, trial()),
    *((5.0 + version / 10, update(version)) for version in range(1, 151)),
    (20.0, fault("kill", asked_s=20.0)),
    (20.0, Node(name="server", state="died", incarnation=1)),
]
"""A server that makes ten updates a second, and dies after 15 s of training."""


@pytest.mark.parametrize(
    ("end", "stop_time_s", "time_s"),
    [
        ([(35.5, Finished(version=150, reason="30 s have passed")), (36.0, Ended(outcome="completed", reason=""))],
         30.0, 30.0),
        ([(35.5, Finished(version=150, reason="")), (36.0, Ended(outcome="completed", reason=""))], None, 30.5),
        ([(25.0, Ended(outcome="failed", reason="no update was applied for 5 s"))], 30.0, 20.0),
        ([], 30.0, 15.0),
    ],
    ids=["its time was up", "no limit", "failed", "breaks off"],
)  # fmt: skip
def test_time_is_that_of_the_training_with_outages(tmp_path, make_sample_plan, end, stop_time_s, time_s):
    """A rate is over all of it; where a limit was set, what came after it is no training."""
    summary = summarise(make_sample_plan(), series_of(tmp_path, [*HALF, *end], stop_time_s))

    assert (summary.time_s, summary.last_update_s) == pytest.approx((time_s, 15.0))
    assert summary.updates_per_s == pytest.approx(150 / time_s)
    assert summary.has_idle_end == (time_s > 15.0)


def test_updates_after_the_limit_are_training(tmp_path, make_sample_plan):
    """They are in the model, so their time counts."""
    entries = [(0.0, trial()), *((each, update(each)) for each in (1, 2, 3)), (9.0, Finished(version=3, reason=""))]

    assert summarise(make_sample_plan(), series_of(tmp_path, entries, 2.0)).time_s == 3.0


@pytest.mark.parametrize(("last_s", "is_reported"), [(9.4, True), (9.6, False)])
def test_the_last_update_has_its_time_where_training_went_on_long_after_it(
    tmp_path, make_sample_plan, last_s, is_reported
):
    """A twentieth of the training and more."""
    entries = [
        (0.0, trial()), (last_s, update(1)), (10.0, Finished(version=1, reason="")),
        (10.0, Ended(outcome="completed", reason="")),
    ]  # fmt: skip
    line, _ = ended_line(summarise(make_sample_plan(), series_of(tmp_path, entries)), None)

    assert "1 update in 10.0 s" in line
    assert (f", the last at {last_s:.2f} s" in line) == is_reported


@pytest.mark.parametrize(("counts", "every", "end_s"), [((3, 5, 4), 1, 8.0), ((2, 2), 3, 30.0), ((7, 1), 1, 0.5)])
def test_steps_a_second_are_those_of_all_of_the_training(tmp_path, make_sample_plan, counts, every, end_s):
    """The slowest shard's are the trial's; a step stands for all batches until the next."""
    names = [f"edge-{k}" for k in range(len(counts))]
    plan = make_sample_plan(workers=names)
    entries = [(0.0, "controller", trial()), (0.0, "server", records.Resumed(history=0, step=0))]
    entries += [
        (0.25 * end_s, name, Step(step=every * k, every=every))
        for name, count in zip(names, counts, strict=True) for k in range(count)
    ]  # fmt: skip
    folder = TrialFolder(tmp_path)
    with JournalWriter(folder.journal) as journal:
        journal.write_many([*entries, (end_s, "server", Finished(version=0, reason=""))])
    series = Series.from_journal(folder.journal)
    summary = summarise(plan, series)

    assert summary.shards.shard_steps_per_s == pytest.approx({
        name: every * count / end_s for name, count in zip(names, counts, strict=True)
    })  # fmt: skip
    assert summary.shards.steps_per_s == pytest.approx(every * min(counts) / end_s)


# --- away until the end -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("node", ["server", "edge-0"])
@pytest.mark.parametrize("returns", [(), ("launch",)], ids=["for good", "launched, and not back"])
def test_a_node_that_is_not_back_is_away_until_the_end(tmp_path, make_sample_plan, node, returns):
    """It is in the line, in the table, and in the longest wait for a node that was to be back."""
    entries = [
        (1.0, trial()), (2.0, update(1)), (2.0, update(2, "edge-1")),
        (3.0, fault("kill", node, asked_s=3.0)), (3.0, Node(name=node, state="died", incarnation=1)),
        *((29.0, fault(action, node, asked_s=29.0)) for action in returns),
        (31.0, Finished(version=2, reason="")), (31.0, Ended(outcome="completed", reason="")),
    ]  # fmt: skip
    series = series_of(tmp_path, entries, 30.0)
    summary = summarise(make_sample_plan(), series)
    rows = {row[1]: (row[5], row[6]) for row in fault_rows(series.faults)}

    assert summary.gone == {node: 28.0}
    assert f"longest away: {node} 28.0 s until the end: not back" in faults_line(summary, series.faults)
    assert summary.back_s == (2.0 if returns else None)
    plan = msgspec.structs.replace(make_sample_plan(), expectations=(("back_s", "<=", 3.0),))
    assert [each.met for each in summarise(plan, series).expectations] == [False], "2 s are the least that it takes"
    away = "28.0 s until the end: not back"
    assert rows == ({"kill": ("", ""), "launch": ("not back", away)} if returns else {"kill": ("", away)})


def test_a_node_that_was_back_and_then_died_of_itself_is_not_that_faults_doing(tmp_path, make_sample_plan):
    """It is away until the end all the same."""
    entries = [
        (0.0, trial()), (1.0, fault("cut", "edge-0", 1.0)), (2.0, fault("heal", "edge-0", 2.0)), (2.5, update(1)),
        (6.0, Node(name="edge-0", state="died", incarnation=1)), (10.0, Finished(version=1, reason="")),
    ]  # fmt: skip
    series = series_of(tmp_path, entries)

    assert [done.away_s for done in series.faults] == [None, 1.5]
    assert summarise(make_sample_plan(), series).gone == {"edge-0": 4.0}


@pytest.mark.parametrize(
    ("node", "sign"),
    [("evaluator", evaluation(1)), ("edge-0", Step(step=1)), ("edge-0", update(1)), ("server", update(1, "edge-1"))],
)
def test_a_node_is_back_when_it_does_its_work(tmp_path, node, sign):
    """An evaluator that measures, a shard that learns: no server tells of them."""
    entries = [
        (0.0, "controller", trial()), (1.0, "controller", fault("freeze", node, 1.0)),
        (2.0, "controller", fault("thaw", node, 2.0)), (2.5, node, sign),
        (9.0, "server", Finished(version=1, reason="")),
    ]  # fmt: skip
    folder = TrialFolder(tmp_path)
    with JournalWriter(folder.journal) as journal:
        journal.write_many(entries)
    series = Series.from_journal(folder.journal)

    assert [(done.back_s, done.away_s) for done in series.faults] == [(None, None), (0.5, 1.5)]
    assert series.gone == {}


# --- a trial that is resumed ------------------------------------------------------------------------------------------

RESUMED = [
    (10.0, trial()),
    (12.0, update(1)),
    (12.5, evaluation(1, 0.4)),
    (15.0, fault("freeze", "edge-2", 15.0)),
    (16.0, records.HostLoad(busy=0.1, steal=0.0, load=0.1, lag_s=0.0)),
    (16.0, Continued(trained_s=6.0)),
    (16.0, Node(name="server", state="expected", incarnation=1)),
    (40.0, Node(name="server", state="joined", incarnation=2)),
    (17.0, update(2)),
    (19.0, update(3)),
    (41.0, Restored(version=3, incarnation=2, replayed=3)),
    (41.0, trial(9.0)),
    (42.0, update(4, incarnation=2)),
    (43.0, fault("kill", "edge-1", 43.0)),
    (44.0, evaluation(4, 0.6)),
    (45.0, Finished(version=4, reason="")),
    (45.5, Ended(outcome="completed", reason="")),
]
"""The controller dies after 6 s of training, nodes go on for 3 s, and 22 s later training goes on."""


def test_training_stands_still_without_a_controller(tmp_path, make_sample_plan):
    """In updates, evaluations, faults and nodes: 4 s are trained after the 9 s."""
    series = series_of(tmp_path, RESUMED)
    summary = summarise(make_sample_plan(), series)

    assert series.updates.t.tolist() == [2.0, 7.0, 9.0, 10.0]
    assert series.evaluations.t.tolist() == [2.0, 10.0]
    assert [(done.t, done.asked_t) for done in series.faults] == [(5.0, 5.0), (11.0, 11.0)]
    assert [(t, node.state) for t, node in series.nodes] == [(6.0, "expected"), (6.0, "joined")]
    assert (summary.time_s, series.last_t, series.length_s, series.training_s) == (13.0, 13.5, 45.5, 10.0)
    assert summary.updates_per_s == pytest.approx(4 / 13.0)


def test_updates_without_a_controller_degrade_the_verdict(tmp_path, make_sample_plan):
    """They are counted, with the time in which they were made."""
    series = series_of(tmp_path, RESUMED)
    summary, fidelity = summarise(make_sample_plan(), series), judge(make_sample_plan(), series)

    assert (summary.unobserved_s, summary.unobserved_updates) == (3.0, 2)
    assert fidelity.causes[0] == "unobserved"
    assert fidelity.reasons[0].startswith("unobserved: 2 of 4 updates, in 3.00 s, were made without a controller")


def test_nodes_that_end_with_their_controller_were_observed(tmp_path, make_sample_plan):
    """What a log brings of its last second is no more than what the controller had not heard yet."""
    entries = [(t - 2.0 if record in (update(2), update(3)) else t, record) for t, record in RESUMED]
    entries = [(t, trial(7.0) if record == trial(9.0) else record) for t, record in entries]
    series = series_of(tmp_path, entries)

    assert (series.unobserved_s, series.server.unobserved_updates, series.trained_s) == (1.0, 1, 11.0)
    assert "unobserved" not in judge(make_sample_plan(), series).causes


def test_a_worker_whose_end_nobody_heard_was_at_an_update(tmp_path):
    """One more is begun, and lost with it."""
    joined = [(9.0, Node(name="edge-0", state="joined", incarnation=1)), (10.5, Joined(worker="edge-0", incarnation=1))]
    again = [(40.5, Node(name="edge-0", state="joined", incarnation=2))]
    entries = [joined[0], RESUMED[0], joined[1], *RESUMED[1:3], *RESUMED[5:11], *again, RESUMED[11]]
    accounting = series_of(tmp_path, entries).accounting

    assert accounting.closes
    (ledger,) = accounting.lives
    assert (ledger.begun, ledger.applied, ledger.lost_with_worker) == (4, 3, 1)


def test_a_trial_that_goes_on_after_a_second_death_stands_still_twice(tmp_path):
    """Also where training had not started again, and where times of nodes that went on are later than the present."""
    again = [
        (46.0, Continued(trained_s=13.0)), (70.0, update(5)), (50.0, Continued(trained_s=38.0)), (52.0, trial(38.0)),
        (53.0, update(6)), (54.0, Finished(version=6, reason="")),
    ]  # fmt: skip
    series = series_of(tmp_path, [*RESUMED[:-2], *again])

    assert series.updates.t.tolist() == [2.0, 7.0, 9.0, 10.0, 38.0, 39.0]
    assert (series.trained_s, series.last_t) == (40.0, 40.0)
    assert (series.unobserved_s, series.server.unobserved_updates) == (28.0, 3)


def test_what_is_known_of_a_trial_is_how_long_it_had_trained(tmp_path):
    """What came after the end of training is not observed of it; a fault and an evaluation have times of training."""
    past = past_of(written(tmp_path / "killed", RESUMED[:5]))
    assert past is not None
    assert (past.began_s, past.until_s, past.trained_s) == (10.0, 16.0, 6.0)
    assert (past.evaluated, past.triggered_s) == ((2.5, 1), {("f-1", "edge-2"): 5.0})
    again = past_of(written(tmp_path / "again", RESUMED[:-2]))
    assert again is not None
    assert (again.began_s, again.until_s, again.trained_s) == (32.0, 44.0, 12.0)
    assert (again.evaluated, again.triggered_s["f-1", "edge-1"]) == ((12.0, 4), 11.0)
    starting = past_of(written(tmp_path / "starting", RESUMED[:10]))
    assert starting is not None
    assert (starting.until_s, starting.trained_s) == (40.0, 9.0)
    ended = [(16.5, Finished(version=1, reason="")), (20.0, Ended(outcome="interrupted", reason=""))]
    interrupted = past_of(written(tmp_path / "interrupted", [*RESUMED[:5], *ended]))
    assert interrupted is not None
    assert (interrupted.until_s, interrupted.trained_s) == (20.0, 6.5)


def test_while_nodes_start_again_no_training_is_shown(make_sample_plan):
    """How long they have been starting is: training time stands still."""
    state = TrialState(make_sample_plan())
    shown = []
    for t, node, record in by(RESUMED[:-1]):
        state.add(t, node, record)
        status = state.status(t, 0.0)
        shown.append((t, status.state, status.elapsed_s))

    assert shown[4:8] == [(16.0, "training", 6.0), *((t, "starting", t - 16.0) for t in (16.0, 16.0, 40.0))]
    assert shown[11:13] == [(41.0, "training", 9.0), (42.0, "training", 10.0)]


@given(
    gaps=st.lists(st.floats(0.0, 100.0), min_size=1, max_size=5),
    alone=st.lists(st.floats(0.0, 60.0), min_size=5, max_size=5),
)
def test_time_of_training_never_runs_backwards(gaps, alone):
    """However long nodes went on alone, and however soon the trial was resumed; only they and training take time."""
    timeline, now, trained_s, passed = Timeline(), 3.0, 0.0, [0.0]
    timeline.add(now, "controller", trial())
    for gap_s, alone_s in zip(gaps, alone, strict=False):
        now, trained_s = now + 1.0, trained_s + 1.0
        for t, record in (
            (now, update(1)),
            (now, Continued(trained_s=trained_s)),
            (now + alone_s, update(2)),
            (now + gap_s, Restored(version=2)),
            (now + gap_s, trial(trained_s + alone_s)),
        ):
            timeline.add(t, "server", record)
            if isinstance(record, Update | records.Trial):
                passed.append(timeline.since_began(t))
        now, trained_s = now + gap_s, trained_s + alone_s

    assert all(later >= earlier - 1e-9 for earlier, later in pairwise(passed))
    assert passed[-1] == pytest.approx(len(gaps) + sum(alone[: len(gaps)]))
    assert timeline.unobserved_s == pytest.approx(sum(alone[: len(gaps)]))
