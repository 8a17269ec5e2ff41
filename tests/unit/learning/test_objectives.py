"""Objectives: measures are scikit-learn's, sums are the same however the examples are cut, and training is torch's."""

import functools
import math
from typing import Any

import numpy as np
import pytest
import tiny_tasks
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from quick_runs import run
from sklearn import metrics
from torch.nn import functional

from edgebed.algorithms.aggregation import asynchronous
from edgebed.algorithms.update import ModelUpdate
from edgebed.core import chance
from edgebed.core.errors import OwnCodeError, ScenarioError
from edgebed.core.measures.task import Sums, TaskMeasure, added
from edgebed.core.plan import Part
from edgebed.learning import network
from edgebed.learning.data_sets.examples import Examples
from edgebed.learning.models import registry as models
from edgebed.learning.objectives.objective import Supervised
from edgebed.learning.objectives.registry import OBJECTIVES, objective_of
from edgebed.planning.planning import PlannedTraining, plan_trials
from edgebed.scenario.load import load_scenario

SEEDS = st.integers(0, 2**32 - 1)
STEPS = 20
RATE = 0.125  # the same number in single and in double precision


def scenario(name: str, **task: Any) -> dict[str, Any]:
    """A task of one worker that pushes gradients."""
    return {
        "name": "pooled",
        "seed": 3,
        "task": tiny_tasks.task(*tiny_tasks.TASKS[name]) | {"batch_size": 16, "gradient_time": "1ms"} | task,
        "method": {"preset": "asgd", "aggregation": {"learning_rate": RATE}},
        "fleet": {"edge": {"count": 1}},
        "stop": {"updates": STEPS},
    }


@functools.cache
def planned(name: str) -> PlannedTraining:
    """A trial of a tiny task."""
    (found,) = plan_trials(load_scenario(scenario(name)))
    return found


def measured(settings: Part, outputs: NDArray[Any], targets: NDArray[Any]) -> dict[str, float]:
    """What an objective measures of outputs."""
    objective = objective_of(settings)
    assert isinstance(objective, Supervised)
    sums = objective.sums_of(torch.from_numpy(outputs), torch.from_numpy(targets))
    plain: Sums = {name: (np.asarray(total), float(weight)) for name, (total, weight) in sums.items()}
    return objective.measured(plain)


def expect(found: dict[str, float], **expected: float) -> None:
    """All that was measured is as it is expected to be, but for rounding in single precision."""
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-5, nan_ok=True)


@given(SEEDS, st.integers(2, 50), st.integers(2, 6))
def test_a_classification_is_measured_as_scikit_learn_does(seed: int, size: int, classes: int) -> None:
    """Accuracy, and the logarithmic loss of the softmax."""
    rng = np.random.default_rng(seed)
    scores, labels = rng.normal(0.0, 3.0, (size, classes)), rng.integers(0, classes, size)
    shares = torch.from_numpy(scores).softmax(dim=1).numpy()
    expect(
        measured(Part(name="classification"), scores, labels),
        accuracy=metrics.accuracy_score(labels, scores.argmax(axis=1)),
        loss=metrics.log_loss(labels, shares, labels=range(classes)),
    )


@given(SEEDS, st.integers(1, 50), st.integers(1, 5), st.floats(0.0, 1.0))
def test_a_multi_label_classification_is_measured_as_scikit_learn_does(
    seed: int, size: int, labels: int, share: float
) -> None:
    """Also where a label is never there, or never predicted."""
    rng = np.random.default_rng(seed)
    scores, marks = rng.normal(1.0, 2.0, (size, labels)), (rng.random((size, labels)) < share).astype(np.int64)
    shares = torch.from_numpy(scores).sigmoid().numpy()
    losses = [metrics.log_loss(marks[:, k], shares[:, k], labels=[0, 1]) for k in range(labels)]
    f1 = functools.partial(metrics.f1_score, marks, (scores > 0).astype(np.int64), zero_division=0)
    expect(
        measured(Part(name="multi-label"), scores, marks),
        f1_micro=f1(average="micro" if labels > 1 else "binary"),
        f1_macro=f1(average="macro" if labels > 1 else "binary"),
        loss=float(np.mean(losses)),
    )


@given(SEEDS, st.integers(2, 50), st.integers(1, 4), st.floats(-1e3, 1e3), st.sampled_from(["", "never", "right"]))
def test_a_regression_is_measured_as_scikit_learn_does(
    seed: int, size: int, count: int, offset: float, constant: str
) -> None:
    """Also where a number never changes, whether it is predicted or not; where none does there is no R2."""
    rng = np.random.default_rng(seed)
    wanted = (offset + rng.normal(0.0, 2.0, (size, count))).astype("f4")
    outputs = (wanted + rng.normal(0.0, 1.0, (size, count))).astype("f4")
    if constant:
        wanted[:, 0] = wanted[0, 0]
        outputs[:, 0] = wanted[:, 0] + (0.0 if constant == "right" else 1.0)
    both = wanted.astype("f8"), outputs.astype("f8")
    error = metrics.mean_squared_error(*both)
    expect(
        measured(Part(name="regression"), outputs, wanted),
        mae=metrics.mean_absolute_error(*both),
        rmse=math.sqrt(error),
        r2=math.nan if constant and count == 1 else metrics.r2_score(*both),
        loss=error,
    )


