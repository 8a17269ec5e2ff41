"""Faults of nodes in containers: each kind happens, is told with its times, and training lives through it."""

import os
from typing import Any

import pytest
from patiently import TooLateError, patiently
from quick_runs import run as run_quickly

from edgebed.core import records
from edgebed.running.results import Trial

pytestmark = pytest.mark.timeout(900)  # where a busy machine has a run begun again, with more time

NAME = f"faulty-{os.getpid()}"
SCENARIO = {
    "name": NAME,
    "question": "Does training live through this?",
    "seed": 3,
    "task": {"data": "digits", "model": "small", "batch_size": 10},
    "method": "asgd",
    "fleet": {"edge": {"count": 4, "waiting": "60ms"}},
    "evaluation": {"every": "500 updates"},
}
HEALED_S_MAX = 5.0  # however long the cut
ON_ITS_WAY_S = 0.5  # what the server has received already it may still apply


def faults_of(trial: Trial) -> list[tuple[float, records.Fault]]:
    """What was done, and when."""
    return [(t, record) for t, _, record in trial.events() if isinstance(record, records.Fault)]


def happened_s(trial: Trial, action: str, node: str) -> tuple[float, float]:
    """When something was asked for, and when it was done, in seconds of the trial."""
    ((t, fault),) = [found for found in faults_of(trial) if (found[1].action, found[1].target) == (action, node)]
    return fault.asked_s, t


def updates_of(trial: Trial, node: str, incarnation: int = 1) -> list[float]:
    """When the server applied those of a worker's life."""
    return [
        t
        for t, _, record in trial.events()
        if isinstance(record, records.Update) and (record.worker, record.incarnation) == (node, incarnation)
    ]


def reasons(trial: Trial, node: str, state: str) -> list[str]:
    """What was told of a node each time it came into a state."""
    return [
        record.reason
        for _, _, record in trial.events()
        if isinstance(record, records.Node) and (record.name, record.state) == (node, state)
    ]


def assert_accounted(trial: Trial) -> None:
    """Each update has an end, and what the faults did is told without a problem."""
    assert trial.summary.outcome == "completed"
    assert [fault.problem for _, fault in faults_of(trial) if fault.problem] == []
    assert all(t >= fault.asked_s for t, fault in faults_of(trial))
    assert trial.summary.accounting.problems == ()
    assert trial.summary.accounting.closes


def test_what_stops_a_node_for_a_while(engine, tmp_path, onlooker, metrics, free_port) -> None:
    """Frozen and thawed, killed and launched, cut off and healed; one is capped, and frozen at the end."""
    seen: dict[str, Any] = {}

    def look() -> None:
        """Late: all but the last freeze is over."""
        seen["metrics"] = metrics("edge-1", free_port)
        (slowed,) = engine.containers(node="edge-3")
        seen["quota"] = slowed["HostConfig"]["CpuPeriod"], slowed["HostConfig"]["CpuQuota"]
        seen["helpers"] = [
            container["Config"]["Labels"]["edgebed.link"]
            for container in engine.containers()
            if "edgebed.link" in container["Config"]["Labels"]
        ]

    def attempt(times: int) -> Trial:
        """A trial that ends so many times as late."""
        faults = [
            {"freeze": "edge-0", "at": "1s", "for": "3s"},
            {"restart": "edge-1", "at": "1s", "delay": "500ms"},
            {"cut": "edge-2", "at": "1s", "for": "4s"},
            {"cpus": "edge-3", "at": "1s", "to": 0.5},
            {"freeze": "edge-3", "at": f"{12 * times}s"},
        ]
        scenario = SCENARIO | {"faults": faults, "stop": {"time": f"{13 * times}s"}}
        progress = onlooker(look, elapsed_s=10.0 * times)
        run = run_quickly(scenario, runtime="docker", runs_dir=tmp_path, progress=progress, port=free_port)
        (trial,) = run.trials.values()
        return trial

    trial = patiently(attempt)
    assert_accounted(trial)
    actions = [(fault.target, fault.action) for _, fault in faults_of(trial)]
    assert sorted(actions) == [
        ("edge-0", "freeze"),
        ("edge-0", "thaw"),
        ("edge-1", "kill"),
        ("edge-1", "launch"),
        ("edge-2", "cut"),
        ("edge-2", "heal"),
        ("edge-3", "cpus"),
        ("edge-3", "freeze"),
    ]

    (_, frozen_s), (thaw_s, thawed_s) = happened_s(trial, "freeze", "edge-0"), happened_s(trial, "thaw", "edge-0")
    assert not [t for t in updates_of(trial, "edge-0") if frozen_s + ON_ITS_WAY_S < t < thaw_s]
    assert [t for t in updates_of(trial, "edge-0") if t > thawed_s], "it goes on where it stopped"

    assert reasons(trial, "edge-1", "died") == ["killed by SIGKILL"]
    assert max(updates_of(trial, "edge-1", 1)) < min(updates_of(trial, "edge-1", 2))
    assert "edgebed_worker" in seen["metrics"], "its new life is found where it is now"

    (_, cut_s), (heal_s, healed_s) = happened_s(trial, "cut", "edge-2"), happened_s(trial, "heal", "edge-2")
    assert not [t for t in updates_of(trial, "edge-2") if cut_s + ON_ITS_WAY_S < t < heal_s]
    assert min(t for t in updates_of(trial, "edge-2") if t > healed_s) < healed_s + HEALED_S_MAX
    assert seen["helpers"] == ["edge-2"], "only a link that faults concern keeps its helper"

    assert seen["quota"] == (100_000, 50_000)
    assert reasons(trial, "edge-3", "stopped") == ["frozen until the end"]
    assert engine.removable() == []


