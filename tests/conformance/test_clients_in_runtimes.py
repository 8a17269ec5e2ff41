"""Natural clients in every runtime: a person a worker, of whom one has a single example, and some are held out."""

import functools
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import people
import pytest
from quick_runs import run as run_quickly

from edgebed.running.results import Run, Trial

RUNTIMES = [
    pytest.param("simulation", marks=pytest.mark.simulation),
    pytest.param("process", marks=pytest.mark.process),
    pytest.param("docker", marks=pytest.mark.docker),
]
ROUNDS = 5
SCENARIO: dict[str, Any] = {
    "name": "clients",
    "seed": 5,
    "task": {"data": "own_people:people", "model": "mlp", "batch_size": 8, "gradient_time": "1ms", "split": "by-client",
             "held_out": ["p6"]},
    "method": "fedavg",
    "fleet": {"phone": {"count": 7, "waiting": "5ms"}},
    "evaluation": {"every": "7 updates"},
    "stop": {"updates": 7 * ROUNDS},
    "variants": {
        "fedavg": {},
        "fedprox": {"method": {"preset": "fedprox", "local_work": {"epochs": 2}}},
        "steps": {"method": {"preset": "fedavg", "local_work": {"steps": 2}}},
        "gradients": {"method": "sync-sgd"},
        "left-out": {"task": {"split": {"dirichlet": 0.2}, "min_examples": 4}, "stop": {"updates": 30}},
    },
}  # fmt: skip
FOLDER = tempfile.TemporaryDirectory(prefix="edgebed-clients-")  # gone when the tests are over


@functools.cache
def trials(runtime: str) -> dict[str, Trial]:
    """All variants in that runtime; run once for all tests."""
    folder = Path(FOLDER.name)
    people.copied(folder)
    path = folder / "clients.json"
    path.write_text(json.dumps(SCENARIO))
    run: Run = run_quickly(path, runtime=runtime, runs_dir=folder / runtime)
    return run.trials


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("variant", SCENARIO["variants"])
def test_whoever_has_how_many_examples_the_weights_are_the_same(runtime: str, variant: str) -> None:
    """Rounds wait for all, and are summed in the order of names: every runtime leaves the same bits."""
    expected, found = trials("simulation")[variant], trials(runtime)[variant]

    assert found.summary.outcome == "completed"
    assert found.summary.is_sound
    assert np.array_equal(expected.checkpoint(), found.checkpoint())
    assert np.isfinite(found.checkpoint()).all()


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_everybody_who_trains_takes_part_in_every_round_and_all_is_accounted_for(runtime: str) -> None:
    """The one with a single example, too."""
    for variant in ("fedavg", "fedprox", "steps", "gradients"):
        trial = trials(runtime)[variant]
        workers = [node.node for node in trial.plan.workers()]

        assert min(node.num_examples for node in trial.plan.workers()) == 1
        assert len(workers) == 7
        assert (trial.summary.server.worker_updates_min, trial.summary.server.worker_updates_max) == (ROUNDS, ROUNDS)
        assert (trial.summary.server.updates_lost, trial.summary.server.updates_unexplained) == (0, 0)
        losses = trial.series.updates.loss
        assert np.isfinite(losses).all()


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_worker_with_too_few_examples_is_not_there_and_nobody_waits_for_it(runtime: str) -> None:
    """Rounds end with those who are."""
    trial = trials(runtime)["left-out"]
    workers = trial.plan.workers()

    assert 0 < len(workers) < 7
    assert min(node.num_examples for node in workers) >= 4
    assert trial.summary.server.worker_updates_max - trial.summary.server.worker_updates_min <= 1