@given(SEEDS, st.integers(1, 10), st.integers(1, 8))
def test_a_language_model_is_measured_as_scikit_learn_does(seed: int, size: int, places: int) -> None:
    """Of the tokens that are not ignored."""
    rng = np.random.default_rng(seed)
    scores, tokens = rng.normal(0.0, 2.0, (size, places, 5)), rng.integers(0, 5, (size, places))
    tokens[rng.random((size, places)) < 0.3] = -100
    tokens[0, 0] = 2
    counts = tokens != -100
    shares = torch.from_numpy(scores).softmax(dim=-1).numpy()[counts]
    loss = metrics.log_loss(tokens[counts], shares, labels=range(5))
    expect(
        measured(Part(name="next-token"), scores, tokens),
        perplexity=math.exp(loss),
        loss=loss,
        accuracy=metrics.accuracy_score(tokens[counts], scores.argmax(axis=-1)[counts]),
    )


@pytest.mark.parametrize("name", tiny_tasks.TASKS)
@given(seed=SEEDS, size=st.integers(1, 90), shares=st.integers(1, 7), chunk=st.integers(1, 90))
def test_what_is_measured_does_not_depend_on_how_the_examples_are_cut(
    name: str, seed: int, size: int, shares: int, chunk: int
) -> None:
    """Into shares for as many processes: to the bit. Into chunks that are computed at once: but for rounding."""
    trial = planned(name)
    task = trial.plan.evaluator.task
    theta = np.random.default_rng(seed).normal(0.0, 1.0, sum(math.prod(each.shape) for each in task.layout))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(network, "EVALUATION_CHUNK", chunk)
        net = network.Network(task, trial.data.train.take(slice(0, size)))
        parts = [net.score(theta.astype("f4"), (k, shares)) for k in range(shares)]
        patch.setattr(network, "EVALUATION_CHUNK", size)
        whole = net.evaluate(theta.astype("f4"))
        patch.setattr(network, "EVALUATION_CHUNK", chunk)
        cut = net.evaluate(theta.astype("f4"))
    found = objective_of(task.objective, task.python_path).measured(added([sums for part in parts for _, sums in part]))

    assert repr(found) == repr(cut)
    assert found == pytest.approx(whole, rel=1e-4, abs=1e-5, nan_ok=True)


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize(("names", "says"), [((), "it has no targets; "), (("a", "b"), "its targets are a, b; ")])
def test_data_without_one_array_of_targets_is_refused(name: str, names: tuple[str, ...], says: str) -> None:
    """Also where the data states the number of outputs; what an objective takes is said."""
    part = dict.fromkeys(names, np.arange(3))
    for stated in (None, 3):
        with pytest.raises(ScenarioError, match=rf"{says}a .* has one array of .*, \(examples"):
            objective_of(Part(name=name)).outputs([part, part], stated)


class Bare:
    """What each task's loss is, written with torch alone."""

    @staticmethod
    def of(name: str, model: Any, x: Any, y: Any) -> Any:
        """The loss of a batch of a tiny task."""
        if name == "both":
            outputs = model(**x)
            side = functional.binary_cross_entropy_with_logits(outputs["side"], y["side"].to(outputs["side"].dtype))
            return side + 0.1 * ((outputs["far"] - y["far"]) ** 2).mean()
        outputs = model(x)
        if name == "classification":
            return functional.cross_entropy(outputs, y)
        if name == "squared":
            return ((outputs.softmax(1) - torch.eye(3, dtype=outputs.dtype)[y]) ** 2).sum(1).mean()
        if name == "focal":
            counts = np.bincount(tiny_tasks.classes().train.targets[""])
            weights = torch.tensor(counts.sum() / (3 * counts), dtype=outputs.dtype)[y]
            right = outputs.log_softmax(1)[torch.arange(len(y)), y]
            return -(weights * (1 - right.exp()) ** 2 * right).sum() / weights.sum()
        if name == "multi-label":
            marks = tiny_tasks.labels().train.targets[""]
            weights = torch.tensor((len(marks) - marks.sum(0)) / marks.sum(0), dtype=outputs.dtype)
            return functional.binary_cross_entropy_with_logits(outputs, y.to(outputs.dtype), pos_weight=weights)
        if name == "next-token":
            return functional.cross_entropy(outputs.reshape(-1, 7), y.reshape(-1), ignore_index=-100)
        error = (outputs - y).abs()
        if name == "regression":
            return (error**2).mean()
        if name == "huber":
            return torch.where(error < 0.5, error**2 / 2, 0.5 * (error - 0.25)).mean()
        assert name == "quantile"
        return torch.where(y > outputs, 0.9 * error, 0.1 * error).mean()


