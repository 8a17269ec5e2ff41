"""What a process uses: CPU, memory and threads, its cgroup's caps and throttling, its network interface's bytes.

Everything is read from /proc and /sys, without rights. A value that this kernel or container does not show is None. The
cgroup readers take the root of the file system as an argument, so that they are tested on a tree of plain files.
"""

import ipaddress
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil

from edgebed.core.errors import InfrastructureError

ROOT = Path("/")
NO_LIMIT_BYTES = 1 << 60  # cgroup v1 writes about 2**63 where there is no memory limit


@dataclass(frozen=True, kw_only=True)
class ProcessUsage:
    """A process's own account."""

    cpu_s: float
    """User and system time since it began."""
    resident_bytes: int
    threads: int


@dataclass(frozen=True, kw_only=True)
class CgroupUsage:
    """Counters of a cgroup; None where they are unavailable."""

    cpu_s: float | None = None
    cpu_limit_cores: float | None = None
    cpu_period_us: int | None = None
    """The period of which the limit is a share; None where there is no limit."""
    cpu_burst_us: int | None = None
    """CPU time that may be saved in one period for another."""
    periods: int | None = None
    throttled_periods: int | None = None
    throttled_s: float | None = None
    working_set_bytes: int | None = None
    """Memory in use less the file cache that can be given up at once."""
    peak_bytes: int | None = None
    memory_limit_bytes: int | None = None
    oom_kills: int | None = None


