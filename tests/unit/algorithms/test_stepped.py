"""One optimizer and one schedule serve server, worker and shard: the same steps, whoever takes them."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from local_runs import ran

from edgebed.algorithms.aggregation import buffered, synchronous
from edgebed.algorithms.compressor import StepContext
from edgebed.algorithms.local_work import local_steps
from edgebed.algorithms.update import ModelUpdate
from edgebed.learning.optimizers import optimizer

N = 5
START = np.linspace(-1, 1, N, dtype="f4")
RATE = 0.25
SETTINGS = {
    "sgd": {},
    "heavy-ball": {"momentum": 0.5},
    "nesterov": {"momentum": 0.5, "nesterov": True},
    "adam": {"optimizer": "adam", "beta_1": 0.5, "beta_2": 0.75, "epsilon": 0.125},
    "uncorrected": {"optimizer": "adam", "beta_1": 0.5, "beta_2": 0.75, "epsilon": 0.125, "corrected": False},
    "yogi": {"optimizer": "yogi", "beta_1": 0.5, "beta_2": 0.75, "epsilon": 0.125},
    "adagrad": {"optimizer": "adagrad", "beta_1": 0.5, "epsilon": 0.125},
}
GRADIENTS = st.lists(st.lists(st.floats(-2, 2, width=16), min_size=N, max_size=N), min_size=1, max_size=6)


def of_server(settings, gradients, module=synchronous, **rest):
    """Where a server's model gets to that is pushed these."""
    server = module.Aggregation(module.Config(learning_rate=RATE, **settings, **rest), START.copy())
    server.joined("a")
    for gradient in gradients:
        applied = server.push("a", ModelUpdate(N, None, gradient), server.version)
        assert (applied.changed is None) or len(applied.changed) == N
    return server.theta


def of_worker(settings, gradients):
    """Where a worker's own copy gets to."""
    at = iter(gradients)
    work = local_steps.LocalWork(local_steps.Config(learning_rate=RATE, steps=len(gradients), **settings))
    gone, _ = ran(work, lambda theta, batch: (next(at), 0.0), START, [np.arange(1)] * len(gradients))
    return START - gone


def of_shard(settings, gradients):
    """Where a shard's parameters get to."""
    name = settings.get("optimizer", "momentum" if "momentum" in settings else "sgd")
    own = {key: value for key, value in settings.items() if key != "optimizer"}
    made = optimizer(name, learning_rate=RATE, **own)
    theta = torch.tensor(START)
    moments = made.begin(theta)
    for number, gradient in enumerate(gradients):
        theta, moments = made.step(theta, torch.tensor(gradient), moments, number)
    return theta.numpy()


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@given(gradients=GRADIENTS)
def test_whoever_steps_gets_to_the_same(settings, gradients):
    """A learning rate that is a power of two rounds nothing, within a velocity or without."""
    gradients = [np.array(each, "f4") for each in gradients]
    shard = of_shard(settings, gradients)

    np.testing.assert_allclose(of_worker(settings, gradients), shard, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(of_server(settings, gradients), shard, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(
        of_server(settings, gradients, buffered, count=1, staleness="none"), of_server(settings, gradients)
    )


def test_buffers_follow_what_is_sent_of_them():
    """Whatever the optimizer: running means are no parameters."""
    is_buffer = np.array([False, True, False, False, True])
    for settings in SETTINGS.values():
        server = synchronous.Aggregation(synchronous.Config(learning_rate=RATE, **settings), START.copy())
        server.is_buffer = is_buffer
        server.joined("a")
        for _ in range(3):
            server.push("a", ModelUpdate(N, None, np.full(N, 0.5, "f4")), server.version)

        np.testing.assert_allclose(server.theta[is_buffer], START[is_buffer] - 1.5, rtol=1e-6)


def test_a_workers_own_rate_decays_by_settings():
    """By how often it has gone through its own data, from mini-batch to mini-batch of one push."""
    config = local_steps.Config(learning_rate=1.0, schedule="step", decay_at=[2.0, 2.5], decay_by=0.5, steps=4)
    one = np.ones(N, "f4")
    gone = [
        ran(
            local_steps.LocalWork(config), lambda theta, batch: (one, 0.0), START, [np.arange(1)] * 4,
            StepContext(0, epoch=epoch, epochs=1.0),
        )[0][0]
        for epoch in (0.0, 1.0, 2.0, 3.0)
    ]  # fmt: skip

    assert gone == [4.0, 4.0, 0.5 + 0.5 + 0.25 + 0.25, 1.0]


def test_a_shards_rate_follows_a_cosine_by_its_steps():
    """And rises to it before; one that learns of every second mini-batch has the same rate at the same ones."""
    settings = {"learning_rate": 2.0, "schedule": "cosine", "zero_at": 8, "warm_up": 2}
    made = optimizer("sgd", **settings)
    seldom = type(made)(descent=made.descent, every=2)

    assert [made.rate(step) for step in (1, 4, 8, 9)] == pytest.approx([2 * 0.96194, 1.0, 0.0, 0.0], abs=1e-4)
    assert made.rate(0) == 1.0
    assert [seldom.rate(step) for step in (1, 2, 3)] == [made.rate(step) for step in (2, 4, 6)]


@pytest.mark.parametrize("module", [synchronous, buffered, local_steps])
@pytest.mark.parametrize("wrong", [{"momentum": 1.0}, {"beta_1": 1.0}, {"beta_2": -0.1}, {"epsilon": 0.0}])
def test_settings_out_of_range_are_refused(module, wrong):
    """By name."""
    with pytest.raises(ValueError, match=f"^{next(iter(wrong))}: "):
        module.Config(**wrong)
