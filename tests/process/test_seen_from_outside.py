"""What the controller sees of real processes from outside: nothing where nobody disturbs them, and who does."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyroute2 import IPRoute
from staged_trial import StagedTrial
from waiting import until

from edgebed.emulation import means
from edgebed.emulation.namespaces import inside
from edgebed.journal.series import Series
from edgebed.journal.verdict.fidelity import Fidelity, judge

SCENARIO = """
name: seen
question: Does the controller see what nodes tell of themselves?
task: { data: digits, model: small, batch_size: 10 }
method: asgd
fleet: { edge: { count: 2, cpus: 0.1, memory: 400MiB, uplink: 4mbit, downlink: 4mbit } }
evaluation: { every: 4s }
stop: { time: 5s }
"""
NODES = {"server", "edge-0", "edge-1"}
ROOT = 0xFFFF_FFFF
DISTURBED_S = 2.5
"""A difference counts from a second on."""


@pytest.fixture(autouse=True)
def root() -> None:
    """The right to namespaces and cgroups."""
    if reason := means.why_no_namespaces() or means.why_no_cgroups():
        pytest.skip(f"nothing to look at: {reason}; run the tests as root")


def judged(folder: Path, saboteur: Callable[[StagedTrial], None] | None, *settings: str) -> tuple[Fidelity, Series]:
    """The verdict on a run, and what was journaled."""
    stage = StagedTrial(folder, SCENARIO, *settings)
    series = stage.run(saboteur)
    fidelity = judge(stage.planned.plan, series)
    assert fidelity is not None
    print(*fidelity.reasons, *fidelity.remarks, sep="\n")
    return fidelity, series


def from_outside(fidelity: Fidelity) -> list[str]:
    """Reasons that rest on what was seen from outside alone."""
    return [text for text in fidelity.reasons if "outside" in text or "the far end" in text or "a quota of" in text]


def test_an_undisturbed_run_is_seen_as_it_tells_and_both_ends_are_read(tmp_path: Path) -> None:
    """CPU time and bytes of every node, over the time of its own account; nothing is unread, and nothing differs."""
    fidelity, series = judged(tmp_path, None)

    assert series.seen.keys() == NODES
    for (life,) in series.seen.values():
        assert life.reported is not None
        assert life.seen is not None
        assert abs(life.reported.cpu_s - life.seen.cpu_s) <= life.seen.cpu_error_s + 0.1
        assert abs(life.reported.uplink_bytes - life.seen.uplink_bytes) <= life.seen.uplink_error_bytes + 64_000
        assert life.reported.uplink_bytes > 0
        assert life.reported.congestion_controls == ("cubic",)
        assert life.last.unread == life.last.differences == ()
    assert from_outside(fidelity) == []


def test_who_limits_the_far_end_of_a_link_or_changes_a_cap_is_found(tmp_path: Path) -> None:
    """A tbf and an MTU at ports of the bridge, which no node sees, and a cap, each set and taken away in mid-run."""
    fidelity, _ = judged(tmp_path, disturb)
    found = from_outside(fidelity)

    assert fidelity.verdict == "degraded"
    assert any(text.startswith("link: edge-1: a tbf of 1 mbit on what the node receives, at the far") for text in found)
    assert any(text.startswith("link: edge-0: the far end has an MTU of 1,400, the node's own 1,500") for text in found)
    assert any(text.startswith("CPU cap: edge-0: its cgroup held 0.2 cores, where 0.1 cores had") for text in found)


def disturb(stage: StagedTrial) -> None:
    """Do it from outside edgebed's own view: in the bridge's namespace, and in the file system of cgroups."""
    trains(stage)
    made, cgroups = stage.launcher.namespaces.made, stage.launcher.cgroups
    port = made.ports["edge-1"]
    with inside(made.bridge), IPRoute() as ip, quota(cgroups.folders("edge-0"), 0.2):
        ip.link("set", index=made.ports["edge-0"], mtu=1400)
        ip.tc("add", "tbf", port, handle=0x770000, parent=ROOT, rate=125_000, burst=5_000, limit=50_000)
        time.sleep(DISTURBED_S)
        ip.tc("del", index=port, handle=0x770000, parent=ROOT)


@pytest.mark.parametrize("cpus", [0.02, pytest.param(1.0, marks=pytest.mark.alone)])
def test_a_quota_above_the_nodes_is_found_whatever_their_caps(tmp_path: Path, cpus: float) -> None:
    """Half of what two workers were promised, for all that is below one cgroup; each node's own is as it was asked.

    Who gets no core beside other tests does not use a quota of a whole one up, and is not held back by it.
    """

    def hold_back(stage: StagedTrial) -> None:
        trains(stage)
        with quota(stage.launcher.cgroups.parents, cpus):
            time.sleep(DISTURBED_S)

    slow = ["fleet.edge.uplink=null", "fleet.edge.downlink=null", "task.model=mlp"]
    fidelity, _ = judged(tmp_path, hold_back, f"fleet.edge.cpus={cpus}", *slow)
    (found,) = from_outside(fidelity)

    assert fidelity.verdict == "degraded"
    assert found.startswith(f"CPU cap: a quota of {cpus:g} cores on ")
    assert f"their caps add up to {2 * cpus:g} cores" in found


def trains(stage: StagedTrial) -> None:
    """Wait until updates are applied."""
    until(lambda: stage.watch.state.updates > 3, "updates", every_s=0.02)


@contextlib.contextmanager
def quota(folders: dict[str, Path], cpus: float) -> Iterator[None]:
    """A quota on a cgroup for a while, in either version."""
    folder = folders.get("", folders.get("cpu"))
    assert folder is not None
    file, text = (folder / "cpu.max", "{} 100000") if "" in folders else (folder / "cpu.cfs_quota_us", "{}")
    before = file.read_text()
    file.write_text(text.format(round(cpus * 100_000)))
    try:
        yield
    finally:
        file.write_text(before)
