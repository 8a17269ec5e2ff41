"""Looks at cgroups, on trees of plain files of both versions."""

import functools
import os
import signal
import subprocess
from pathlib import Path

import pytest
from cgroup_trees import MIB, version_1, version_2, write
from waiting import until

from edgebed.emulation.outside.kernel_sight import KernelSight, Place, is_stopped
from edgebed.emulation.outside.looks import Look, Quota, lowest_above

both = pytest.mark.parametrize("version", [version_1, version_2])


def looked(folders: dict[str, Path], *, whole: bool = True, **more: object) -> Look:
    """A look at the only node."""
    place = Place("life", folders, **({"cpus": 0.1, "memory_bytes": 400 * MIB} | more))  # type: ignore[arg-type]
    ((node, look),) = KernelSight(lambda _: place, lambda: None).look(["edge-0"], whole=whole)
    assert node == "edge-0"
    return look


@both
def test_a_cgroup_is_read_with_what_it_counts_and_holds(version, tmp_path):
    """CPU time, both caps and the peak of memory; between rounds the CPU time alone."""
    folders = version(tmp_path)
    whole, counters = looked(folders), looked(folders, whole=False)

    assert (whole.cpu_s, whole.cpus_held, whole.memory_bytes, whole.memory_held_bytes) == (
        2.5, 0.1, 100 * MIB, 400 * MIB,
    )  # fmt: skip
    assert whole.differences == whole.unread == ()
    assert whole.above is None
    assert (counters.cpu_s, counters.is_whole, counters.cpus_held) == (2.5, False, None)


@both
def test_caps_that_are_not_those_that_were_set_differ(version, tmp_path):
    """Of another size, missing, or there where none was set; a page of memory more or less is the kernel's."""
    changed, missing = looked(version(tmp_path / "1", quota="20000")), looked(version(tmp_path / "2", quota="-1"))
    extra = looked(version(tmp_path / "3"), cpus=None, memory_bytes=None)
    page = looked(version(tmp_path / "4"), memory_bytes=400 * MIB + 4000)
    memory = looked(version(tmp_path / "5"), memory_bytes=300 * MIB)

    assert changed.differences == ("CPU cap: its cgroup held 0.2 cores, where 0.1 cores had been set",)
    assert missing.differences == ("CPU cap: its cgroup held no cap, where 0.1 cores had been set",)
    assert extra.differences == (
        "CPU cap: its cgroup held 0.1 cores, where no cap had been set",
        "memory: its cgroup held 419 MB, where no cap had been set",
    )
    assert page.differences == ()
    assert memory.differences == ("memory: its cgroup held 419 MB, where 315 MB had been set",)


@both
def test_a_cap_that_is_given_out_otherwise_differs(version, tmp_path):
    """It may add up to as much, and let a node compute for a whole second at once."""
    saving, slow = version(tmp_path / "1"), version(tmp_path / "2", quota="100000")
    folder = saving.get("", saving.get("cpu"))
    (folder / ("cpu.max.burst" if "" in saving else "cpu.cfs_burst_us")).write_text("50000\n")
    if "" in slow:
        (slow[""] / "cpu.max").write_text("100000 1000000\n")
    else:
        (slow["cpu"] / "cpu.cfs_period_us").write_text("1000000\n")

    assert looked(saving).differences == ("CPU cap: its cgroup could save 50 ms of CPU time for bursts",)
    assert looked(slow).differences == ("CPU cap: its cgroup had periods of 1,000 ms, where 100 ms had been set",)


def test_a_node_that_cannot_be_looked_at_hides_no_other(tmp_path):
    """It may be going just then."""
    place = Place("life", version_2(tmp_path), cpus=0.1, memory_bytes=400 * MIB)

    def where(node):
        if node == "edge-0":
            raise FileNotFoundError(node)
        return place

    assert [node for node, _ in KernelSight(where, lambda: None).look(["edge-0", "edge-1"], whole=True)] == ["edge-1"]


@both
def test_a_quota_above_is_found_with_its_periods(version, tmp_path):
    """On the trial's own cgroup, or wherever it is lowest."""
    folders = version(tmp_path, above="15000")
    folder = folders.get("", folders.get("cpu"))
    above = looked(folders).above

    assert above == Quota(str(folder.parent), 0.15, 7)
    assert lowest_above(folder.parent.parent) is None


def test_a_mount_with_a_quota_counts_as_in_a_container(tmp_path):
    """There the mount is a cgroup itself, and what is above it cannot be seen."""
    folder = version_2(tmp_path, above="50000")[""]
    mount = write(folder.parent.parent, cpu_max="30000 100000")

    assert lowest_above(folder) == Quota(str(mount), 0.3, 0)


@both
def test_a_cgroup_that_is_gone_is_not_looked_at(version, tmp_path):
    """Nor is what cannot be read of a kernel a difference: without any cgroup there is a look without figures."""
    folders = version(tmp_path)
    gone = {controller: folder / "none" for controller, folder in folders.items()}
    place = Place("life", gone, 0.1, None)
    nothing = looked({}, cpus=0.1)

    assert list(KernelSight(lambda _: place, lambda: None).look(["edge-0"], whole=True)) == []
    assert list(KernelSight(lambda _: None, lambda: None).look(["edge-0"], whole=True)) == []
    assert (nothing.cpu_s, nothing.differences) == (None, ())


def test_a_process_that_a_signal_has_stopped_is_seen_so(tmp_path) -> None:
    """Until it goes on, by its number or in its cgroup; one that is gone is not stopped."""
    process = subprocess.Popen(["sleep", "60"])
    by_number = Place("life", {}, pid=process.pid)
    in_cgroup = Place("life", version_2(tmp_path))
    write(in_cgroup.folders[""], cgroup_procs=f"{os.getpid()}\n{process.pid}")
    try:
        for place in (by_number, in_cgroup):
            assert not is_stopped(place)
            os.kill(process.pid, signal.SIGSTOP)
            until(functools.partial(is_stopped, place), "the stop")
            os.kill(process.pid, signal.SIGCONT)
            until(lambda: not is_stopped(place), "the end of the stop")  # noqa: B023 - called in this turn
    finally:
        process.kill()
        process.wait()
    assert not is_stopped(by_number)
    assert not is_stopped(in_cgroup)
    assert not is_stopped(Place("life", {}))


def test_a_cgroup_that_is_frozen_is_seen_so(tmp_path) -> None:
    """As an engine's `pause` does it: its processes look as if they slept."""
    newer = version_2(tmp_path / "newer")
    older = version_1(tmp_path / "older") | {"freezer": tmp_path / "older/sys/fs/cgroup/freezer/trial/edge-0"}
    for state, events, is_frozen in (("THAWED", "populated 1\nfrozen 0", False), ("FROZEN", "frozen 1", True)):
        write(newer[""], cgroup_events=events)
        write(older["freezer"], freezer_state=state)
        assert is_stopped(Place("life", newer)) is is_frozen
        assert is_stopped(Place("life", older)) is is_frozen
