"""Series and summaries: the journal's arithmetic, and verdicts."""

import math

import msgspec
import numpy as np
import pytest
from evaluated import evaluation
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core import records
from edgebed.journal.journal import JournalWriter
from edgebed.journal.outcome import outcome_of, outcome_text
from edgebed.journal.series import Series
from edgebed.journal.summary import TrialSummary, summarise


def series_of(folder, entries):
    """The series of a journal with these entries."""
    path = folder / "events.jsonl"
    with JournalWriter(path) as journal:
        journal.write_many(entries)
    return Series.from_journal(path)


def update(version, worker="edge-0", step=None, size=100, staleness=0, incarnation=0):
    """An update with what matters here."""
    return records.Update(
        worker=worker, incarnation=incarnation, step=version - 1 if step is None else step, version=version,
        base=version - 1 - staleness, staleness=staleness, entries=size // 5, bits=size * 6, bytes=size, loss=1.0,
    )  # fmt: skip


@given(sizes=st.lists(st.integers(1, 10**7), max_size=30), data=st.data())
def test_ingress_is_the_running_sum_of_the_pushes(tmp_path_factory, sizes, data):
    """After the last update it is the sum, and an evaluation has that of its own version, whenever it arrives."""
    folder = tmp_path_factory.mktemp("series")
    versions = data.draw(st.lists(st.integers(0, len(sizes)), max_size=5, unique=True))
    entries = [(index * 0.1, "server", update(index + 1, size=size)) for index, size in enumerate(sizes)]
    entries += [(99.0, "evaluator", evaluation(version=v, accuracy=0.5, loss=1.0)) for v in versions]
    series = series_of(folder, entries)

    assert series.updates.ingress_bytes.tolist() == np.cumsum(sizes, dtype=int).tolist()
    assert series.evaluations.ingress_bytes.tolist() == [sum(sizes[:version]) for version in versions]


@given(sizes=st.lists(st.tuples(st.integers(1, 10**7), st.integers(0, 10**7)), max_size=30), data=st.data())
def test_egress_is_the_running_sum_of_what_was_handed_out_before(tmp_path_factory, sizes, data):
    """With ingress it is the traffic, of each update and of each evaluation's version; of the initial model 0."""
    folder = tmp_path_factory.mktemp("series")
    versions = data.draw(st.lists(st.integers(0, len(sizes)), max_size=5, unique=True))
    entries = [
        (index * 0.1, "server", msgspec.structs.replace(update(index + 1, size=up), sent=down))
        for index, (up, down) in enumerate(sizes)
    ]
    entries += [(99.0, "evaluator", evaluation(version=v, accuracy=0.5, loss=1.0)) for v in versions]
    series = series_of(folder, entries)

    down = [0, *np.cumsum([down for _, down in sizes], dtype=int).tolist()]
    assert series.updates.egress_bytes.tolist() == down[1:]
    assert series.evaluations.egress_bytes.tolist() == [down[version] for version in versions]
    for each in (series.updates, series.evaluations):
        assert each.traffic_bytes.tolist() == (each.ingress_bytes + each.egress_bytes).tolist()


def test_an_old_journal_does_not_tell_what_went_down(tmp_path):
    """Not known is neither 0 nor an error; nor is it known again after a line that tells."""
    lines = [update(1), msgspec.structs.replace(update(2), sent=70)]
    entries = [(1.0, "server", line) for line in lines]
    entries += [(2.0, "evaluator", evaluation(version=v, accuracy=0.5, loss=1.0)) for v in (0, 2)]
    series = series_of(tmp_path, entries)

    assert np.isnan(series.updates.egress_bytes).tolist() == [True, True]
    assert np.isnan(series.evaluations.traffic_bytes).tolist() == [False, True]
    assert series.evaluations.ingress_bytes.tolist() == [0, 200]


