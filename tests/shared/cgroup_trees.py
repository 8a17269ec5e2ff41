"""Trees of plain files that look like the cgroups of a node."""

from pathlib import Path

MIB = 2**20


def write(folder: Path, **texts: str) -> Path:
    """Files of a cgroup; an underscore in a name stands for a dot."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in ({"cgroup_procs": ""} | texts).items():
        (folder / name.replace("_", ".", 1)).write_text(f"{text}\n")
    return folder


def version_1(root: Path, quota: str = "10000", above: str = "-1") -> dict[str, Path]:
    """A node's cgroup of version 1 below a trial's, and that below the mount; the process that looks is in it."""
    write(root / "proc/self", cgroup="1:cpu:/trial/edge-0\n2:cpuacct:/trial/edge-0\n3:memory:/trial/edge-0")
    root = root / "sys/fs/cgroup"
    for folder, text in ((root / "cpu", "-1"), (root / "cpu/trial", above), (root / "cpu/trial/edge-0", quota)):
        stat = "nr_periods 40\nnr_throttled 7\nthrottled_time 1500000000"
        write(folder, cpu_cfs_quota_us=text, cpu_cfs_period_us="100000", cpu_stat=stat)
    write(root / "cpuacct/trial/edge-0", cpuacct_usage="2500000000")
    memory = {"usage_in_bytes": 90 * MIB, "max_usage_in_bytes": 100 * MIB, "limit_in_bytes": 400 * MIB}
    write(root / "memory/trial/edge-0", **{f"memory_{name}": str(size) for name, size in memory.items()})
    return {each: root / each / "trial/edge-0" for each in ("cpu", "cpuacct", "memory")}


def version_2(root: Path, quota: str = "10000", above: str = "max") -> dict[str, Path]:
    """The same of version 2, where the mount has no quota."""
    write(root / "proc/self", cgroup="0::/trial/edge-0")
    mount = write(root / "sys/fs/cgroup", cgroup_controllers="cpu memory", cpu_stat="usage_usec 1")
    stat = "usage_usec 2500000\nnr_periods 40\nnr_throttled 7\nthrottled_usec 1500000"
    for folder, text in ((mount / "trial", above), (mount / "trial/edge-0", quota.replace("-1", "max"))):
        sizes = {"memory_current": 90 * MIB, "memory_peak": 100 * MIB, "memory_max": 400 * MIB}
        texts = {name: str(size) for name, size in sizes.items()}
        write(folder, cgroup_controllers="cpu memory", cpu_max=f"{text} 100000", cpu_stat=stat, **texts)
    return {"": mount / "trial/edge-0"}
