"""Learning rates: the values that are published, and the same plateaus as torch's."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgebed.algorithms.aggregation import buffered, synchronous
from edgebed.algorithms.schedule import Schedule, Scheduled
from edgebed.algorithms.update import ModelUpdate


def rates(*epochs, **given_settings):
    """At these times."""
    schedule = Schedule(Scheduled(**given_settings))
    return [schedule.rate(epoch) for epoch in epochs]


def test_the_learning_rate_of_each_schedule():
    """By hand."""
    assert rates(0, 50, 1e6, learning_rate=0.3) == [0.3] * 3
    assert rates(0, 9.99, 10, 25, learning_rate=1.0, schedule="step", decay_at=[10, 20]) == pytest.approx(
        [1, 1, 0.1, 0.01]
    )
    cosine = rates(0, 50, 100, 200, learning_rate=1.0, schedule="cosine", zero_at=100)
    assert cosine == pytest.approx([1.0, 0.5, 0.0, 0.0])
    # 0.1 / (2 e), e counted from 1: 427 epochs of 60,000 images end at 1.2e-4
    assert rates(0, 0.99, 1, 426.5, learning_rate=0.1, schedule="per-epoch") == pytest.approx(
        [0.05, 0.05, 0.025, 0.1 / 854]
    )


def test_it_rises_in_a_straight_line_first():
    """Whatever comes then; each step has the rate of its end, so that the first is not of nothing."""
    for name in ("constant", "cosine"):
        schedule = Schedule(Scheduled(learning_rate=0.4, schedule=name, zero_at=1e9, warm_up=5.0))
        assert [schedule.rate(epoch, 0.5) for epoch in (0.0, 2.0, 4.5, 9.0)] == pytest.approx([0.04, 0.2, 0.4, 0.4])


@pytest.mark.slow
@given(losses=st.lists(st.floats(0.1, 2.0), min_size=1, max_size=40), patience=st.integers(0, 3))
def test_a_plateau_is_what_torch_takes_for_one(losses, patience):
    """Epoch by epoch, on the mean loss of each; the first push of an epoch ends the one before."""
    schedule = Schedule(Scheduled(learning_rate=1.0, schedule="plateau", decay_by=0.5, patience=patience))
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    other = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=patience, eps=0.0)
    for epoch, loss in enumerate(losses):
        schedule.note(epoch, loss + 0.05)
        assert schedule.rate(epoch) == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-6)
        schedule.note(epoch + 0.5, loss - 0.05)
        other.step(loss)


@pytest.mark.parametrize("name", ["learning_rate", "zero_at", "decay_by", "patience", "threshold", "warm_up"])
def test_settings_out_of_range_are_refused(name):
    """By name."""
    with pytest.raises(ValueError, match=rf"^{name}: "):
        Scheduled(**{name: -1})
    with pytest.raises(ValueError, match=r"^decay_at: "):
        Scheduled(decay_at=[-1.0])


@pytest.mark.parametrize("workers", [49, 98, 103, 107])
def test_a_pass_through_all_data_is_whole(workers):
    """However many pushes make one, in floating point: a step schedule acts when it is over, not a round later."""
    server = synchronous.Aggregation(
        synchronous.Config(schedule="step", decay_at=[1.0], learning_rate=1.0), np.zeros(1, "f4"), workers
    )
    server.epochs_a_push = 1 / workers

    assert server.epoch == 1.0
    assert server.learning_rate == pytest.approx(0.1)


@pytest.mark.parametrize("count", [1, 5, 100])
def test_a_step_of_many_pushes_rises_by_all_of_them(count):
    """A round, or a buffer, is as long as its pushes: the k-th of five that warm up has k fifths of the rate."""
    rising: Any = {"learning_rate": 1.0, "warm_up": 5.0}
    rounds = synchronous.Aggregation(synchronous.Config(**rising), np.zeros(1, "f4"))
    buffer = buffered.Aggregation(buffered.Config(count=count, staleness="none", **rising), np.zeros(1, "f4"))
    names = [f"edge-{k:03}" for k in range(count)]
    for server in (rounds, buffer):
        server.epochs_a_push = 1 / count
        for name in names:
            server.joined(name)
        went = [0.0]
        for _ in range(6):
            for name in names:
                server.push(name, ModelUpdate(1, None, np.ones(1, "f4")), server.version)
            went.append(float(-server.theta[0]))
        np.testing.assert_allclose(np.diff(went), [0.2, 0.4, 0.6, 0.8, 1.0, 1.0], rtol=1e-4)
