"""Nodes that exist in virtual time: whose heartbeats come, and how long their work takes."""

import numpy as np
import pytest

from edgebed.core.plan import TrainingPlan
from edgebed.core.planned.device_core import Core
from edgebed.roles.events import Compute
from edgebed.roles.work import EvaluationJob, GradientJob, GradientResult
from edgebed.runtimes.simulation.agenda import Agenda
from edgebed.runtimes.simulation.devices import SimulatedDevices
from edgebed.runtimes.simulation.fleet import Fleet
from edgebed.runtimes.simulation.simulated_node import SimulatedIncarnation


@pytest.fixture
def fleet():
    """Three nodes, of which one has no heart yet."""
    agenda = Agenda[SimulatedIncarnation]()
    made = Fleet(agenda)
    for name in ("a", "b", "c"):
        made[name] = SimulatedIncarnation(name)
    for name in ("a", "b"):
        made.equip(made[name], object())
    return made


def test_heartbeats_come_from_nodes_with_a_heart_until_they_end(fleet):
    """One that is equipped later sends them from then on."""
    assert fleet.check().alive == {"a", "b"}
    fleet.equip(fleet["c"], object())
    fleet.end(fleet["a"])
    assert fleet.check().alive == {"b", "c"}


def test_a_frozen_nodes_last_heartbeat_counts_once(fleet):
    """It came before the freeze; after a thaw they come again."""
    fleet.freeze(fleet["a"])
    fleet.freeze(fleet["a"])
    assert fleet.check().alive == {"a", "b"}
    assert fleet.check().alive == {"b"}
    fleet.thaw(fleet["a"])
    assert fleet.check().alive == {"a", "b"}


@pytest.mark.parametrize(
    ("core", "took_s"),
    [
        (None, [0.04, (0.2, 0.4), 0.04, 0.04]),
        (Core.of_speed(1e9, overhead_s=0.01), [0.08, 0.8, 0.04, 0.08]),
    ],
)
def test_work_takes_longer_on_a_slow_device_and_under_a_cap_that_may_change(make_node, core, took_s):
    """10 ms a batch; work that a cap lets through in a part of a period is held up on a device's core alone."""
    plan = TrainingPlan(
        scenario="s", trial="t", question="", seed=1, nodes=(make_node(compute_speed=0.5, cpus=0.5, core=core),)
    )

    def run_job(node, job):
        yield
        return GradientResult((), (), 0.0, None, 0.0, 0.0)

    devices = SimulatedDevices(plan, np.zeros(3, "f4"), run_job, 1)
    effect = Compute(GradientJob(devices.arena.empty(), (np.arange(1),) * 2, 0, None), pause_s=1.0)
    for begun_s, (cpus, expected) in enumerate(zip((0.5, 0.05, 4.0, None), took_s, strict=True)):
        devices.cap("edge-0", cpus)
        found_s = devices.submit("edge-0", effect, begun_s)[0] - begun_s - effect.pause_s
        least_s, most_s = expected if isinstance(expected, tuple) else (expected, expected)
        assert least_s - 1e-9 <= found_s <= most_s + 1e-9
    devices.pool.close()

    evaluation = Compute(EvaluationJob(devices.arena.empty(), 0, final=False))
    assert devices.submit("edge-0", evaluation, 5.0)[0] == 5.0
