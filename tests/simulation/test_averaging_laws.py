"""Federated averaging through the real worker: equal to large batches where it should be, running means averaged."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from quick_runs import run as run_quickly
from torch import nn

from edgebed.algorithms.registry import buffer_mask
from edgebed.learning import weights
from edgebed.learning.inputs import prepared
from edgebed.learning.models import registry as models
from edgebed.planning.planning import PlannedTraining, plan_trials
from edgebed.roles.worker import BatchOrder
from edgebed.scenario.load import load_scenario

WORKERS = 4
EXAMPLES = 16  # of each, a power of two like the learning rate: scaling by them is exact
RATE = 0.125


def final_models(folder: Path, scenario: dict[str, Any]) -> dict[str, NDArray[np.float32]]:
    """Of each variant."""
    run = run_quickly(scenario, runtime="simulation", runs_dir=folder)
    assert {trial.summary.outcome for trial in run.trials.values()} == {"completed"}
    return {name: trial.checkpoint() for name, trial in run.trials.items()}


def averaged(**settings: Any) -> dict[str, Any]:
    """Federated averaging with one step between two rounds."""
    return {"preset": "fedavg", "local_work": {"steps": 1, "learning_rate": RATE}} | settings


def large_batch(**settings: Any) -> dict[str, Any]:
    """One gradient of all examples in each round."""
    return {"preset": "sync-sgd", "aggregation": {"learning_rate": RATE}} | settings


def test_one_local_step_over_all_examples_is_a_large_batch(tmp_path: Path) -> None:
    """Bit for bit after many rounds; through 8-bit integers too, whose scales are powers of two apart."""
    int8 = {"compression": {"name": "int8"}}
    found = final_models(
        tmp_path,
        {
            "name": "one-step",
            "seed": 5,
            "task": {"data": "digits", "fraction": WORKERS * EXAMPLES / 1438, "model": "small", "batch_size": EXAMPLES},
            "fleet": {"edge": {"count": WORKERS}},
            "evaluation": {"every": "40 updates"},
            "stop": {"updates": 40},
            "variants": {
                "averaged": {"method": averaged()},
                "large": {"method": large_batch()},
                "averaged-int8": {"method": averaged(**int8)},
                "large-int8": {"method": large_batch(**int8)},
                "two-steps": {"method": averaged(local_work={"steps": 2, "learning_rate": RATE})},
                "alone": {
                    "method": large_batch(),
                    "task": {"batch_size": WORKERS * EXAMPLES},
                    "fleet": {"edge": {"count": 1}},
                    "stop": {"updates": 10},
                    "evaluation": {"every": "10 updates"},
                },
            },
        },
    )

    np.testing.assert_array_equal(found["averaged"], found["large"])
    np.testing.assert_array_equal(found["averaged-int8"], found["large-int8"])
    np.testing.assert_allclose(found["large"], found["alone"], atol=1e-5)  # one device with everybody's examples
    assert (found["averaged"] != found["averaged-int8"]).any()
    assert np.abs(found["averaged"] - found["two-steps"]).max() > 1e-3


def buffers_of(planned: PlannedTraining, worker: str, theta: NDArray[np.float32], steps: int) -> NDArray[np.float32]:
    """What modules keep beside parameters after a client's own steps, as torch itself does them."""
    plan = planned.plan.node(worker)
    model, part, order = models.build_for(plan.task), planned.parts[worker], BatchOrder(plan)
    ends = np.cumsum([tensor.size for tensor in plan.task.layout])
    for each, end in zip(weights.trained(model), ends, strict=True):
        own = theta[end - each.tensor.numel() : end].copy()
        each.tensor.data.copy_(torch.from_numpy(own).view(each.tensor.shape))
    model.train()
    for k in range(steps):
        chosen = part[order.batch(k)]
        x = prepared(torch.from_numpy(planned.data.train.inputs[""][chosen]), plan.task)
        model.zero_grad()
        nn.functional.cross_entropy(
            model(x), torch.from_numpy(planned.data.train.targets[""][chosen]).long()
        ).backward()
        with torch.no_grad():
            for parameter in model.parameters():
                assert parameter.grad is not None
                parameter.sub_(RATE * parameter.grad)
    whole = weights.flat(model)
    is_buffer = buffer_mask(plan.task)
    assert is_buffer is not None
    return whole[is_buffer]


@pytest.mark.parametrize("compression", ["none", "int8", "top-k", "powersgd-local"])
def test_running_means_after_a_round_are_the_mean_of_the_clients(tmp_path: Path, compression: str) -> None:
    """Weighted by their examples, as models are; whole and uncompressed, whatever parameters are sent as."""
    method = {
        "preset": "fedavg",
        "local_work": {"steps": 3, "learning_rate": RATE},
        "compression": {"name": compression},
    }
    scenario = {
        "name": "buffers",
        "seed": 6,
        "task": {
            "data": "digits", "fraction": 0.1, "model": "resnet8", "width": 2, "batch_size": 8,
            "split": {"dirichlet": 1.0},
        },
        "method": method,
        "fleet": {"edge": {"count": 3}},
        "stop": {"updates": 3},
    }  # fmt: skip
    (planned,) = plan_trials(load_scenario(scenario))
    task, workers = planned.plan.nodes[0].task, planned.plan.workers()
    theta = models.initial_parameters(task, planned.plan.seed)
    (found,) = final_models(tmp_path, scenario).values()
    is_buffer = buffer_mask(task)
    sizes = [node.num_examples for node in workers]
    each = [buffers_of(planned, node.node, theta, 3) for node in workers]

    assert len(set(sizes)) > 1
    np.testing.assert_allclose(found[is_buffer], np.average(each, axis=0, weights=sizes), rtol=1e-5, atol=1e-6)
    assert np.abs(found[is_buffer] - theta[is_buffer]).max() > 0.01
    assert np.abs(each[0] - each[1]).max() > 0.001  # so that a mean of them is none of them
