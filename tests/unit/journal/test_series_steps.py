"""Steps of shards, history by history, whatever order their lines come in."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core import records
from edgebed.journal.folds import Timeline
from edgebed.journal.series_steps import Steps

LOW, HIGH = "edge-0", "edge-1"


def step(number: int, history: int = 0, *, is_last: bool = False) -> records.Step:
    """As a shard says it."""
    return records.Step(step=number, history=history, made=number + 1 if is_last else 0, loss=0.5 if is_last else None)


def told(*lines: tuple[str, records.Record]) -> Steps:
    """A journal's lines, a second apart."""
    return Steps(Timeline()).add_all((float(t), node, record) for t, (node, record) in enumerate(lines))


def resumed(history: int, at: int) -> tuple[str, records.Resumed]:
    """The server's line."""
    return "server", records.Resumed(history=history, step=at)


def test_what_a_later_history_began_before_is_rolled_back() -> None:
    """Steps 2 and 3 are made twice, and count once."""
    steps = told(
        resumed(0, 0),
        *((HIGH, step(k, is_last=True)) for k in range(4)),
        resumed(1, 2),
        *((HIGH, step(k, 1, is_last=True)) for k in range(2, 5)),
    )

    assert steps.surviving()[HIGH].step.tolist() == [0, 1, 2, 3, 4]
    assert steps.surviving()[HIGH].t.tolist() == [1.0, 2.0, 6.0, 7.0, 8.0]
    assert steps.count() == 7
    assert [(each.step, each.t) for each in steps.updates()] == [(0, 1.0), (1, 2.0), (2, 6.0), (3, 7.0), (4, 8.0)]


def test_a_backup_is_witness_for_what_a_killed_shard_did_not_live_to_say() -> None:
    """Its last two lines are lost; all went on from step 4, so they were made."""
    steps = told(
        resumed(0, 0),
        (HIGH, step(0, is_last=True)),
        (HIGH, step(1, is_last=True)),
        ("server", records.BackedUp(history=0, step=4)),
        resumed(1, 4),
        (HIGH, step(4, 1, is_last=True)),
    )

    assert steps.surviving()[HIGH].step.tolist() == [0, 1, 2, 3, 4]
    assert steps.surviving()[HIGH].t.tolist() == [1.0, 2.0, 3.0, 3.0, 5.0]
    assert [(each.step, each.t) for each in steps.updates()] == [(0, 1.0), (1, 2.0), (2, 3.0), (3, 3.0), (4, 5.0)]
    assert np.isnan(steps.updates()[2].loss)


@given(st.permutations(range(9)))
def test_the_order_of_lines_makes_no_difference(order: list[int]) -> None:
    """Reports come in batches: a new history's steps before the server's line, an old one's after it."""
    lines = [
        resumed(0, 0),
        (LOW, step(0)),
        (LOW, step(1)),
        (LOW, step(2)),
        resumed(1, 1),
        (LOW, step(1, 1)),
        (LOW, step(2, 1)),
        resumed(2, 2),
        (LOW, step(2, 2)),
    ]
    steps = told(*(lines[k] for k in order))

    assert steps.surviving()[LOW].step.tolist() == [0, 1, 2]
    assert steps.count() == 6


def test_what_modules_could_not_predict_is_that_of_steps_that_survive() -> None:
    """By shard, gradients and inputs apart, in order of the steps whoever tells them."""

    def taught(number: int, loss: float, history: int = 0, *, inputs: bool = False) -> records.Taught:
        return records.Taught(shard=LOW, step=number, loss=loss, history=history, inputs=inputs)

    steps = told(
        resumed(0, 0),
        (LOW, taught(0, 0.5)),
        ("modules", taught(2, 0.1)),
        (LOW, taught(1, 0.25)),
        (LOW, taught(1, 9.0, inputs=True)),
        resumed(1, 1),
        (LOW, taught(1, 0.125, 1)),
    )
    gradients, inputs = (steps.module_losses(inputs=which) for which in (False, True))

    assert gradients[LOW].step.tolist() == [0, 1]
    assert gradients[LOW].loss.tolist() == [0.5, 0.125]
    assert gradients[LOW].t.tolist() == [1.0, 6.0]
    assert inputs[LOW].step.tolist() == []
    assert steps.surviving() == {}


@pytest.mark.parametrize("steps", [Steps(Timeline()), told(resumed(0, 0))])
def test_a_trial_without_steps_has_none(steps: Steps) -> None:
    """As where each worker has the whole model, or training ended at once."""
    assert (steps.surviving(), steps.count(), steps.updates()) == ({}, 0, [])
