"""Every objective, built in and of one's own: a single worker leaves the same bits in every runtime."""

import functools
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_tasks
from quick_runs import run

from edgebed.core import records
from edgebed.learning.objectives.registry import OBJECTIVES
from edgebed.running.results import Trial

MODULE = "tiny_tasks_of_ones_own"
FOLDER = tempfile.TemporaryDirectory(prefix="edgebed-objectives-")  # gone when the tests are over
SCENARIO: dict[str, Any] = {
    "name": "objectives",
    "seed": 7,
    "task": tiny_tasks.task(*tiny_tasks.TASKS["classification"], MODULE) | {"batch_size": 10, "gradient_time": "1ms"},
    "method": {"preset": "asgd", "aggregation": {"learning_rate": 0.1}},
    "fleet": {"edge": {"count": 1}},
    "evaluation": {"every": "10 updates"},
    "stop": {"updates": 40},
    "variants": {name: {"task": tiny_tasks.task(*each, MODULE)} for name, each in tiny_tasks.TASKS.items()},
}


IN_CONTAINERS = ("next-token", "both")
"""Containers hold the same nodes as processes do: of a built-in objective and one's own in the suite."""
CASES = [
    *(pytest.param("process", name, marks=pytest.mark.process) for name in tiny_tasks.TASKS),
    *(pytest.param("docker", name, marks=pytest.mark.docker) for name in IN_CONTAINERS),
    *(
        pytest.param("docker", name, marks=[pytest.mark.docker, pytest.mark.soak])
        for name in tiny_tasks.TASKS
        if name not in IN_CONTAINERS
    ),
]


@functools.cache
def trial(runtime: str, name: str) -> Trial:
    """A trial of that task in that runtime; run once for all tests."""
    folder = Path(FOLDER.name)
    shutil.copy(tiny_tasks.__file__, folder / f"{MODULE}.py")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return run(SCENARIO, runtime=runtime, variants=[name], runs_dir=folder / runtime).trials[name]


def test_there_is_a_task_for_each_objective() -> None:
    """And some for one's own."""
    given = {each if isinstance(each, str) else each["name"] for _, _, each in tiny_tasks.TASKS.values()}
    assert given >= OBJECTIVES.keys()


@pytest.mark.simulation
@pytest.mark.parametrize("name", tiny_tasks.TASKS)
def test_every_objective_is_learnt(name: str) -> None:
    """Its measures are those that it declares, the headline is better than it was, and the loss is lower."""
    found = trial("simulation", name)
    evaluations, measures = found.series.evaluations, found.plan.measures
    values, losses = evaluations.values, found.series.updates.loss

    assert found.summary.outcome == "completed"
    assert list(evaluations.measured) == [each.name for each in measures]
    assert measures[0].gain(values[-1], values[0]) > 0
    assert losses[-10:].mean() < losses[:10].mean()


@pytest.mark.parametrize(("runtime", "name"), CASES)
def test_a_single_worker_leaves_the_same_bits_in_every_runtime(runtime: str, name: str) -> None:
    """Weights, each loss, and each measure at each evaluation."""
    expected, found = trial("simulation", name), trial(runtime, name)

    np.testing.assert_array_equal(found.checkpoint(), expected.checkpoint())
    np.testing.assert_array_equal(found.series.updates.loss, expected.series.updates.loss)
    assert measured(found) == measured(expected)


def measured(found: Trial) -> dict[int, dict[str, float]]:
    """What was measured of each version."""
    return {each.version: each.measured for _, _, each in found.events() if isinstance(each, records.Evaluated)}
