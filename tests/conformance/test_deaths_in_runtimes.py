"""Who dies, who is launched, and what is said of it: one schedule in every runtime."""

import functools
import tempfile
from pathlib import Path

import pytest
from quick_runs import run as run_quickly

from edgebed.running.results import Run, Trial

RUNTIMES = [
    pytest.param("simulation", marks=pytest.mark.simulation),
    pytest.param("process", marks=pytest.mark.process),
    pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.soak]),  # a minute and a half
]
SCENARIO = {
    "name": "deaths",
    "seed": 7,
    "task": {"data": "digits", "model": "small", "batch_size": 10, "gradient_time": "1ms"},
    "method": "asgd",
    "fleet": {"edge": {"count": 3, "waiting": "20ms"}},
    "evaluation": {"every": "1000 updates"},
    "deadlines": {"join": "3m"},
    "restart_delay": "200ms",
    "variants": {
        "restarted": {
            "on_failure": "restart",
            "faults": [
                {"kill": "edge-0", "at_update": 50, "name": "kill"},
                {"freeze": "edge-1", "at": "500ms", "for": "2500ms", "name": "freeze"},
                {"restart": "edge-0", "at": "1h", "name": "later"},
            ],
            "stop": {"updates": 600},
        },
        "watched": {
            "evaluation": {"every": "10 updates"},
            "faults": [{"freeze": "evaluator", "at": "200ms", "for": "1500ms", "name": "freeze"}],
            "stop": {"updates": 200},
        },
        "killed": {"faults": [{"kill": "workers", "at": "300ms", "name": "kill"}], "stop": {"time": "1h"}},
    },
}
FOLDER = tempfile.TemporaryDirectory(prefix="edgebed-deaths-")  # gone when the tests are over


@functools.cache
def trials(runtime: str) -> dict[str, Trial]:
    """All trials in that runtime, run once for all tests; the one that fails is the last."""
    run: Run = run_quickly(SCENARIO, runtime=runtime, runs_dir=Path(FOLDER.name) / runtime)
    return run.trials


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_restart_that_is_planned_for_later_does_not_keep_a_dead_node_dead(runtime: str) -> None:
    """The policy launches who was killed, after its delay; a freeze of two silent checks that ends is no death."""
    found = trials(runtime)["restarted"]
    done = {(each.record.name, each.record.target): each for each in found.series.faults}

    assert sorted((name, target, done[name, target].record.action) for name, target in done) == [
        ("freeze", "edge-1", "thaw"),
        ("kill", "edge-0", "kill"),
        ("on_failure", "edge-0", "launch"),
    ]
    assert all(each.was_done for each in done.values())
    assert done["on_failure", "edge-0"].asked_t >= done["kill", "edge-0"].t + 0.2
    assert found.summary.outcome == "completed"


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_evaluations_that_are_asked_for_are_made_by_an_evaluator_that_stood_still(runtime: str) -> None:
    """Training goes on meanwhile, and past the end of what is due; models wait at the server."""
    found = trials(runtime)["watched"]

    assert found.series.evaluations.version.tolist() == [*range(0, 200, 10), 200]
    assert not [warning for warning in found.summary.warnings if "skipped" in warning]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_fault_that_kills_the_last_worker_happened(runtime: str) -> None:
    """It ends the trial; it was asked for, it was done, and nobody died unasked."""
    found = trials(runtime)["killed"]
    kills = [(each.record.target, each.was_done) for each in found.series.faults if each.record.action == "kill"]
    fidelity = found.summary.fidelity

    assert sorted(kills) == [("edge-0", True), ("edge-1", True), ("edge-2", True)]
    assert (found.summary.outcome, found.summary.faults_missed) == ("failed", 0)
    assert fidelity is not None
    assert not [reason for reason in fidelity.reasons if reason.startswith(("faults:", "deaths:"))]
