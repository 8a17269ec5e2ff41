"""Evaluations that were due and were not made are counted from the journal, and said."""

import dataclasses
from itertools import accumulate

import numpy as np
import pytest
from evaluated import evaluation
from hypothesis import given
from hypothesis import strategies as st
from node_plans import plan_of_role

from edgebed.core import records
from edgebed.core.plan import TrainingPlan
from edgebed.journal.accounts.skipped_evaluations import skipped_text, skipped_times, skipped_versions
from edgebed.journal.journal import JournalWriter
from edgebed.journal.series import Series
from edgebed.journal.summary import summarise
from edgebed.journal.verdict.fidelity import judge


def plan_of(**evaluated):
    """A server, an evaluator and a worker."""
    roles = [("server", "server"), ("evaluator", "evaluator"), ("edge-0", "worker")]
    nodes = tuple(
        plan_of_role(
            node=name, role=role, device_class=name.split("-")[0], num_examples=10,
            **({"evaluate_every_updates": None} | evaluated),
        )
        for name, role in roles
    )  # fmt: skip
    return TrainingPlan(scenario="s", trial="t", question="?", seed=1, nodes=nodes)


def series_of(folder, rounds, measured, end_s=10.0):
    """A trial of these rounds, in updates each, in which these versions were measured."""
    path = folder / "events.jsonl"
    path.unlink(missing_ok=True)
    ends = [*accumulate(rounds)]
    with JournalWriter(path) as journal:
        journal.write(0.0, "controller", records.Trial(scenario="s", trial="t", seed=1, runtime="process", nodes=3,
                                                       parameters=10))  # fmt: skip
        for number, (end, size) in enumerate(zip(ends, rounds, strict=True), 1):
            for version in range(end - size + 1, end + 1):
                stale = int(number % 2 and end > size)
                record = records.Update(
                    worker="edge-0", incarnation=1, step=version - 1, version=version, base=end - size - stale,
                    staleness=stale, entries=1, bits=32, bytes=10, loss=1.0,
                )  # fmt: skip
                journal.write(number / 100, "server", record)
        for version in measured:
            final = version == ends[-1]
            record = evaluation(version=version, accuracy=0.5, loss=1.0, final=final)
            journal.write(end_s - 0.1, "evaluator", record)
        journal.write(end_s, "controller", records.Ended(outcome="completed", reason="done"))
    return Series.from_journal(path)


@given(
    rounds=st.lists(st.integers(1, 7), min_size=1, max_size=20), every=st.integers(1, 10), drawn=st.data(),
)  # fmt: skip
def test_what_was_due_and_is_not_there_is_what_was_skipped(tmp_path_factory, rounds, every, drawn):
    """Of the models that there were, each that is the first at or beyond a multiple is due."""
    models = [0, *accumulate(rounds)]
    due = sorted({min(model for model in models if model >= k) for k in range(0, models[-1] + 1, every)})
    lost = drawn.draw(st.sets(st.sampled_from(due))) - {models[-1]}
    measured = sorted(set(due) - lost | {models[-1]})
    series = series_of(tmp_path_factory.mktemp("run"), rounds, measured)
    plan = plan_of(evaluate_every_updates=every)

    assert skipped_versions(plan, series) == tuple(sorted(lost))
    assert bool(skipped_text(plan, series)) == bool(lost)


def test_they_are_said_and_named_in_the_verdict_and_degrade_nothing(tmp_path):
    """Watching is no condition of the experiment."""
    plan = plan_of(evaluate_every_updates=10)
    series = series_of(tmp_path, [1] * 100, [0, 10, 40, 50, 60, 70, 80, 90, 100])
    text = "2 evaluations skipped, of updates 20, 30: the evaluator was away, or did not keep up, or the server lost"
    fidelity = judge(plan, series)

    assert skipped_text(plan, series).startswith(text)
    assert summarise(plan, series).warnings[-1].startswith(text)
    assert [remark for remark in fidelity.remarks if remark.startswith(f"evaluations: {text}")]
    assert not [reason for reason in fidelity.reasons if "evaluations" in reason]


def test_many_are_counted_and_the_first_named(tmp_path):
    """With one update a thousand would fill a page."""
    text = skipped_text(plan_of(evaluate_every_updates=1), series_of(tmp_path, [1] * 1200, [0, 1100, 1200]))

    assert text.startswith("1,198 evaluations skipped, of updates 1, 2, 3, 4, 5, 6 and 1,192 more: ")


@pytest.mark.parametrize(("trained_s", "made", "skipped"), [(10.0, 11, 0), (10.0, 10, 0), (10.4, 4, 6), (0.0, 1, 0)])
def test_evaluations_at_times_are_counted_by_the_time_that_was_trained(tmp_path, trained_s, made, skipped):
    """Each comes an interval after the last; which moments are missing nobody can say."""
    series = series_of(tmp_path, [1] * 20, range(made), end_s=trained_s)
    plan = plan_of(evaluate_every_s=1.0)

    assert skipped_times(plan, series) == skipped
    assert skipped_versions(plan, series) == ()
    assert bool(skipped_text(plan, series)) == bool(skipped)


def test_a_trial_without_updates_or_evaluations_has_skipped_nothing(tmp_path):
    """It never trained, or was never measured."""
    plan = plan_of(evaluate_every_updates=10)

    assert skipped_text(plan, Series.empty()) == ""
    series = series_of(tmp_path, [1] * 20, [0, 20])
    assert skipped_text(plan, dataclasses.replace(series, evaluations=Series.empty().evaluations)) == ""
    assert np.array_equal(series.evaluations.version, [0, 20])
