"""What the host of a run's trials does beside hosting: Prometheus' list, and what nodes are given."""

from types import SimpleNamespace

import pytest

from edgebed.roles import records
from edgebed.runtimes.hosting import Host


@pytest.fixture
def world():
    """A host, what it does with records, and a node whose metrics are at an address that a test may change."""
    host = Host(runtime="process", processes=1, port=0)
    host.run = "tiny/0001"
    host.metrics = SimpleNamespace(observe=lambda _: None)
    member = SimpleNamespace(
        ready=SimpleNamespace(metrics_address="127.0.0.1:1"),
        plan=SimpleNamespace(role="worker", device_class="edge"),
    )
    heart = SimpleNamespace(members={"edge-0": member}, plan=SimpleNamespace(trial="asgd"))
    observe = host._observe(heart)

    def become(state, incarnation, address=None):
        if address:
            member.ready = SimpleNamespace(metrics_address=address)
        observe(records.Node(name="edge-0", state=state, incarnation=incarnation))
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
