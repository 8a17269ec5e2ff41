"""FedAsync and DC-ASGD, whose servers keep what each worker was sent: against references, and where they are others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.algorithms.aggregation import asynchronous, dc_asgd, mixing
from edgebed.algorithms.update import ModelUpdate

N = 5
START = np.linspace(-1, 1, N, dtype="f4")
PUSHES = st.lists(
    st.tuples(st.integers(0, 2), st.lists(st.floats(-2, 2, width=32), min_size=N, max_size=N)), max_size=9
)


def make(module, **settings):
    """A server whose three workers have pulled."""
    server = module.Aggregation(module.Config(**settings), START.copy())
    for worker in "abc":
        server.joined(worker)
        server.pulled(worker)
    return server


def pushed(server, pushes, indices=None):
    """The server after each push, dense or at some entries, whose worker pulls again."""
    bases = dict.fromkeys("abc", 0)
    for number, values in pushes:
        worker = "abc"[number]
        update = ModelUpdate(N, indices, np.array(values, "f4")[slice(None) if indices is None else indices])
        assert server.push(worker, update, bases[worker]).released == (worker,)
        bases[worker] = server.version
        server.pulled(worker)
    return server.theta


def mixed(pushes, alpha, discount):
    """Algorithm 1 of FedAsync, where workers send models."""
    theta, taken = START.astype("f8"), {worker: (START.astype("f8"), 0) for worker in range(3)}
    for version, (worker, change) in enumerate(pushes):
        base, at = taken[worker]
        share = alpha * discount(version - at)
        theta = (1 - share) * theta + share * (base - np.array(change))
        taken[worker] = theta, version + 1
    return theta


@pytest.mark.parametrize(
    ("settings", "discount"),
    [
        ({"staleness": "none"}, lambda tau: 1.0),
        ({"exponent": 0.7}, lambda tau: (tau + 1) ** -0.7),
        ({"staleness": "hinge", "hinge_at": 1}, lambda tau: 1.0 if tau <= 1 else 1 / (10 * (tau - 1) + 1)),
    ],
)
@given(pushes=PUSHES)
def test_models_are_mixed_as_if_they_had_travelled(settings, discount, pushes):
    """Each by its staleness, though workers send changes."""
    np.testing.assert_allclose(pushed(make(mixing, **settings), pushes), mixed(pushes, 0.6, discount), atol=1e-4)


def test_of_a_share_of_one_a_workers_model_is_taken():
    """Whatever came before it, and also where it has sent a few entries alone."""
    server = make(mixing, learning_rate=1.0, staleness="none")
    pushed(server, [(0, [1.0] * N)])
    theta = pushed(server, [(1, [2.0] * N)], np.array([1, 3]))

    np.testing.assert_array_equal(theta, START - np.array([0, 2, 0, 2, 0], "f4"))


def compensated(pushes, strength, decay=None):
    """Algorithm 2 of DC-ASGD, by entry."""
    theta, backup, mean = START.astype("f8"), dict.fromkeys(range(3), START.astype("f8")), np.zeros(N)
    for worker, gradient in pushes:
        g = np.array(gradient)
        mean = 0 if decay is None else decay * mean + (1 - decay) * g * g
        scale = strength if decay is None else strength / np.sqrt(mean + 1e-7)
        theta = theta - 0.1 * (g + scale * g * g * (theta - backup[worker]))
        backup[worker] = theta
    return theta


@pytest.mark.parametrize(("adaptive", "decay"), [(False, None), (True, 0.95), (True, 0.0)])
@given(pushes=PUSHES)
def test_late_gradients_are_corrected_as_in_a_reference(adaptive, decay, pushes):
    """With a constant, and with one that adapts to the gradient's square."""
    server = make(dc_asgd, compensation=0.5, adaptive=adaptive, decay=decay or 0.0)

    np.testing.assert_allclose(pushed(server, pushes), compensated(pushes, 0.5, decay), atol=1e-4)


@pytest.mark.parametrize("settings", [{"compensation": 0.0}, {"compensation": 0.0, "adaptive": True}, {}])
@given(pushes=PUSHES, indices=st.sampled_from([None, np.array([0, 4])]))
def test_without_delay_or_compensation_it_is_asynchronous(settings, pushes, indices):
    """Bit for bit, also with sparse pushes."""
    alone = [(0, values) for _, values in pushes]
    pushes = pushes if settings else alone
    plain = pushed(make(asynchronous, staleness="none"), pushes, indices)

    np.testing.assert_array_equal(pushed(make(dc_asgd, **settings), pushes, indices), plain)


def test_a_buffer_is_not_corrected():
    """It moves by its change."""
    server = make(dc_asgd, compensation=1.0)
    server.is_buffer = np.arange(N) == 2
    theta = pushed(server, [(0, [1.0] * N), (1, [1.0] * N)])

    np.testing.assert_allclose(START - theta, [0.19, 0.19, 2.0, 0.19, 0.19], atol=1e-6)


def test_a_worker_that_has_left_is_forgotten():
    """Its model takes no memory."""
    server = make(mixing)
    server.left("a")

    assert sorted(server.models) == ["b", "c"]


@pytest.mark.parametrize(
    ("module", "wrong"),
    [
        (mixing, {"learning_rate": 1.5}),
        (mixing, {"exponent": -1.0}),
        (mixing, {"hinge_at": -1.0}),
        (mixing, {"hinge_slope": -1.0}),
        (dc_asgd, {"compensation": -1.0}),
        (dc_asgd, {"decay": 1.0}),
    ],
)
def test_settings_out_of_range_are_refused(module, wrong):
    """By name."""
    with pytest.raises(ValueError, match=f"^{next(iter(wrong))}: "):
        module.Config(**wrong)
