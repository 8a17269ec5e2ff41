"""Containers of which only their engine knows: asked in turn, and no longer than a tenth of the time."""

import pytest
import requests
from node_plans import plan_of_role

from edgebed.runtimes.containers.container import Container
from edgebed.runtimes.containers.hosts import sight
from edgebed.runtimes.containers.hosts.sight import ENGINE_SHARE_MAX, NOT_HERE, ContainerSight

NODES = ("edge-0", "edge-1", "edge-2")


class Clock:
    """Time that passes while an engine answers, and when a test says so."""

    now = 0.0

    def monotonic(self):
        """Seconds."""
        return self.now


class Engine:
    """Stands in for an engine on another host."""

    def __init__(self, clock):
        self.api = self
        self.clock = clock
        self.asked = []
        self.is_away = False
        self.cpu_ns = 2_000_000_000

    def inspect_container(self, container):
        """A container that runs, with a process of which this machine knows nothing."""
        return {"State": {"Pid": 4711}, "NetworkSettings": {"Networks": {}}}

    def stats(self, container, *, stream, one_shot):
        """Its counters, after a while."""
        assert (stream, one_shot) == (False, True)
        self.clock.now += 0.05
        if self.is_away:
            raise requests.ConnectionError
        self.asked.append(container)
        return {"cpu_stats": {"cpu_usage": {"total_usage": self.cpu_ns}}, "memory_stats": {"max_usage": 7}}


@pytest.fixture
def engine(monkeypatch, tmp_path):
    """One whose host's kernel this machine does not see."""
    clock = Clock()
    monkeypatch.setattr(sight, "time", clock)
    monkeypatch.setattr(sight, "ROOT", tmp_path)
    return Engine(clock)


@pytest.fixture
def seeing(engine):
    """A sight of three containers."""
    plans = [plan_of_role(node=name, role="worker", device_class="edge") for name in NODES]
    containers = {
        plan.node: Container(engine, None, plan, 1, f"id-{plan.node}", lambda _: None) for plan in plans
    }  # fmt: skip
    made = ContainerSight(containers.get, dict.fromkeys(NODES, 100), "net")
    yield made
    made.close()


def test_an_engine_s_count_is_taken_and_what_it_does_not_tell_is_said(engine, seeing):
    """CPU time and memory; neither caps nor the far end, and no difference for that."""
    engine.clock.now = 100.0
    found = dict(seeing.look(NODES, whole=True))

    assert found.keys() == set(NODES)
    look = found["edge-0"]
    assert (look.life, look.cpu_s, look.memory_bytes, look.is_whole) == ("id-edge-0", 2.0, 7, True)
    assert (look.since_s, look.until_s) == pytest.approx((100.0, 100.05))
    assert (look.uplink_bytes, look.cpus_held, look.differences) == (None, None, ())
    assert all(text.endswith(NOT_HERE) for text in look.unread)


def test_engines_are_asked_for_a_tenth_of_the_time_and_every_node_has_its_turn(engine, seeing):
    """However many rounds there are: those that had no turn are the first of the next round."""
    for _ in range(200):
        engine.clock.now += 0.1
        list(seeing.look(NODES, whole=True))
    counts = [engine.asked.count(f"id-{node}") for node in NODES]

    assert sum(counts) * 0.05 <= ENGINE_SHARE_MAX * engine.clock.now + 0.05
    assert max(counts) - min(counts) <= 1
    assert min(counts) > 10


def test_a_container_that_is_gone_and_an_engine_that_does_not_answer_are_not_seen(engine, seeing):
    """Nor is a node that has none; others go on."""
    engine.clock.now = 100.0
    engine.cpu_ns = 0
    gone = list(seeing.look(["edge-0"], whole=False))
    engine.is_away = True
    away = list(seeing.look(["edge-1"], whole=False))

    assert gone == away == list(seeing.look(["nobody"], whole=True)) == []