def test_the_summary_has_what_went_up_what_came_down_and_the_sum(tmp_path, make_sample_plan):
    """They are measures that a scenario may expect; nothing was told, nothing is known."""
    told = records.Traffic(ingress_payload=130, egress_payload=950, pulls=3, pull_bytes=900)
    entries = [(1.0, "server", update(1)), (1.5, "server", told)]
    plan = make_sample_plan(expectations=(("egress_bytes", "<=", 900), ("traffic_bytes", "<", 1000)))
    summary, unknown = summarise(plan, series_of(tmp_path, entries)), summarise(plan, Series.empty())

    assert (summary.server.ingress_bytes, summary.server.egress_bytes, summary.server.traffic_bytes) == (100, 900, 1000)
    assert [each.met for each in summary.expectations] == [True, False]
    assert (unknown.server.egress_bytes, unknown.server.traffic_bytes) == (None, None)
    assert [(each.measured, each.met) for each in unknown.expectations] == [(None, False)] * 2


def test_the_series_hold_what_the_journal_says(sample_run):
    """Lengths, names, outcome and the accuracies of a whole trial."""
    series = sample_run.trials["asgd"].series

    assert len(series.updates) == 600
    assert set(series.workers) == {"edge-0", "edge-1", "phone-0", "phone-1"}
    assert series.updates.version.tolist() == list(range(1, 601))
    assert (series.evaluations.final_value, series.outcome, series.cut) == (0.975, "completed", False)
    assert series.server.refused == {"finished": 1}
    assert series.server.phases["edge-0"].steps == int((series.updates.worker == series.workers.index("edge-0")).sum())


TRIAL = records.Trial(scenario="s", trial="t", seed=1, runtime="process", nodes=2, parameters=6)


@pytest.mark.parametrize(("begins", "before"), [(True, (-1.0, -0.5)), (False, (2.0, 2.5))])
def test_what_came_before_training_has_its_time(tmp_path, begins, before):
    """Training begins 3 s after the launch, so what was 2 s after that was a second before; else the launch counts."""
    entries = [
        (2.0, "controller", records.Node(name="edge-0", state="started")),
        (2.5, "controller", records.Note(text="refused a stranger")),
        *([(3.0, "controller", TRIAL)] if begins else []),
        (7.0, "controller", records.Node(name="edge-0", state="died")),
        (8.0, "controller", records.Note(text="enough")),
    ]
    series = series_of(tmp_path, entries)
    after = (4.0, 5.0) if begins else (7.0, 8.0)

    assert [t for t, _ in series.nodes] == [before[0], after[0]]
    assert [t for t, *_ in series.notes] == [before[1], after[1]]
    assert series.reached_s["started"] == {"edge-0": 2.0}
    assert series.training_s == (3.0 if begins else None)


def test_phases_of_a_restarted_worker_add_up(tmp_path):
    """The first life's last report and the second's are both counted."""
    lives = [(5, 1.0), (9, 2.0), (2, 0.5), (4, 1.5)]
    entries = [
        (float(index), "edge-0", records.Phases(steps=steps, compute_s=spent, encode_s=0, wait_s=0, pause_s=0))
        for index, (steps, spent) in enumerate(lives)
    ]
    phases = series_of(tmp_path, entries).server.phases["edge-0"]

    assert (phases.steps, phases.compute_s) == (13, 3.5)


def test_a_summary_has_the_trials_numbers(sample_run):
    """Counts, rates, means and traffic follow from the journal."""
    summary = sample_run.trials["adacomp"].summary
    series = sample_run.trials["adacomp"].series

    assert (summary.updates, summary.server.ingress_bytes, summary.server.push_bytes_mean) == (600, 600 * 520, 520.0)
    assert summary.updates_per_s == pytest.approx(600 / series.trained_s)
    assert summary.time_s == series.trained_s >= summary.last_update_s == series.updates.t[-1]
    assert summary.ingress_payload_bytes == 600 * 600
    assert (summary.nodes_expected, summary.nodes_joined, summary.nodes_died) == (6, 6, 0)
    assert summary.server.staleness_max == series.updates.staleness.max()
    assert summary.server.worker_updates_min == np.bincount(series.updates.worker).min()
    assert (summary.server.pushes, summary.refused, summary.refused_by_code) == (600, 1, {"finished": 1})


