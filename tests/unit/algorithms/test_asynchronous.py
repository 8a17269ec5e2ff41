"""The asynchronous server divides by the staleness that the papers define, found by slow and obvious references."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebed.algorithms.aggregation.asynchronous import Aggregation, Config
from edgebed.algorithms.update import ModelUpdate

N = 6
ALPHA = 0.1
WORKERS = ("a", "b", "c")


class HistoryServer:
    """AdaComp as the paper writes it: keep all updates, and count for each parameter those since the worker's pull."""

    def __init__(self, theta, indicator):
        self.theta = theta.copy()
        self.indicator = indicator
        self.history: list[set[int]] = []
        self.pulled_at: dict[str, int] = {}

    def pulled(self, worker):
        """The worker got the model."""
        self.pulled_at[worker] = len(self.history)

    def push(self, worker, update):
        """Apply the worker's update, entry by entry."""
        positions = range(update.size) if update.indices is None else update.indices.tolist()
        touched = set()
        for k, value in zip(positions, update.values, strict=True):
            sigma = sum(k in earlier for earlier in self.history[self.pulled_at[worker] :])
            self.theta[k] -= np.float32(ALPHA / max(1, sigma)) * value
            if self.indicator == "selected" or value != 0:
                touched.add(k)
        self.history.append(touched)


@st.composite
def updates(draw):
    """Sparse or dense, with zeros among the values."""
    chosen = draw(st.none() | st.sets(st.integers(0, N - 1)))
    entries = N if chosen is None else len(chosen)
    values = draw(st.lists(st.sampled_from([0.0, 1.0, -0.7, 3.3]), min_size=entries, max_size=entries))
    return ModelUpdate(N, None if chosen is None else np.array(sorted(chosen), np.int64), np.array(values, "f4"))


steps = st.lists(st.tuples(st.sampled_from(WORKERS), st.none() | updates()), max_size=40)
"""(worker, its push), or (worker, None) for a pull out of turn, as after a restart."""


def start(**settings_):
    """A server of N parameters that everybody has pulled from, and its initial model."""
    theta = np.linspace(-1, 1, N, dtype="f4")
    server = Aggregation(Config(learning_rate=ALPHA, **settings_), theta.copy())
    for worker in WORKERS:
        server.pulled(worker)
    return server, theta


@pytest.mark.parametrize("indicator", ["nonzero", "selected"])
@settings(max_examples=4 * settings.default.max_examples)
@given(steps=steps)
def test_per_parameter_staleness_is_that_of_the_history_of_updates(indicator, steps):
    """Counters remembered at the pull give what a search of the history gives, to the last bit."""
    server, theta = start(staleness="per-parameter", indicator=indicator)
    reference = HistoryServer(theta, indicator)
    for worker in WORKERS:
        reference.pulled(worker)
    version_of = dict.fromkeys(WORKERS, 0)
    for worker, update in steps:
        if update is not None:
            assert server.push(worker, update, version_of[worker]).released == (worker,)
            reference.push(worker, update)
        server.pulled(worker)
        reference.pulled(worker)
        version_of[worker] = server.version

    assert server.version == len(reference.history)
    np.testing.assert_array_equal(reference.theta, server.theta)


@settings(max_examples=2 * settings.default.max_examples)
@given(steps=steps, staleness=st.sampled_from(["none", "whole-update"]))
def test_whole_updates_are_divided_by_the_updates_since_the_pull(steps, staleness):
    """By max(1, i - j), or not at all."""
    server, expected = start(staleness=staleness)
    base = dict.fromkeys(WORKERS, 0)
    for worker, update in steps:
        if update is not None:
            i = server.version
            rate = ALPHA / max(1, i - base[worker]) if staleness == "whole-update" else ALPHA
            positions = np.arange(N) if update.indices is None else update.indices
            expected[positions] -= np.float32(rate) * update.values
            server.push(worker, update, base[worker])
        server.pulled(worker)
        base[worker] = server.version

    np.testing.assert_array_equal(expected, server.theta)


