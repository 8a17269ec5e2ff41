"""A shard that keeps the weights that it begins with, while the others learn."""

from pathlib import Path

import numpy as np
import pytest
from quick_runs import run as run_quickly

from edgebed.core.errors import ScenarioError
from edgebed.learning.models import registry as models
from edgebed.running.results import Trial

SCENARIO = {
    "name": "frozen",
    "question": "Can the last layer learn from layers that do not?",
    "task": {"data": "digits", "model": "sigmoid-200", "batch_size": 32, "gradient_time": "1ms"},
    "method": "synthetic-gradients",
    "fleet": {"edge": {"count": 2}},
    "evaluation": {"every": "100 updates"},
    "checkpoints": {"every": "100 updates"},
    "stop": {"updates": 200},
}


def trial(folder: Path, method: str, frozen: list[str]) -> Trial:
    """The only one."""
    varied = SCENARIO | {"method": method, "shards": {"frozen": frozen}}
    (only,) = run_quickly(varied, runtime="simulation", runs_dir=folder).trials.values()
    return only


@pytest.mark.parametrize("method", ["back-propagation", "synthetic-gradients"])
def test_who_is_frozen_keeps_its_weights_and_the_others_learn(tmp_path: Path, method: str) -> None:
    """Of 64-200-10 units the lower weights are the first ones; the accuracy is far above chance."""
    found = trial(tmp_path, method, ["edge-0"])
    begun = models.initial_parameters(found.plan.node("server").task, found.plan.seed)
    lower = 64 * 200 + 200

    np.testing.assert_array_equal(found.checkpoint()[:lower], begun[:lower])
    assert not np.array_equal(found.checkpoint()[lower:], begun[lower:])
    assert found.summary.best["accuracy"] > 0.3


def test_nobody_is_frozen_who_is_no_worker(tmp_path: Path) -> None:
    """The error names the workers there are."""
    with pytest.raises(ScenarioError, match=r"shards\.frozen\.0: no worker 'edge-7';.* allowed: edge-0, edge-1"):
        trial(tmp_path, "back-propagation", ["edge-7"])