def test_whoever_dies_is_launched_again(engine, tmp_path) -> None:
    """Out of memory, where a push has just left, and the server itself, which goes on where its log ends."""
    faults = [
        {"memory": "edge-0", "at": "2s"},
        {"kill": "edge-1", "after": "push", "step": 20},
        {"restart": "server", "at_update": 500, "delay": "500ms"},
    ]
    edge = {"count": 3, "memory": "512MiB", "waiting": "20ms"}
    own = {"fleet": {"edge": edge}, "checkpoints": {"every": "100 updates"}, "stop": {"updates": 1200}}
    scenario = SCENARIO | own | {"faults": faults, "on_failure": "restart"}
    run = run_quickly(scenario, runtime="docker", runs_dir=tmp_path)

    (trial,) = run.trials.values()
    assert_accounted(trial)
    (out_of_memory,) = reasons(trial, "edge-0", "died")
    assert out_of_memory.startswith("out of memory: killed by the kernel at its limit of 512MiB, peak 51")
    (killed,) = reasons(trial, "edge-1", "died")
    assert killed.startswith("killed by SIGKILL")
    (restored,) = [record for _, _, record in trial.events() if isinstance(record, records.Restored)]
    assert restored.version >= 500, "it was killed after update 500, and has lost none"
    for node in ("edge-0", "edge-1", "edge-2"):
        assert max(updates_of(trial, node, 1 if node == "edge-2" else 2)) > happened_s(trial, "launch", "server")[1]
    log = (run.path / "asgd" / "logs" / "edge-0.log").read_text()
    assert log.count("edgebed-node: memory") == 1
    assert log.rstrip().endswith("edge-0: 1200 updates were applied"), "one log tells of both lives"


def test_a_link_that_changes_is_changed_in_its_next_life_too(engine, tmp_path) -> None:
    """And goes back to what its plan says; nothing has to be limited for that."""

    def attempt(times: int) -> Trial:
        """A trial in which the link is another for so many times as long."""
        faults = [
            {"link": "edge-0", "at": "1s", "uplink": "300kbit", "for": f"{11 * times}s"},
            {"restart": "edge-0", "at": "3s", "delay": "500ms"},
        ]
        scenario = SCENARIO | {"faults": faults, "stop": {"time": f"{14 * times}s"}}
        run = run_quickly(scenario, runtime="docker", runs_dir=tmp_path, set=["fleet.edge.count=2"])
        (trial,) = run.trials.values()
        again = updates_of(trial, "edge-0", 2)
        if not again or again[0] > trial.series.training_s + 11 * times:
            raise TooLateError("the second life of edge-0 began after its link was as planned")
        return trial

    trial = patiently(attempt)
    assert_accounted(trial)
    held = [
        (record.uplink_held, record.problem)
        for _, who, record in trial.events()
        if who == "edge-0" and isinstance(record, records.Link)
    ]
    assert [uplink for uplink, _ in held if uplink] == [300_000, 300_000]
    assert held[-1] == (None, "")
