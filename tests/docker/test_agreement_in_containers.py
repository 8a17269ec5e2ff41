"""Containers do what the simulation says: exactly, where the order of pushes cannot matter."""

import os
from pathlib import Path

import pytest

from edgebed.running.run import without_report
from edgebed.studies.agreement.run_agreement import judge, run_all

SCENARIO = {
    "name": f"agreeing-{os.getpid()}-containers",
    "question": "Do containers do what the simulation says?",
    "seed": 1,
    "task": {"data": "digits", "model": "small", "batch_size": 10},
    "method": "sync-sgd",
    "fleet": {"edge": {"count": 2, "waiting": {"exponential": "20ms"}}},
    "evaluation": {"every": "10 updates"},
    "stop": {"updates": 40},
}


@pytest.mark.slow
def test_rounds_are_the_same_in_containers_as_in_simulation(tmp_path: Path) -> None:
    """Accuracies, entries, bytes and staleness do not differ at all; the reference is the one that is named first."""
    runs = run_all(without_report, SCENARIO, runtimes=("simulation", "docker"), seeds=2, runs_dir=tmp_path)
    found = judge(runs)
    (trial,) = found.trials

    assert [(run.summary.runtime, run.summary.seed) for run in runs] == [
        (runtime, seed) for runtime in ("simulation", "docker") for seed in (1, 2)
    ]
    assert [judgement.difference for judgement in trial.judgements] == [0.0] * 4
    assert judge(runs, ("docker", "simulation")).trials[0].reference == "docker"
