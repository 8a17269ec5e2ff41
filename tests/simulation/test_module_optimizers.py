"""Modules with an optimizer of their own, in virtual time and in processes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from quick_runs import run as run_quickly

SCENARIO: dict[str, Any] = {
    "name": "modules",
    "seed": 3,
    "task": {"data": "digits", "model": "eight-layer", "width": 4, "batch_size": 16},
    "fleet": {"edge": {"count": 3}},
    "evaluation": {"every": "30 updates"},
    "stop": {"updates": 30},
}
OTHER = {"name": "sgd", "learning_rate": 0.03, "decay_at": [10]}


def trained(folder: Path, runtime: str, method: dict[str, Any], **shards: Any) -> NDArray[np.float32]:
    """The weights at the end; with a queue of one nothing is left to chance."""
    scenario = SCENARIO | {"method": method, "shards": {"cuts": "even", "queue": 1} | shards}
    run = run_quickly(scenario, runtime=runtime, runs_dir=folder)  # type: ignore[arg-type]
    (trial,) = run.trials.values()

    assert trial.summary.outcome == "completed"
    return trial.checkpoint()


def test_modules_learn_by_their_own_optimizer_wherever_they_lie(tmp_path: Path) -> None:
    """Beside the layers or on a node of their own, the same; not what they would learn by that of the layers."""
    method = {"preset": "synthetic-gradients", "module_optimizer": OTHER}
    beside = trained(tmp_path, "simulation", method)

    np.testing.assert_array_equal(trained(tmp_path, "simulation", method, modules="apart"), beside)
    assert (trained(tmp_path, "simulation", {"preset": "synthetic-gradients"}) != beside).any()


def test_the_optimizer_of_the_layers_may_be_said_twice(tmp_path: Path) -> None:
    """As the default is."""
    once, twice = (
        trained(tmp_path, "simulation", {"preset": "synthetic-inputs", "optimizer": OTHER} | given)
        for given in ({}, {"module_optimizer": OTHER})
    )

    np.testing.assert_array_equal(once, twice)


def test_modules_of_inputs_learn_by_an_optimizer_of_their_own(tmp_path: Path) -> None:
    """The others learn by theirs; said of both it is the same."""
    method = {"preset": "synthetic-inputs", "module_optimizer": OTHER}
    same, other = (
        trained(tmp_path, "simulation", method | {"input_optimizer": given})
        for given in (OTHER, {"name": "sgd", "learning_rate": 1e-5})
    )

    np.testing.assert_array_equal(trained(tmp_path, "simulation", method), same)
    assert (other != same).any()


@pytest.mark.process
def test_processes_do_as_the_simulation_does(tmp_path: Path) -> None:
    """Bit for bit."""
    method = {"preset": "synthetic-gradients", "module_optimizer": OTHER}

    np.testing.assert_array_equal(trained(tmp_path, "process", method), trained(tmp_path, "simulation", method))
