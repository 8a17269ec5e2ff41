"""When a process has which CPU cap: a core to start with, its own once it is built, and so in every life."""

import os
from collections import deque
from types import SimpleNamespace

import pytest
from node_plans import plan_of_role

from edgebed.core.planned.fault import Injection
from edgebed.emulation.means import Mechanisms
from edgebed.runtimes.processes.launcher import ProcessLauncher


class Cgroups:
    """Notes the caps that it is to hold."""

    def __init__(self) -> None:
        self.caps: list[float | None] = []

    def begin_incarnation(self, node: str) -> None:
        """Nothing is counted here."""

    def cap_cpus(self, node: str, cpus: float | None) -> None:
        """It holds from now on."""
        self.caps.append(cpus)


@pytest.fixture
def launcher(tmp_path):
    """One that forks nothing, of a worker with half a core."""
    node = plan_of_role(node="edge-0", role="worker", device_class="edge", cpus=0.5)
    made = ProcessLauncher.__new__(ProcessLauncher)
    made.plan = SimpleNamespace(node=lambda _: node, security="none")
    made.forker = SimpleNamespace(try_order=lambda _: True)
    made.local = SimpleNamespace(mechanisms=Mechanisms("model"))
    made.log_folder, made.server_log, made.namespaces, made.cgroups = tmp_path, None, None, Cgroups()
    made.pids, made.launching, made.log_begins, made.folders, made.starting = {}, {}, {}, {}, {}
    made.injected, made.bell = deque(), os.eventfd(0)
    yield made
    os.close(made.bell)


def cpus(launcher, cores: float | None) -> str:
    """A fault of that kind; what came of it."""
    launcher.inject(1, Injection(node="edge-0", action="cpus", cpus=cores))
    return launcher.injected.pop().problem


def test_a_cap_holds_from_when_the_node_is_built_in_every_life(launcher):
    """What a fault asks for while it starts is held then; the next life begins with a core again."""
    launcher.launch("edge-0", "tcp://127.0.0.1:1", "5e")
    problems = [cpus(launcher, 0.2)]
    launcher.cap("edge-0")
    problems.append(cpus(launcher, None))
    first, launcher.cgroups.caps = launcher.cgroups.caps, []
    launcher.launch("edge-0", "tcp://127.0.0.1:1", "5e")
    launcher.cap("edge-0")

    assert (problems, first, launcher.cgroups.caps) == (["", ""], [1.0, 0.2, 0.5], [1.0, 0.5])


def test_where_nothing_holds_caps_there_is_nothing_to_do(launcher):
    """The node paces itself."""
    launcher.cgroups = None
    launcher.launch("edge-0", "tcp://127.0.0.1:1", "5e")
    launcher.cap("edge-0")

    assert cpus(launcher, 0.2) == ""
