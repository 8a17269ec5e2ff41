"""SCAFFOLD, FedDyn and FedNova: the laws that they are published for, on losses whose minimum is a formula."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebed.algorithms.aggregator import Aggregator, PushInfo
from edgebed.algorithms.compressor import StepContext
from edgebed.algorithms.registry import aggregation_of, local_work_of
from edgebed.algorithms.update import ModelUpdate
from edgebed.core.plan import Method, Task, TensorLayout
from edgebed.scenario.methods import resolve_method

SIZE = 4


class Fleet:
    """Workers whose losses are a_i / 2 |y - m_i|^2, and their server."""

    def __init__(self, method: dict[str, Any], slopes: list[float], minima: np.ndarray, steps: list[int]) -> None:
        self.slopes, self.minima, self.steps = slopes, minima, steps
        method = resolve_method(method)
        layout = (TensorLayout(name="w", shape=(SIZE,)),)
        task = Task(model="m", inputs=(1,), outputs=1, layout=layout, batch_size=1, gradient_time_s=0.0)
        code, config = aggregation_of(method)
        self.server: Aggregator = code(config, np.zeros(SIZE, np.float32))
        self.server.num_workers = len(slopes)
        self.work = local_work_of(method, task)
        self.memories: list[Any] = [None] * len(slopes)
        for k in range(len(slopes)):
            self.server.expected(f"w{k}")

    def gradient(self, k: int, theta: np.ndarray) -> np.ndarray:
        """(n,) of worker k."""
        return np.float32(self.slopes[k]) * (theta - self.minima[k]).astype(np.float32)

    def round(self, of: list[int] | None = None) -> None:
        """Let some workers, or all, take part."""
        base, vectors = self.server.version, {name: getattr(self.server, name).copy() for name in self.server.vectors}
        for k in range(len(self.slopes)) if of is None else of:
            batches = [np.zeros(1, np.int64)] * self.steps[k]
            done = self.work.run(
                lambda theta, _, k=k: (self.gradient(k, theta), 0.0), vectors, batches, self.memories[k], StepContext(0)
            )
            self.memories[k] = done.memory
            model, *beside = (ModelUpdate(SIZE, None, done.vectors[name]) for name in self.server.vectors)
            self.server.push(f"w{k}", model, base, PushInfo(steps=self.steps[k], beside=tuple(beside)))

    def best(self) -> np.ndarray:
        """(n,) where the mean loss of all is least."""
        weights = np.array(self.slopes)[:, None]
        return (weights * self.minima).sum(0) / weights.sum()


def fleet(method: dict[str, Any], seed: int = 0, workers: int = 3, steps: list[int] | None = None) -> Fleet:
    """One whose workers disagree, both about where the minimum is and how steep the way."""
    rng = np.random.default_rng(seed)
    return Fleet(method, [0.5, 1.0, 2.0, 4.0][:workers], rng.normal(size=(workers, SIZE)), steps or [5] * workers)


def scaffold(**local: Any) -> dict[str, Any]:
    """The preset with plain steps of a fixed rate."""
    return {"preset": "scaffold", "local_work": {"learning_rate": 0.1} | local}


FEDDYN = {"preset": "feddyn", "local_work": {"learning_rate": 0.1, "proximal": 0.5}}
FEDAVG = {"preset": "fedavg", "aggregation": {"weights": "equal"}, "local_work": {"learning_rate": 0.1}}
FEDNOVA = {"preset": "fednova", "aggregation": {"weights": "equal"}, "local_work": {"learning_rate": 0.1}}


def off(each: Fleet, rounds: int) -> float:
    """How far from the best the model is after so many rounds."""
    for _ in range(rounds):
        each.round()
    return float(np.abs(each.server.theta - each.best()).max())


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**16), steps=st.integers(1, 8), rounds=st.integers(1, 6))
def test_scaffold_with_one_worker_is_gradient_descent(seed: int, steps: int, rounds: int) -> None:
    """Its control variate and that of all are the same one, so nothing is corrected."""
    each = fleet(scaffold(), seed, workers=1, steps=[steps])
    alone = np.zeros(SIZE, np.float32)
    for _ in range(rounds):
        each.round()
        for _ in range(steps):
            alone = alone - np.float32(0.1) * each.gradient(0, alone)

    np.testing.assert_allclose(each.server.theta, alone, rtol=1e-5, atol=1e-6)


def test_scaffold_and_feddyn_end_where_fedavg_cannot() -> None:
    """FedAvg of workers that disagree stops elsewhere than at the minimum of their mean loss, however long it runs."""
    assert off(fleet(FEDAVG), 300) > 0.02
    assert off(fleet(scaffold()), 300) < 1e-4
    assert off(fleet(FEDDYN), 300) < 1e-3


def test_the_control_variate_of_all_is_the_mean_of_all() -> None:
    """Also where not all take part in each round, and one of them forgets its own."""
    each, rng = fleet(scaffold(), workers=4), np.random.default_rng(1)
    each.server.config = dataclasses.replace(each.server.config, quorum=0.5)
    for turn in range(30):
        of = sorted(rng.choice(4, 2, replace=False).tolist())
        if turn % 7 == 3:
            each.memories[of[0]] = None
            each.server.forgotten(f"w{of[0]}")
        each.round(of)
        mean = sum(each.server.controls.values()) / 4

        np.testing.assert_allclose(each.server.control, mean, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mean", ["all", "senders"])
def test_fednova_steps_as_far_as_the_mean_worker(mean: str) -> None:
    """Also where each entry's mean is over those who sent it, which here are all."""
    aggregation = {"weights": "equal", "mean": mean}
    each = fleet({"preset": "fednova", "aggregation": aggregation}, workers=2)
    indices = np.arange(SIZE)
    for worker, steps in (("w0", 1), ("w1", 3)):
        way = np.full(SIZE, 0.5 * steps, np.float32)
        each.server.push(worker, ModelUpdate(SIZE, indices, way), 0, PushInfo(steps=steps))

    np.testing.assert_allclose(each.server.theta, -0.5 * 2, rtol=1e-6)


