"""What the host of a run's trials does beside hosting: Prometheus' list, and what nodes are given."""

from types import SimpleNamespace

import numpy as np
import pytest

from edgebed.core import records
from edgebed.core.errors import EdgebedError
from edgebed.journal.checkpoints import CheckpointStore
from edgebed.journal.run_folder import TrialFolder
from edgebed.learning.beginning import Beginning
from edgebed.learning.shards.building import module_networks, shard_network
from edgebed.planning.planning import plan_trials
from edgebed.runtimes.checkpoint_fit import require_fitting
from edgebed.runtimes.hosting import TrialHost, runtime_of
from edgebed.scenario.load import load_scenario

SHARDS = {
    "name": "shards",
    "task": {"data": "digits", "model": "eight-layer", "width": 4, "batch_size": 32},
    "method": "synthetic-gradients",
    "fleet": {"edge": {"count": 2}},
    "shards": {"modules": "apart"},
    "stop": {"updates": 100},
}


@pytest.fixture
def world():
    """A host, what it does with records, and a node whose metrics are at an address that a test may change."""
    host = TrialHost(runtime_of("process", processes=1), port=0)
    host.run = "tiny/0001"
    host.metrics = SimpleNamespace(observe=lambda *_: None)
    member = SimpleNamespace(
        ready=SimpleNamespace(metrics_address="127.0.0.1:1"),
        plan=SimpleNamespace(role="worker", device_class="edge", host=""),
    )
    heart = SimpleNamespace(members={"edge-0": member}, plan=SimpleNamespace(trial="asgd"))
    observe = host._observe(heart)

    def become(state, incarnation, address=None):
        if address:
            member.ready = SimpleNamespace(metrics_address=address)
        observe(records.Node(name="edge-0", state=state, incarnation=incarnation), "controller")
        return [target["targets"] for target in host.targets.as_discovery()]

    return become


def test_a_nodes_second_life_moves_its_target(world):
    """One target a node: a dead one stays listed, to be seen as down, until its next life is where it is."""
    assert world("joined", 1) == []
    assert world("ready", 1) == [["127.0.0.1:1"]]
    for state in ("running", "unresponsive", "running", "died", "expected", "started"):
        assert world(state, 1) == [["127.0.0.1:1"]]
    assert world("joined", 2) == [["127.0.0.1:1"]]
    assert world("ready", 2, "127.0.0.1:2") == [["127.0.0.1:2"]]


def test_a_node_that_ended_in_order_is_no_news(world):
    """Nobody answers there any more, and nobody should ask."""
    world("ready", 1)

    assert world("stopped", 1) == []


@pytest.fixture
def shards(tmp_path):
    """A trial of shards whose gradient modules lie apart: folder, plan, initial model, and the state of each."""
    (planned,) = plan_trials(load_scenario(SHARDS, []))
    plan, folder = planned.plan, TrialFolder(tmp_path / "shards")
    folder.make(plan)
    beginning = Beginning(plan)
    states = {node.node: shard_network(node, beginning.constants(node)).state() for node in plan.workers()}
    states["modules"] = module_networks(plan.node("modules")).state()
    return folder, plan, beginning, states


@pytest.mark.parametrize(
    ("step", "change", "problem"),
    [
        (40, {}, ""),
        (40, {"edge-1": np.zeros(5, np.float32)}, r"edge-1: a state of shape \(5,\)"),
        (40, {"modules": np.zeros(0, np.float32)}, r"modules: a state of shape \(0,\)"),
        (40, {"edge-2": np.zeros(5, np.float32)}, "it is of edge-0, edge-1, modules, edge-2, where the trial has"),
        (99999999, {}, "version: 99,999,999, where the trial ends at update 100"),
    ],
    ids=["its own", "cut", "cut modules", "another's", "renamed"],
)
def test_shards_do_not_go_on_from_a_foreign_backup(shards, step, change, problem):
    """It is said before any node begins, and names the file."""
    folder, plan, beginning, states = shards
    np.savez(folder.backup(step), **states | change)
    checkpoints = CheckpointStore(folder, beginning.theta)
    if not problem:
        require_fitting(checkpoints, plan, beginning)
        return
    with pytest.raises(EdgebedError, match=rf"backup-{step}\.npz: no checkpoint of this trial: {problem}"):
        require_fitting(checkpoints, plan, beginning)
