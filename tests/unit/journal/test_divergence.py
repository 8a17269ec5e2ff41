"""Trials that diverge: when, what was not finite first, and that they are over."""

import math

import msgspec
import numpy as np
import pytest
from evaluated import evaluation

from edgebed.core import records
from edgebed.journal.columns.updates import Updates
from edgebed.journal.folds import Timeline
from edgebed.journal.journal import JournalWriter
from edgebed.journal.outcome import outcome_text
from edgebed.journal.series import Series
from edgebed.journal.series_divergence import divergence_of
from edgebed.journal.series_steps import Steps
from edgebed.journal.summary import summarise

ENDED = (99.0, "controller", records.Ended(outcome="completed", reason="4 updates were applied"))
SAID = records.Diverged(incarnation=0, step=1, what="buffer", tensor="mask")


def update(version, loss=1.0, worker="edge-0"):
    """The update that a worker's push number `version - 1` became."""
    said = records.Update(
        worker=worker, incarnation=0, step=version - 1, version=version, base=version - 1, staleness=0, entries=1,
        bits=1, bytes=1, loss=loss,
    )  # fmt: skip
    return float(version), "server", said


def evaluated(version, loss=1.0):
    """A measurement of that version."""
    return version + 0.5, "evaluator", evaluation(version=version, accuracy=0.5, loss=loss, final=version == 4)


@pytest.fixture
def series_of(tmp_path):
    """The series of a journal with these entries."""

    def series_of(*entries):
        path = tmp_path / "events.jsonl"
        with JournalWriter(path) as journal:
            journal.write_many(entries)
        return Series.from_journal(path)

    return series_of


def updates(*losses):
    """One after the other."""
    return [update(version, loss) for version, loss in enumerate(losses, start=1)]


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_is_an_outcome(series_of, make_sample_plan, loss):
    """The first such update is named, in the summary and in its JSON; the trial is over, and meets nothing."""
    summary = summarise(make_sample_plan(expectations=()), series_of(*updates(1.0, loss, 1.0, loss), ENDED))

    assert (summary.outcome, summary.diverged_at, summary.ran_to_end, summary.met) == ("diverged", 2, True, False)
    assert outcome_text(summary) == "diverged at update 2: loss at edge-0 is not finite"
    assert summary.warnings == ()
    assert b'"diverged_at":2' in msgspec.json.encode(summary)


def test_the_worker_says_which_tensor_it_was(series_of):
    """Its word tells more than the loss of the same update."""
    first = series_of(*updates(1.0, math.nan), (2.0, "edge-0", SAID), ENDED).first_not_finite

    assert (first.update, first.step, first.text) == (2, 1, "buffer mask at edge-0")


def test_an_update_that_is_not_finite_comes_before_the_loss_that_it_spoils(series_of):
    """One step later the loss is seen; the step told is that of the update."""
    said = records.Diverged(incarnation=0, step=0, what="gradient", tensor="out.weight")
    first = series_of(*updates(1.0, math.nan), (1.0, "edge-0", said), ENDED).first_not_finite

    assert (first.update, first.text) == (1, "gradient of out.weight at edge-0")


def test_what_is_not_finite_and_spoils_no_loss_is_a_warning(series_of, make_sample_plan):
    """A compression may have left it out; the trial has completed."""
    summary = summarise(make_sample_plan(), series_of(*updates(1.0, 1.0), (2.0, "edge-0", SAID), ENDED))

    assert (summary.outcome, summary.diverged) == ("completed", None)
    assert summary.warnings == ("buffer mask at edge-0 is not finite at update 2, though every loss is",)


def test_a_push_that_was_never_applied_is_not_what_was_first(series_of):
    """Its number is nobody's update."""
    said = msgspec.structs.replace(SAID, step=7)
    first = series_of(*updates(1.0, math.nan), (1.0, "edge-0", said), ENDED).first_not_finite

    assert first.text == "loss at edge-0"


def test_the_evaluation_alone_tells_of_a_last_update_that_spoilt_the_model(series_of):
    """No worker has computed with it."""
    said = records.Diverged(step=4, what="parameter", tensor="out.weight")
    entries = [*updates(1.0, 1.0, 1.0, 1.0), (4.5, "evaluator", said), evaluated(4, math.nan), ENDED]
    series = series_of(*entries)

    assert (series.outcome, series.first_not_finite.update) == ("diverged", 4)
    assert series.first_not_finite.text == "parameter out.weight at evaluator"