def test_a_worker_that_never_pushed_is_the_least(tmp_path, make_sample_plan):
    """Workers of the plan without an update count as zero."""
    series = series_of(tmp_path, [(1.0, "server", update(1)), (2.0, "server", update(2))])
    summary = summarise(make_sample_plan(), series)

    assert (summary.server.worker_updates_min, summary.server.worker_updates_max) == (0, 2)


def test_pushes_that_left_a_gap_are_in_the_books(tmp_path, make_sample_plan):
    """A worker's own count shows what was refused or lost; each incarnation counts anew."""
    steps = [(0, 0), (0, 3), (1, 0), (1, 1)]
    entries = [
        (float(index), "server", update(index + 1, step=step, incarnation=incarnation))
        for index, (incarnation, step) in enumerate(steps)
    ]
    summary = summarise(make_sample_plan(), series_of(tmp_path, entries))

    assert (summary.server.pushes, summary.updates) == (4 + 2, 4)


def test_an_empty_trial_has_a_summary(make_sample_plan):
    """Nothing measured is None, not zero and not an error, and an expectation of it is not met."""
    summary = summarise(make_sample_plan(), Series.empty())

    assert (summary.outcome, summary.updates, summary.final, summary.updates_per_s) == ("unfinished", 0, {}, None)
    assert [each.met for each in summary.expectations] == [False]
    assert outcome_of([summary]).exit_code == 3


@pytest.mark.parametrize(
    ("comparison", "bound", "met"),
    [
        (">=", 0.97, True),
        (">", 0.97, False),
        ("<=", 0.97, True),
        ("<", 0.97, False),
        ("==", 0.97, True),
        ("!=", 0.97, False),
    ],
)
def test_expectations_compare_as_written(tmp_path, make_sample_plan, comparison, bound, met):
    """At the bound itself the six comparisons differ."""
    measured = evaluation(version=0, accuracy=0.97, loss=1.0, final=True)
    series = series_of(tmp_path, [(1.0, "evaluator", measured)])
    (judged,) = summarise(make_sample_plan(expectations=(("final_accuracy", comparison, bound),)), series).expectations

    assert (judged.measured, judged.met) == (0.97, met)


def test_an_accuracy_that_is_no_number_meets_nothing(tmp_path, make_sample_plan):
    """A diverged model fails its expectation, and its summary is still valid JSON."""
    measured = evaluation(version=0, accuracy=math.nan, loss=math.nan, final=True)
    series = series_of(tmp_path, [(1.0, "evaluator", measured)])
    summary = summarise(make_sample_plan(), series)

    assert [each.met for each in summary.expectations] == [False]
    assert msgspec.json.decode(msgspec.json.encode(summary), type=TrialSummary).value("final_loss") is None


def test_only_a_final_evaluation_gives_the_final_accuracy(tmp_path, make_sample_plan):
    """A trial that ended before has a last accuracy and its version instead."""
    entries = [
        (1.0, "evaluator", evaluation(version=50, accuracy=0.9, loss=0.3)),
        (2.0, "evaluator", evaluation(version=1500, accuracy=0.8, loss=0.4)),
        (3.0, "controller", records.Ended(outcome="interrupted", reason="Ctrl-C")),
    ]
    summary = summarise(make_sample_plan(), series_of(tmp_path, entries))

    assert (summary.final, summary.time_s) == ({}, None)
    assert (summary.best["accuracy"], summary.last["accuracy"], summary.last_version) == (0.9, 0.8, 1500)
    assert outcome_text(summary) == "interrupted: Ctrl-C; accuracy 80.00 % at update 1,500"


def test_dead_and_missing_nodes_are_a_warning(tmp_path, make_sample_plan):
    """Each with its reason; a fleet without losses has no warning."""
    states = [("edge-0", "died"), ("edge-1", "missing"), ("evaluator", "died"), ("phone-0", "joined")]
    entries = [(1.0, "controller", records.Node(name=name, state=state, reason="why")) for name, state in states]

    assert summarise(make_sample_plan(), series_of(tmp_path, entries)).warnings == (
        "edge-0 died: why",
        "edge-1 missing: why",
        "evaluator died: why",
    )
    assert summarise(make_sample_plan(), Series.empty()).warnings == ()


