"""Local steps: what is sent is how far the worker's own copy went."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from local_runs import ran

from edgebed.algorithms.aggregation import synchronous
from edgebed.algorithms.aggregator import PushInfo
from edgebed.algorithms.local_work import gradient_step, local_steps
from edgebed.algorithms.update import ModelUpdate

START = np.linspace(-1, 1, 5, dtype="f4")
BATCHES = [np.array([k]) for k in range(4)]


def slope(theta, batch):
    """Of a quadratic loss whose minimum depends on the batch."""
    centre = np.float32(batch[0]) * np.ones_like(theta)
    return theta - centre, float(((theta - centre) ** 2).sum() / 2)


def copy_after(config, batches):
    """The worker's own copy, by hand in double precision."""
    y, velocity = START.astype(float), np.zeros(5)
    for batch in batches:
        gradient = y - batch[0] + config.proximal * (y - START)
        velocity = config.momentum * velocity + gradient
        y = y - config.learning_rate * velocity
    return y


@given(
    rate=st.floats(0.01, 0.5), momentum=st.sampled_from([0.0, 0.5]), proximal=st.sampled_from([0.0, 0.3]),
    count=st.integers(1, 4),
)  # fmt: skip
def test_what_is_sent_is_how_far_the_copy_went(rate, momentum, proximal, count):
    """With momentum, and held to where it began."""
    config = local_steps.Config(learning_rate=rate, momentum=momentum, proximal=proximal)
    gone, loss = ran(local_steps.LocalWork(config), slope, START, BATCHES[:count])

    np.testing.assert_allclose(START - gone, copy_after(config, BATCHES[:count]), atol=1e-4)
    assert loss > 0


def test_one_step_of_each_is_large_batch_to_the_bit():
    """A learning rate of a power of two rounds nothing."""
    apart, together = (
        synchronous.Aggregation(synchronous.Config(learning_rate=rate), START.copy()) for rate in (1.0, 0.125)
    )
    local = local_steps.LocalWork(local_steps.Config(learning_rate=0.125, steps=1))
    plain = gradient_step.LocalWork(gradient_step.Config())
    for server in (apart, together):
        for k in range(4):
            server.joined(f"w{k}")
    for _ in range(3):
        models = apart.theta.copy(), together.theta.copy()
        for k, batch in enumerate(BATCHES):
            apart.push(f"w{k}", ModelUpdate(5, None, ran(local, slope, models[0], [batch])[0]), apart.version)
            together.push(f"w{k}", ModelUpdate(5, None, ran(plain, slope, models[1], [batch])[0]), together.version)

        np.testing.assert_array_equal(apart.theta, together.theta)


@given(examples=st.lists(st.integers(1, 1000), min_size=2, max_size=5))
def test_models_are_averaged_by_examples(examples):
    """X <- sum of (n_i / n) y_i, McMahan et al."""
    server = synchronous.Aggregation(synchronous.Config(learning_rate=1.0, weights="examples"), START.copy())
    local, ends = local_steps.LocalWork(local_steps.Config(learning_rate=0.1)), []
    for k in range(len(examples)):
        server.joined(f"w{k}")
    for k, count in enumerate(examples):
        gone, _ = ran(local, slope, START, [np.array([k])])
        ends.append(START - gone)
        server.push(f"w{k}", ModelUpdate(5, None, gone), 0, PushInfo(examples=count))

    np.testing.assert_allclose(server.theta, np.average(ends, axis=0, weights=examples), atol=1e-5)


def test_the_servers_momentum_is_that_of_the_means():
    """V <- m v + alpha mean; the model steps along it, also where an update is sparse."""
    server = synchronous.Aggregation(synchronous.Config(learning_rate=0.5, momentum=0.5), START.copy())
    server.joined("a")
    velocity, expected = np.zeros(5), START.astype(float)
    for k in range(4):
        gradient = np.zeros(5)
        gradient[k] = 2.0
        server.push("a", ModelUpdate(5, np.array([k]), np.array([2.0], "f4")), server.version)
        velocity = 0.5 * velocity + 0.5 * gradient
        expected = expected - velocity

        np.testing.assert_allclose(server.theta, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "examples", "batches"),
    [
        ({}, 100, 10), ({"epochs": 2.5}, 100, 25), ({"steps": 3}, 100, 3), ({"epochs": 0.01}, 100, 1),
        ({}, 91, 10), ({}, 99, 10), ({"epochs": 2}, 91, 20), ({}, 1, 1), ({"epochs": 3}, 9, 3), ({"steps": 3}, 1, 3),
    ],
)  # fmt: skip
def test_how_many_mini_batches_a_push_takes(settings, examples, batches):
    """Of ten examples each, but for the last of an epoch."""
    assert local_steps.LocalWork(local_steps.Config(**settings)).batches(examples, 10) == batches


@pytest.mark.parametrize(
    ("wrong", "name"),
    [({"learning_rate": 0.0}, "learning_rate"), ({"epochs": 0.0}, "epochs"), ({"steps": 0}, "steps"),
     ({"momentum": 1.0}, "momentum"), ({"proximal": -1.0}, "proximal")],
)  # fmt: skip
def test_settings_out_of_range_are_refused(wrong, name):
    """By name."""
    with pytest.raises(ValueError, match=f"^{name}: "):
        local_steps.Config(**wrong)