def batches(trial: PlannedTraining, steps: int) -> NDArray[np.int64]:
    """The positions of each step's examples, which are drawn by the seed: one permutation after the other."""
    (worker,) = trial.plan.workers()
    size, n = worker.task.batch_size, worker.num_examples
    drawn = (chance.generator(trial.plan.seed, "order", worker.node, k) for k in range(steps * size // n + 1))
    return np.concatenate([each.permutation(n) for each in drawn])[: steps * size].reshape(steps, size)


def bare_losses(name: str, steps: int, dtype: torch.dtype) -> list[float]:
    """The losses of a loop of torch alone: same examples, same beginning, gradient descent."""
    trial = planned(name)
    (worker,) = trial.plan.workers()
    model = models.initial_model(worker.task, trial.plan.seed).to(dtype).train()
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=RATE), []
    for places in batches(trial, steps):
        x, y = of_type(trial.examples(worker), places, dtype)
        loss = Bare.of(name, model, x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def of_type(examples: Examples, places: NDArray[np.int64], dtype: torch.dtype) -> tuple[Any, Any]:
    """Inputs and targets at some places as tensors, whose floats have this type."""

    def tensors(arrays: dict[str, NDArray[Any]]) -> Any:
        found = {name: torch.from_numpy(array[places]) for name, array in arrays.items()}
        for name, each in found.items():
            found[name] = each.to(dtype) if each.is_floating_point() else each.long() if name == "" else each
        return found[""] if list(found) == [""] else found

    return tensors(examples.inputs), tensors(examples.targets)


@pytest.mark.parametrize("name", tiny_tasks.TASKS)
def test_training_with_one_worker_is_a_loop_of_torch(name: str, tmp_path: Any) -> None:
    """Twenty steps on the same batches, through worker, messages and server, leave the same losses."""
    (trial,) = run(scenario(name), runtime="simulation", runs_dir=tmp_path).trials.values()
    np.testing.assert_allclose(trial.series.updates.loss, bare_losses(name, STEPS, torch.float32), rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", tiny_tasks.TASKS)
def test_network_and_server_are_a_loop_of_torch_in_double_precision(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred steps: what is left of a difference in single precision is rounding, and nothing else.

    A run exchanges single precision, so the worker's network and the server's step are taken without messages.
    """
    trial, steps = planned(name), 200
    (worker,) = trial.plan.workers()
    examples, single = trial.examples(worker), models.initial_parameters(worker.task, trial.plan.seed)
    monkeypatch.setattr(models, "_check", lambda *_: None)  # which refuses double precision
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        inputs, targets = (
            {key: each.astype("f8") if each.dtype == np.float32 else each for key, each in arrays.items()}
            for arrays in (examples.inputs, examples.targets)
        )
        net = network.Network(worker.task, Examples(inputs, targets))
        server = asynchronous.Aggregation(asynchronous.Config(learning_rate=RATE), single.astype("f8"))
        losses = []
        for places in batches(trial, steps):
            gradient, loss = net.gradient(server.theta, places)
            server.push("edge-0", ModelUpdate(len(gradient), None, gradient), server.version)
            losses.append(loss)
    finally:
        torch.set_default_dtype(default)

    assert server.theta.dtype == np.float64
    np.testing.assert_allclose(losses, bare_losses(name, steps, torch.float64), rtol=0, atol=1e-9)
    assert losses[-1] < losses[0]


def test_values_that_cannot_be_made_are_told_with_their_objective() -> None:
    """As an evaluator tells them that comes to sums of which validation had none, with the line of the user's file."""

    class Rare(Supervised):
        measures = (TaskMeasure("recall"),)

        def loss_of(self, outputs: Any, targets: Any) -> Any:
            return outputs.mean()

        def sums_of(self, outputs: Any, targets: Any) -> Any:
            return {"found": ((outputs > 0).sum(), 1), "all": (targets.sum(), 1)}

        def values(self, sums: Sums) -> dict[str, float]:
            return {"recall": sums["found"][0] / sums["all"][0]}

    told = r"objective Rare: no values of its measures: ZeroDivisionError: .* \(.*test_objectives.py:\d+\)"
    with pytest.raises(OwnCodeError, match=told):
        Rare().measured({"found": (2.0, 1.0), "all": (0.0, 1.0)})