def test_what_a_worker_of_feddyn_has_forgotten_is_in_no_drift() -> None:
    """A new life, or one whose push was lost, and the others come to the same minimum as if nothing had happened."""
    each = fleet(FEDDYN)
    for turn in range(400):
        if turn == 20:
            each.memories[1] = None
            each.server.forgotten("w1")
        each.round()

    assert np.abs(each.server.theta - each.best()).max() < 1e-3
    kept = fleet(FEDDYN)
    for turn in range(400):
        if turn == 20:
            kept.memories[1] = None
        kept.round()
    assert np.abs(kept.server.theta - kept.best()).max() > 0.01


def test_fednova_does_not_favour_who_makes_many_steps() -> None:
    """Where steps differ, FedAvg comes to rest nearer to the busy one's minimum; with equal steps both are the same."""
    same, other = fleet(FEDNOVA), fleet(FEDAVG)
    same.slopes = other.slopes = [1.0] * 3
    for _ in range(5):
        same.round()
        other.round()
    np.testing.assert_allclose(same.server.theta, other.server.theta, rtol=1e-5, atol=1e-6)

    def uneven(method: dict[str, Any]) -> float:
        each = fleet(method, steps=[1, 2, 12])
        each.slopes = [0.01] * 3  # so that a way is very nearly as many gradients as it has steps
        return off(each, 3_000)

    assert uneven(FEDNOVA) < 0.02
    assert uneven(FEDAVG) > 0.2


@pytest.mark.parametrize(
    ("method", "says"),
    [
        ({"preset": "fednova", "local_work": {"momentum": 0.9}}, "momentum: 0.9 makes steps that fednova cannot count"),
        ({"preset": "scaffold", "local_work": {"momentum": 0.9}}, "momentum: 0.9 makes steps that are no sum"),
        ({"preset": "scaffold", "local_work": "local-steps"}, "the aggregation scaffold goes with local_work: contr"),
        (
            {"preset": "feddyn", "aggregation": "synchronous"},
            "the local work dynamic-steps goes with aggregation: fedd",
        ),
        ({"preset": "fedavg", "beside_compression": "top-k"}, "the aggregation synchronous sends no vector beside"),
        ({"preset": "feddyn", "local_work": {"proximal": 0.0}}, "proximal: 0 bends no loss"),
        ({"preset": "feddyn", "aggregation": {"momentum": 0.9}}, "is not what its step is made of"),
    ],
)
def test_what_does_not_fit_is_refused(method: dict[str, Any], says: str) -> None:
    """With what it goes with."""
    with pytest.raises(Exception, match=says.replace(".", r"\.")):
        resolve_method(method)


def test_a_method_is_resolved_with_all_its_parts() -> None:
    """Each vector with its own compression."""
    method: Method = resolve_method({"preset": "scaffold", "beside_compression": {"name": "int8"}})

    assert method.parts["beside_compression"].name == "int8"
