"""Clients with few examples: what they train on, what their updates weigh, and how long it takes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from quick_runs import run as run_quickly
from torch import nn

from edgebed.core.plan import WorkerPlan
from edgebed.learning import weights
from edgebed.learning.models import registry as models
from edgebed.planning.planning import PlannedTraining, plan_trials
from edgebed.roles.worker import BatchOrder
from edgebed.scenario.load import load_scenario

pytestmark = pytest.mark.simulation

RATE, BATCH, PEOPLE = 0.1, 8, 7
SCENARIO: dict[str, Any] = {
    "name": "small-clients",
    "seed": 2,
    "task": {"data": {"name": "people:people", "count": PEOPLE}, "model": "mlp", "batch_size": BATCH,
             "gradient_time": "8ms", "split": "by-client"},
    "method": {"preset": "fedavg", "local_work": {"learning_rate": RATE, "epochs": 2}},
    "fleet": {"phone": {"count": PEOPLE}},
    "evaluation": {"every": f"{PEOPLE} updates"},
    "stop": {"updates": 2 * PEOPLE},
}  # fmt: skip


def averaged(planned: PlannedTraining, rounds: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """FedAvg as McMahan et al. have it, by torch alone: E epochs of ceil(n / B) steps, models weighted by n_k / n."""
    nodes = planned.plan.workers()
    task, total = nodes[0].task, sum(node.num_examples for node in nodes)
    theta = models.initial_parameters(task, planned.plan.seed)
    for number in range(rounds):
        ends = np.zeros(len(theta))
        for node in nodes:
            ends += node.num_examples / total * trained(planned, node, theta, 2 * number)
        theta = ends.astype(np.float32)
    return theta


def trained(planned: PlannedTraining, node: WorkerPlan, theta: Any, epoch: int) -> Any:
    """What a client's two epochs make of a model."""
    model = models.build_for(node.task)
    nn.utils.vector_to_parameters(torch.from_numpy(theta.copy()), model.parameters())
    examples, order, batches = planned.examples(node), BatchOrder(node), -(-node.num_examples // BATCH)
    for k in range(epoch * batches, (epoch + 2) * batches):
        chosen = order.batch(k)
        assert len(chosen) <= BATCH
        model.zero_grad()
        x, y = (torch.from_numpy(arrays[""][chosen]) for arrays in (examples.inputs, examples.targets))
        nn.functional.cross_entropy(model(x), y).backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.sub_(RATE * parameter.grad)
    return weights.flat(model)


def test_averages_of_small_clients_are_those_of_a_bare_loop(tmp_path: Path) -> None:
    """One person has one example, most have no whole number of mini-batches."""
    (planned,) = plan_trials(load_scenario(SCENARIO))
    run = run_quickly(SCENARIO, runtime="simulation", runs_dir=tmp_path)
    sizes = sorted(node.num_examples for node in planned.plan.workers())

    assert sizes == [1, 2, 3, 5, 8, 13, 21]
    np.testing.assert_allclose(run.trials["fedavg"].checkpoint(), averaged(planned, 2), atol=1e-5)


def test_a_smaller_mini_batch_takes_its_share_of_the_time(tmp_path: Path) -> None:
    """8 ms for eight examples: two epochs of 21 of them, the most that one has, are 42 ms a round."""
    trial = run_quickly(SCENARIO, runtime="simulation", runs_dir=tmp_path).trials["fedavg"]
    ends = trial.series.updates.t.reshape(2, PEOPLE).max(axis=1)

    np.testing.assert_allclose(ends, [0.042, 0.084], atol=1e-6)
    assert trial.plan.server.epochs_a_push * PEOPLE == pytest.approx(2.0)
    assert trial.summary.examples_per_update == pytest.approx(2 * 53 / PEOPLE)


@pytest.mark.parametrize("method", ["fedavg", "asgd"])
def test_sixty_workers_of_the_most_uneven_split_train(method: str, tmp_path: Path) -> None:
    """Many have a single example."""
    sets = ["task.data=digits", "task.model=small", "task.split={dirichlet: 0.01}", "fleet.phone.count=60"]
    scenario = SCENARIO | {"method": method, "stop": {"updates": 120}, "evaluation": {"every": "60 updates"}}
    trial = run_quickly(scenario, runtime="simulation", runs_dir=tmp_path, set=sets).trials[method]
    sizes = [node.num_examples for node in trial.plan.workers()]

    assert (len(sizes), min(sizes), sum(sizes)) == (60, 1, 1438)
    assert (trial.summary.outcome, trial.summary.updates) == ("completed", 120)
    assert trial.summary.is_sound