def process_usage(pid: int | None = None) -> ProcessUsage | None:
    """Return the usage of process `pid` (None: this one); None if there is none, or no right to look at it."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            times = process.cpu_times()
            return ProcessUsage(
                cpu_s=times.user + times.system,
                resident_bytes=process.memory_info().rss,
                threads=process.num_threads(),
            )
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None


def private_bytes(pid: int, root: Path = ROOT) -> int | None:
    """Memory that only process `pid` has mapped; None where the kernel (before 4.14) or the rights do not tell.

    The kernel looks at all that is mapped: it takes milliseconds.
    """
    sizes = _keyed(root / f"proc/{pid}/smaps_rollup")
    if "Private_Clean:" not in sizes or "Private_Dirty:" not in sizes:
        return None
    return (sizes["Private_Clean:"] + sizes["Private_Dirty:"]) * 1024


def cgroup_usage(pid: int | None = None, root: Path = ROOT) -> CgroupUsage:
    """Return the usage of the cgroup (version 1 or 2) that process `pid` (None: this one) is in."""
    return account(cgroup_folders(pid, root))


def account(folders: Mapping[str, Path]) -> CgroupUsage:
    """Return the usage of the cgroup with these folders: of each controller of version 1, or of "" in version 2."""
    if "" in folders:
        return _read_v2(folders[""])
    return _read_v1(folders.get("cpu"), folders.get("cpuacct"), folders.get("memory"))


def throttled_s(folders: Mapping[str, Path]) -> float | None:
    """Seconds for which the CPU cap of the cgroup with these folders has held it back so far; None: not known."""
    if "" in folders:
        return _scaled(_keyed(folders[""] / "cpu.stat").get("throttled_usec"), 1e-6)
    return _scaled(_keyed(folders["cpu"] / "cpu.stat").get("throttled_time"), 1e-9) if "cpu" in folders else None


def is_frozen(folders: Mapping[str, Path]) -> bool:
    """Whether somebody has frozen all processes of the cgroup with these folders."""
    if "" in folders:
        return _keyed(folders[""] / "cgroup.events").get("frozen") == 1
    return "freezer" in folders and _text(folders["freezer"] / "freezer.state").startswith("FROZEN")


def processes(folder: Path) -> list[int]:
    """The processes in the cgroup with this folder and in those below it, which a program may have made.

    None of another namespace, as these all have the number 0.
    """
    return [int(pid) for each in with_those_below(folder) for pid in _text(each / "cgroup.procs").split() if pid != "0"]


def with_those_below(folder: Path) -> list[Path]:
    """The folders of a cgroup and of all cgroups below it, the lowest first; none where it is gone."""
    return [Path(each) for each, _, _ in os.walk(folder, topdown=False)]


def cgroup_folders(pid: int | None, root: Path) -> dict[str, Path]:
    """The folder for each controller of version 1, or for "" in version 2; only folders that exist.

    A line of /proc/PID/cgroup is `id:controllers:path`. In a container the path is often the host's, while the
    container sees its own cgroup at the mount itself; so a path that is not there means the mount.
    """
    mount = root / "sys/fs/cgroup"
    folders: dict[str, Path] = {}
    for line in _text(root / f"proc/{pid or 'self'}/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            base = mount / controller
            folder = base / path.lstrip("/")
            folders[controller] = folder if folder.is_dir() else base
    if {"cpu", "memory"} & folders.keys():
        folders.pop("", None)  # a mixed set-up: version 2 is mounted for systemd, version 1 does the accounting
    return {controller: folder for controller, folder in folders.items() if folder.is_dir()}


def _read_v2(folder: Path) -> CgroupUsage:
    cpu = _keyed(folder / "cpu.stat")
    usage = _number(folder / "memory.current")
    inactive = _keyed(folder / "memory.stat").get("inactive_file", 0)
    quota, _, period = _text(folder / "cpu.max").partition(" ")
    return CgroupUsage(
        cpu_s=_scaled(cpu.get("usage_usec"), 1e-6),
        cpu_limit_cores=int(quota) / int(period) if quota.isdigit() else None,
        cpu_period_us=int(period) if quota.isdigit() else None,
        cpu_burst_us=_number(folder / "cpu.max.burst"),
        periods=cpu.get("nr_periods"),
        throttled_periods=cpu.get("nr_throttled"),
        throttled_s=_scaled(cpu.get("throttled_usec"), 1e-6),
        working_set_bytes=None if usage is None else max(0, usage - inactive),
        peak_bytes=_number(folder / "memory.peak"),
        memory_limit_bytes=_number(folder / "memory.max"),
        oom_kills=_keyed(folder / "memory.events").get("oom_kill"),
    )


def _read_v1(cpu: Path | None, cpuacct: Path | None, memory: Path | None) -> CgroupUsage:
    fields: dict[str, float | None] = {}
    if cpuacct:
        fields["cpu_s"] = _scaled(_number(cpuacct / "cpuacct.usage"), 1e-9)
    if cpu:
        stat = _keyed(cpu / "cpu.stat")
        quota, period = _number(cpu / "cpu.cfs_quota_us"), _number(cpu / "cpu.cfs_period_us")
        if quota and quota > 0 and period:
            fields["cpu_limit_cores"], fields["cpu_period_us"] = quota / period, period
        fields["cpu_burst_us"] = _number(cpu / "cpu.cfs_burst_us")
        fields["periods"] = stat.get("nr_periods")
        fields["throttled_periods"] = stat.get("nr_throttled")
        fields["throttled_s"] = _scaled(stat.get("throttled_time"), 1e-9)
    if memory:
        usage, limit = _number(memory / "memory.usage_in_bytes"), _number(memory / "memory.limit_in_bytes")
        inactive = _keyed(memory / "memory.stat").get("total_inactive_file", 0)
        fields["working_set_bytes"] = None if usage is None else max(0, usage - inactive)
        fields["peak_bytes"] = _number(memory / "memory.max_usage_in_bytes")
        fields["memory_limit_bytes"] = limit if limit is not None and limit < NO_LIMIT_BYTES else None
        fields["oom_kills"] = _keyed(memory / "memory.oom_control").get("oom_kill")
    return CgroupUsage(**fields)  # type: ignore[arg-type] # the integers of the fields are integers in the files


class InterfaceBytes:
    """Counts the bytes through a network interface from the moment it is made."""

    def __init__(self, name: str, counters: Callable[[], tuple[int, int]]) -> None:
        """`counters` reads the bytes received and sent so far; OSError where the kernel does not tell."""
        self.name = name
        self._read = counters
        self._start = self._counters()

    @classmethod
    def at(cls, address: str, root: Path = ROOT) -> Self:
        """Count for the interface that holds IP `address`; InfrastructureError where none of this machine has it."""
        name = interface_of(address)
        folder = root / "sys/class/net" / name / "statistics"
        return cls(name, lambda: (int(_text(folder / "rx_bytes")), int(_text(folder / "tx_bytes"))))

    def read(self) -> tuple[int, int] | tuple[None, None]:
        """Return bytes received and sent since the start; None, None if the kernel does not tell, or no longer."""
        now = self._counters()
        if now is None or self._start is None:
            return None, None
        return now[0] - self._start[0], now[1] - self._start[1]

    def _counters(self) -> tuple[int, int] | None:
        try:
            return self._read()
        except (OSError, ValueError):
            return None


def interface_of(address: str) -> str:
    """The network interface that holds IP `address`, whatever it is called here.

    Raises InfrastructureError where no interface of this machine has it.
    """
    wanted = ipaddress.ip_address(address)
    if wanted.is_loopback and wanted.version == 4:
        wanted = ipaddress.ip_address("127.0.0.1")  # the whole of 127.0.0.0/8 is one interface
    held: dict[str, str] = {}
    for name, addresses in psutil.net_if_addrs().items():
        for entry in addresses:
            held[entry.address.partition("%")[0]] = name
    found = held.get(str(wanted))
    if found is None:
        known = ", ".join(f"{text} ({name})" for text, name in sorted(held.items()) if "." in text)
        raise InfrastructureError(f"no network interface has the address {address}. This machine has {known}.")
    return found


def own_address(subnet: str) -> str:
    """The address in `subnet` that this machine or container has; interfaces have any name and order.

    Raises InfrastructureError if it has none.
    """
    network = ipaddress.ip_network(subnet)
    for addresses in psutil.net_if_addrs().values():
        for entry in addresses:
            if entry.family == socket.AF_INET and ipaddress.ip_address(entry.address) in network:
                return entry.address
    raise InfrastructureError(f"no network interface here has an address in {subnet}")


def _text(path: Path) -> str:
    """Return the file's content, or nothing if it is not there or may not be read."""
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.lstrip("-").isdigit() else None


def _keyed(path: Path) -> dict[str, int]:
    """Return a file of lines `key number …` as a dictionary; other lines are left out."""
    pairs = (line.split() for line in _text(path).splitlines())
    return {words[0]: int(words[1]) for words in pairs if len(words) > 1 and words[1].isdigit()}


def _scaled(number: int | None, unit: float) -> float | None:
    return None if number is None else number * unit
