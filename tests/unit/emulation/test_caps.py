"""A node waits for its CPU cap, which somebody else sets: on a tree of plain files, of either version of cgroups."""

from pathlib import Path

import pytest

from edgebed.core.errors import InfrastructureError
from edgebed.emulation import cgroups
from edgebed.emulation.caps import is_cap_held, starting_cpus
from edgebed.emulation.cgroups import wait_until_capped

STAT = "nr_periods 40\nnr_throttled 10\nthrottled_{unit} 1500000\n"


class Cgroup:
    """The cgroup that this process is in, with a core to start with."""

    def __init__(self, root: Path, version: int) -> None:
        folder = root / "sys/fs/cgroup"
        self.quota = folder / "cpu.max" if version == 2 else folder / "cpu/cpu.cfs_quota_us"
        self.quota.parent.mkdir(parents=True)
        (root / "proc/self").mkdir(parents=True)
        (root / "proc/self/cgroup").write_text("0::/\n" if version == 2 else "4:cpu:/\n")
        (self.quota.parent / "cpu.stat").write_text(STAT.format(unit="usec" if version == 2 else "time"))
        self.form = "{} 100000\n" if version == 2 else "{}\n"
        if version == 1:
            (self.quota.parent / "cpu.cfs_period_us").write_text("100000\n")
        self.looks = 0
        self.hold("100000")

    def hold(self, quota_us: str) -> None:
        """What the kernel has from now on."""
        self.quota.write_text(self.form.format(quota_us))


@pytest.fixture(params=[1, 2])
def cgroup(request, tmp_path) -> Cgroup:
    """One of either version."""
    return Cgroup(tmp_path, request.param)


def test_a_node_is_ready_when_the_kernel_holds_its_cap(cgroup, tmp_path):
    """Not while it has the core to start with; what the controller says meanwhile is heard, and may be another cap."""
    asked = [0.25]

    def hear() -> None:
        cgroup.looks += 1
        if cgroup.looks == 3:
            cgroup.hold("25000")
            asked[0] = 0.05
        if cgroup.looks == 5:
            cgroup.hold("5000")

    wait_until_capped(lambda: asked[0], hear, tmp_path)

    assert cgroup.looks == 5


def test_a_cap_that_nobody_sets_is_told_with_what_is_held(cgroup, tmp_path, monkeypatch):
    """The node ends: it would be another device."""
    monkeypatch.setattr(cgroups, "CAP_S_MAX", 0.05)

    with pytest.raises(InfrastructureError, match=r"not capped within 0.05 s: the kernel holds 1 cores, asked 0.05 co"):
        wait_until_capped(lambda: 0.05, lambda: None, tmp_path)
    cgroup.hold("max" if cgroup.form.endswith("100000\n") else "-1")
    wait_until_capped(lambda: None, lambda: None, tmp_path)


def test_what_the_kernel_does_not_tell_is_not_waited_for(tmp_path):
    """As where a container does not see its own cgroup; the verdict says that nothing was read."""
    wait_until_capped(lambda: 0.05, lambda: None, tmp_path)


@pytest.mark.parametrize(
    ("asked", "held", "is_held"),
    [(0.5, 0.5, True), (0.5, 0.502, False), (0.5, None, False), (None, None, True), (None, 1.0, False),
     (0.001, 0.01, True)],
)  # fmt: skip
def test_a_cap_is_held_as_exactly_as_the_kernel_can(asked, held, is_held):
    """It has no quota below a millisecond."""
    assert is_cap_held(asked, held) == is_held


def test_a_node_starts_with_a_core_or_with_more_if_it_has_more():
    """And without a cap if it has none."""
    assert [starting_cpus(cpus) for cpus in (0.05, 1.0, 2.5, None)] == [1.0, 1.0, 2.5, None]