@pytest.mark.parametrize(
    ("headlines", "outcome"),
    [((math.nan, 0.5, 0.6), "completed"), ((0.5, math.nan, 0.6), "completed"), ((0.5, math.nan, math.inf), "diverged")],
)
def test_a_headline_without_a_value_at_first_is_no_divergence(series_of, headlines, outcome):
    """Such as a correlation of a model that gives the same for all; of the last model it is one."""
    told = [
        (version + 0.5, "evaluator", evaluation(version=version, accuracy=value, loss=1.0, final=version == 2))
        for version, value in enumerate(headlines)
    ]
    series = series_of(*updates(1.0, 1.0), *told, ENDED)

    assert series.outcome == outcome
    if outcome == "diverged":
        assert (series.first_not_finite.update, series.first_not_finite.what) == (1, "accuracy")


def test_a_share_beyond_1_is_a_warning(series_of, make_sample_plan):
    """It may have been one before anything was learnt."""
    told = [
        (version + 0.5, "evaluator", evaluation(version=version, accuracy=value, loss=1.0, final=version == 2))
        for version, value in enumerate((0.5, 1.5, 2.0))
    ]
    summary = summarise(make_sample_plan(), series_of(*updates(1.0, 1.0), *told, ENDED))

    assert summary.warnings == (
        "accuracy is 1.5 at update 1, and a share is from 0 to 1; its objective declares unit='share'",
    )


def test_a_day_of_lives_that_all_diverge_is_gone_through_once():
    """Each says once what was not finite; nobody looks at all updates for each of them, which takes half a minute."""
    places = np.arange(400_000)
    names = ("t", "worker", "base", "staleness", "entries", "bits", "bytes", "ingress_bytes", "egress_bytes")
    made = Updates(
        **dict.fromkeys(names, 0 * places), incarnation=places // 10, step=places % 10, version=places + 1,
        loss=np.full(len(places), math.nan),
    )  # fmt: skip
    said = [(1.0, "edge-0", msgspec.structs.replace(SAID, incarnation=life, step=1)) for life in range(40_000)]
    first, has_diverged = divergence_of(said, made, ["edge-0"], Series.empty().evaluations, Steps(Timeline()))

    assert (first.update, first.text, has_diverged) == (1, "loss at edge-0", True)


def test_what_was_lost_with_a_server_did_not_diverge(series_of):
    """The model that was trained in the end never was so."""
    restored = (3.0, "controller", records.Restored(version=1))
    _, _, anew = update(2, worker="edge-1")
    lost = [*updates(1.0, math.nan), (2.0, "edge-0", SAID), evaluated(2, math.nan)]
    series = series_of(*lost, restored, (4.0, "server", anew), ENDED)

    assert (series.outcome, series.first_not_finite) == ("completed", None)


@pytest.mark.parametrize("outcome", ["interrupted", "failed"])
def test_a_trial_that_broke_off_is_called_so_first(series_of, make_sample_plan, outcome):
    """That its loss was not finite is a warning, and it can be gone on with."""
    ended = (99.0, "controller", records.Ended(outcome=outcome, reason=""))
    summary = summarise(make_sample_plan(), series_of(*updates(1.0, math.nan), ended))

    assert (summary.outcome, summary.ran_to_end) == (outcome, False)
    assert summary.warnings == ("loss at edge-0 is not finite since update 2",)


def step(number, loss=1.0, history=0):
    """The last shard learns of a mini-batch."""
    said = records.Step(step=number, made=number + 1, loss=loss, history=history)
    return number + 1.0, "edge-1", said


def test_of_shards_the_one_that_was_first_is_named(series_of):
    """In the order of time within one mini-batch."""
    below = records.Diverged(step=1, what="parameter", tensor="0.weight", incarnation=1)
    above = records.Diverged(step=1, what="inputs", incarnation=1)
    series = series_of(step(0), (1.1, "edge-0", below), (1.2, "edge-1", above), step(1, math.nan), ENDED)

    assert (series.outcome, series.first_not_finite.text) == ("diverged", "parameter 0.weight at edge-0")
    assert series.first_not_finite.update == 2


def test_a_step_that_a_backup_proves_and_nobody_tells_of_has_not_diverged(series_of):
    """Its loss is unknown, which is no number either."""
    entries = [
        (0.0, "server", records.Resumed(history=0, step=0)),
        step(0),
        (2.0, "server", records.BackedUp(history=0, step=2)),
        (3.0, "server", records.Resumed(history=1, step=2)),
        step(2, history=1),
        ENDED,
    ]

    assert series_of(*entries).outcome == "completed"


def test_a_step_that_was_rolled_back_has_not_diverged(series_of):
    """The same mini-batch was learnt anew."""
    said = records.Diverged(step=1, what="parameter", tensor="0.weight", incarnation=1)
    entries = [
        (0.0, "server", records.Resumed(history=0, step=0)),
        step(0), step(1, math.nan), (2.0, "edge-0", said),
        (3.0, "server", records.Resumed(history=1, step=1)),
        step(1, history=1), ENDED,
    ]  # fmt: skip
    series = series_of(*entries)

    assert (series.outcome, series.first_not_finite) == ("completed", None)
