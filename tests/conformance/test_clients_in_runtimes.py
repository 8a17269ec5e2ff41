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

from edgebed.running.results import Trial

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


def cases(*variants: str) -> list[Any]:  # what pytest.param makes has no public name
    """Each of these variants in each runtime."""
    return [
        pytest.param(
            runtime, variant, marks=[getattr(pytest.mark, name) for name in (runtime, *soaked(runtime, variant))]
        )
        for runtime in ("simulation", "process", "docker")
        for variant in variants
    ]


def soaked(runtime: str, variant: str) -> tuple[str, ...]:
    """Containers hold the same nodes as processes do, nine for each variant: of one in the suite."""
    return ("soak",) if runtime == "docker" and variant != "fedavg" else ()


@functools.cache
def trial(runtime: str, variant: str) -> Trial:
    """A variant in that runtime; run once for all tests."""
    folder = Path(FOLDER.name)
    people.copied(folder)
    path = folder / "clients.json"
    path.write_text(json.dumps(SCENARIO))
    return run_quickly(path, runtime=runtime, variants=[variant], runs_dir=folder / runtime).trials[variant]


@pytest.mark.parametrize(("runtime", "variant"), cases(*SCENARIO["variants"]))
def test_whoever_has_how_many_examples_the_weights_are_the_same(runtime: str, variant: str) -> None:
    """Rounds wait for all, and are summed in the order of names: every runtime leaves the same bits."""
    expected, found = trial("simulation", variant), trial(runtime, variant)

    assert found.summary.outcome == "completed"
    assert found.summary.is_sound
    assert np.array_equal(expected.checkpoint(), found.checkpoint())
    assert np.isfinite(found.checkpoint()).all()


@pytest.mark.parametrize(("runtime", "variant"), cases("fedavg", "fedprox", "steps", "gradients"))
def test_everybody_who_trains_takes_part_in_every_round_and_all_is_accounted_for(runtime: str, variant: str) -> None:
    """The one with a single example, too."""
    found = trial(runtime, variant)
    workers = [node.node for node in found.plan.workers()]

    assert min(node.num_examples for node in found.plan.workers()) == 1
    assert len(workers) == 7
    assert (found.summary.server.worker_updates_min, found.summary.server.worker_updates_max) == (ROUNDS, ROUNDS)
    assert (found.summary.server.updates_lost, found.summary.server.updates_unexplained) == (0, 0)
    losses = found.series.updates.loss
    assert np.isfinite(losses).all()


@pytest.mark.parametrize(("runtime", "variant"), cases("left-out"))
def test_a_worker_with_too_few_examples_is_not_there_and_nobody_waits_for_it(runtime: str, variant: str) -> None:
    """Rounds end with those who are."""
    found = trial(runtime, variant)
    workers = found.plan.workers()

    assert 0 < len(workers) < 7
    assert min(node.num_examples for node in workers) >= 4
    assert found.summary.server.worker_updates_max - found.summary.server.worker_updates_min <= 1