def test_of_many_dead_nodes_the_first_are_named(tmp_path, make_sample_plan):
    """Each with its reason; the others are counted, workers apart from the server and the evaluator."""
    names = [f"edge-{k}" for k in range(5)]
    entries = [(1.0, "controller", records.Node(name=name, state="died", reason="why")) for name in names]
    entries.insert(0, (0.5, "controller", records.Node(name="edge-0", state="missing", reason="was late")))
    warnings = summarise(make_sample_plan(workers=names), series_of(tmp_path, entries)).warnings

    assert warnings == (
        "5 workers died, 1 missing", "edge-0 died: why", "edge-1 died: why", "edge-2 died: why", "and 2 more"
    )  # fmt: skip


def test_a_server_that_was_restored_counts_with_both_incarnations(tmp_path):
    """Updates that it lost are in no model, and were paid for; the traffic of other nodes is their own."""
    entries = [
        (1.0, "controller", records.Node(name="server", state="joined", incarnation=1)),
        *((1.0 + version, "server", update(version)) for version in (1, 2, 3)),
        (4.5, "server", records.Traffic(ingress_payload=300, egress_payload=70, pull_bytes=60)),
        (5.0, "controller", records.Node(name="server", state="joined", incarnation=2)),
        (5.0, "controller", records.Restored(version=1, incarnation=2)),
        (6.0, "server", update(2)),
        (6.5, "server", records.Traffic(ingress_payload=400, egress_payload=80, pull_bytes=70)),
        (7.0, "store", records.Traffic(ingress_payload=9, egress_payload=9)),
    ]
    series = series_of(tmp_path, entries)

    assert series.updates.version.tolist() == [1, 2]
    assert series.updates.t.tolist() == [2.0, 6.0]
    assert series.updates.ingress_bytes.tolist() == [100, 400]
    assert [(t, told.ingress_payload, told.egress_payload) for t, told in series.traffic] == [
        (4.5, 300, 70),
        (6.5, 700, 150),
    ]
    assert list(series.traffic_of) == ["store"]


def test_a_version_counts_once_however_often_it_is_evaluated(tmp_path):
    """The evaluator of a resumed trial measures again what the server still has; the final model's measure stays."""
    told = [(0, 0.1), (20, 0.2), (0, 0.11), (20, 0.21), (40, 0.4)]
    entries = [(0.01 * version, "server", update(version)) for version in range(1, 41)]
    entries += [(9.0, "evaluator", evaluation(version=v, accuracy=a, loss=1.0)) for v, a in told]
    entries.append((9.5, "evaluator", evaluation(version=40, accuracy=0.41, loss=1.0, final=True)))
    evaluations = series_of(tmp_path, entries).evaluations

    assert evaluations.version.tolist() == [0, 20, 40]
    assert evaluations.values.tolist() == [0.1, 0.2, 0.41]


def test_what_a_log_took_is_summed_over_the_lives_of_the_server(make_sample_plan, tmp_path):
    """Each counts anew; its share is of the time in which the server was there."""

    def joined(incarnation):
        return records.Node(name="server", state="joined", incarnation=incarnation)

    def appended(entries, saved=0):
        return records.Appended(
            entries=entries, bytes=100 * entries, time_s=0.5 * entries, append_s=0.01 * entries,
            syncs=2, waited=4, waited_s=0.02, saved=saved,
        )  # fmt: skip

    lives = [joined(1), appended(5), appended(20), joined(2), appended(10, saved=7)]
    series = series_of(tmp_path, [(float(t), "server" if t else "controller", one) for t, one in enumerate(lives)])
    summary = summarise(make_sample_plan(), series)

    assert (summary.log_entries, summary.log_bytes, summary.log_syncs) == (30, 3000, 4)
    assert summary.log_share == pytest.approx(0.3 / 15.0)
    assert summary.log_wait_s == pytest.approx(0.005)
    assert summary.log_saved == 7