@pytest.mark.parametrize("staleness", ["none", "whole-update", "per-parameter"])
@pytest.mark.parametrize("dtype", ["f4", "f2"])
@given(steps=steps)
def test_a_sparse_update_of_all_entries_is_a_dense_one(staleness, dtype, steps):
    """The way an update is written does not matter, with float16 values neither."""
    dense, _ = start(staleness=staleness)
    sparse, _ = start(staleness=staleness)
    for worker, update in steps:
        if update is not None and update.indices is None:
            values = update.values.astype(dtype)
            dense.push(worker, ModelUpdate(N, None, values), dense.version)
            sparse.push(worker, ModelUpdate(N, np.arange(N), values), sparse.version)
        dense.pulled(worker)
        sparse.pulled(worker)

    assert dense.theta.dtype == np.float32
    np.testing.assert_array_equal(dense.theta, sparse.theta)
    np.testing.assert_array_equal(dense.counts, sparse.counts)


def adacomp_and_asgd(indicator, gradients):
    """Both models after the same pushes of all entries, by three workers in turn."""
    asgd, _ = start(staleness="whole-update")
    adacomp, _ = start(staleness="per-parameter", indicator=indicator)
    base = dict.fromkeys(WORKERS, 0)
    for number, gradient in enumerate(gradients):
        worker = WORKERS[number * number % 3]
        asgd.push(worker, ModelUpdate(N, None, gradient), base[worker])
        adacomp.push(worker, ModelUpdate(N, np.arange(N), gradient), base[worker])
        adacomp.pulled(worker)
        base[worker] = asgd.version
    return adacomp.theta, asgd.theta


def test_adacomp_that_sends_everything_is_asgd_bit_for_bit():
    """Where no entry is zero, or where every entry sent counts."""
    rng = np.random.default_rng(1)
    full = [rng.normal(size=N).astype("f4") for _ in range(60)]
    holed = [np.where(rng.random(N) < 0.3, 0, gradient).astype("f4") for gradient in full]

    np.testing.assert_array_equal(*adacomp_and_asgd("nonzero", full))
    np.testing.assert_array_equal(*adacomp_and_asgd("selected", full))
    np.testing.assert_array_equal(*adacomp_and_asgd("selected", holed))


def test_an_entry_sent_as_zero_counts_only_where_selection_counts():
    """The paper's indicator is non-zero; here the two differ by a factor."""
    results = {}
    for indicator in ("nonzero", "selected"):
        server, theta = start(staleness="per-parameter", indicator=indicator)
        zero, one = np.zeros(1, "f4"), np.ones(1, "f4")
        for _ in range(2):
            server.push("b", ModelUpdate(N, np.array([2]), zero), 0)
        server.push("a", ModelUpdate(N, np.array([2]), one), 0)
        results[indicator] = float(theta[2] - server.theta[2])

    assert results["nonzero"] == pytest.approx(ALPHA)
    assert results["selected"] == pytest.approx(ALPHA / 2)


@pytest.mark.parametrize("staleness", ["whole-update", "per-parameter"])
def test_an_update_that_is_not_stale_is_applied_in_full(staleness):
    """Nothing came in between: divided by one, not by zero. One update in between divides by one as well."""
    server, theta = start(staleness=staleness)
    gradient = np.ones(N, "f4")

    server.push("a", ModelUpdate(N, None, gradient), 0)
    server.push("b", ModelUpdate(N, None, gradient), 0)

    np.testing.assert_allclose(theta - server.theta, 2 * ALPHA * gradient, rtol=1e-6)


def test_parameters_that_nobody_touched_are_not_stale():
    """The heart of AdaComp: the fifth update in a row on other entries finds this one fresh."""
    server, theta = start(staleness="per-parameter")
    for _ in range(5):
        server.push("b", ModelUpdate(N, np.array([0, 1]), np.ones(2, "f4")), 0)

    server.push("a", ModelUpdate(N, np.array([1, 4]), np.ones(2, "f4")), 0)

    assert theta[4] - server.theta[4] == pytest.approx(ALPHA)
    before = ALPHA * (1 + 1 + 1 / 2 + 1 / 3 + 1 / 4)  # b never pulled either: 0, 1, 2, 3, 4 updates had touched entry 1
    assert theta[1] - server.theta[1] == pytest.approx(before + ALPHA / 5)


def test_the_model_is_written_in_place():
    """The server owns the array that it was given."""
    theta = np.zeros(N, "f4")
    server = Aggregation(Config(), theta)
    server.push("a", ModelUpdate(N, None, np.ones(N, "f4")), 0)

    assert server.theta is theta
    assert theta[0] == np.float32(-0.1)
