"""A node's share of the machine, held by the kernel: a cgroup of its own with its caps of CPU and memory.

    /sys/fs/cgroup/cpu/edgebed_<controller>_<n>/edge-0      version 1: a folder for each kind of resource
    /sys/fs/cgroup/edgebed_<controller>_<n>/edge-0          version 2

A node's process enters by writing its own number into `cgroup.procs`, before it does anything else: what it allocates
is charged to where it is at that time. So pages that it shares with the fork server, as torch's code, are not charged.

While it starts, a node has at least a core, whatever its cap: loading torch is no part of what is emulated. Once it is
built its cap is set, and it waits until it has read that back itself. Memory is capped from the beginning.

The folder's name tells whose it is (core/process_names.py): what a killed controller has left can be found and removed.
The root of the file system is an argument, so that version 2 is tested on a tree of plain files.
"""

import errno
import itertools
import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from edgebed.core.errors import InfrastructureError
from edgebed.core.planned.node import CommonPlan
from edgebed.core.process_names import is_running, own_process_name
from edgebed.emulation.caps import CPU_PERIOD_US, cpu_quota_us, is_cap_held
from edgebed.emulation.resources import ROOT, CgroupUsage, account, cgroup_usage, processes, with_those_below

CAP_S_MAX = 30.0  # a busy engine has hundreds of caps to set
CAP_POLL_S = 0.02
NEEDED = ("cpu", "memory")
REMOVE_S_MAX = 5.0  # a killed process leaves its cgroup a moment later
PREFIX = "edgebed_"

_numbers = itertools.count()


class Cgroups:
    """The cgroups of one trial: a folder that is this process's own, and in it one for each node."""

    def __init__(self, root: Path = ROOT) -> None:
        """Make the folder. Raises InfrastructureError where that is not possible, and says what is in the way."""
        self.mounts = mounts(root)
        self.version = 2 if "" in self.mounts else 1
        self.oom_kills_before: dict[str, int] = {}
        """OOM kills of each node in its earlier incarnations."""
        self.capped: dict[str, float | None] = {}
        """The CPU cap that was set last for each node, in cores; None: none."""
        name = f"{PREFIX}{own_process_name().replace('/', '_')}_{next(_numbers)}"
        self.parents = {controller: mount / name for controller, mount in self.mounts.items()}
        try:
            for mount, parent in {(self.mounts[each], parent) for each, parent in self.parents.items()}:
                if self.version == 2:
                    _delegate(mount)
                make_folder(parent)
                if self.version == 2:
                    _delegate(parent)
        except InfrastructureError:
            self.remove()
            raise

    def make(self, node: CommonPlan) -> tuple[str, ...]:
        """Make a node's cgroup with its caps; return the folders that its process is to enter."""
        folders = self.folders(node.node)
        for folder in set(folders.values()):
            make_folder(folder)
        self.cap_cpus(node.node, node.cpus)
        if self.version == 2:
            if node.memory_bytes is not None:
                _write(folders[""] / "memory.max", str(node.memory_bytes))
                _write_if_there(folders[""] / "memory.swap.max", "0")
        elif node.memory_bytes is not None:
            _write(folders["memory"] / "memory.limit_in_bytes", str(node.memory_bytes))
            _write_if_there(folders["memory"] / "memory.memsw.limit_in_bytes", str(node.memory_bytes))
        return tuple(sorted({str(folder) for folder in folders.values()}))

    def cap_cpus(self, node: str, cpus: float | None) -> None:
        """Cap a node's CPU from now on; None: no cap. Raises InfrastructureError where the kernel refuses."""
        folders = self.folders(node)
        quota_us = None if cpus is None else cpu_quota_us(cpus)
        if self.version == 2:
            _write(folders[""] / "cpu.max", f"{quota_us or 'max'} {CPU_PERIOD_US}")
        else:
            _write(folders["cpu"] / "cpu.cfs_period_us", str(CPU_PERIOD_US))
            _write(folders["cpu"] / "cpu.cfs_quota_us", str(quota_us or -1))
        self.capped[node] = cpus

    def begin_incarnation(self, node: str) -> None:
        """Prepare for a new process of the node: what an earlier one did is not to be taken for its own."""
        folders = self.folders(node)
        self.oom_kills_before[node] = account(folders).oom_kills or 0
        if self.version == 1:
            _write_if_there(folders["memory"] / "memory.max_usage_in_bytes", "0")

    def account(self, node: str) -> CgroupUsage:
        """Return what a node has used, also after its end; kills are those of its present incarnation."""
        usage = account(self.folders(node))
        before = self.oom_kills_before.get(node, 0)
        return usage if usage.oom_kills is None else replace(usage, oom_kills=usage.oom_kills - before)

    def remove(self) -> None:
        """Remove the trial's cgroups; what is left in them is killed. InfrastructureError if the kernel keeps one."""
        for parent in set(self.parents.values()):
            _remove(parent)

    def folders(self, node: str) -> dict[str, Path]:
        """A node's cgroup: its folder for each controller of version 1, or for "" in version 2."""
        return {controller: parent / node for controller, parent in self.parents.items()}


def enter(folders: Iterable[str]) -> None:
    """Move this process into these cgroups."""
    for folder in folders:
        _write(Path(folder) / "cgroup.procs", str(os.getpid()))


def wait_until_capped(asked: Callable[[], float | None], hear: Callable[[], None], root: Path = ROOT) -> None:
    """Return when the kernel holds the CPU cap that is `asked` of this process, or does not tell what it holds.

    Raises InfrastructureError where it does not within CAP_S_MAX. `hear` is called before each look: it may change what
    is asked.
    """
    until_s = time.monotonic() + CAP_S_MAX
    while True:
        hear()
        usage = cgroup_usage(None, root)
        cpus, held = asked(), usage.cpu_limit_cores
        if usage.throttled_s is None or is_cap_held(cpus, held):
            return
        if time.monotonic() > until_s:
            raise InfrastructureError(
                f"the CPU was not capped within {CAP_S_MAX:g} s: the kernel holds {_cores(held)}, asked {_cores(cpus)}"
            )
        time.sleep(CAP_POLL_S)


def mounts(root: Path = ROOT) -> dict[str, Path]:
    """Return where each controller of version 1 is mounted, or "" for version 2.

    Raises InfrastructureError where CPU or memory is not controlled.
    """
    base = root / "sys/fs/cgroup"
    unified = base / "cgroup.controllers"
    found = unified.read_text(encoding="ascii").split() if unified.is_file() else _mounted(base)
    missing = [controller for controller in NEEDED if controller not in found]
    if missing:
        raise InfrastructureError(f"the kernel offers no cgroup controller for {' and '.join(missing)} in {base}")
    if unified.is_file():
        return {"": base}
    return {each: (base / each).resolve() for each in (*NEEDED, "cpuacct") if each in found}


def remove_leftovers(say: Callable[[str], None], root: Path = ROOT) -> int:
    """Remove this user's cgroups of nodes whose controller is gone; return their number, and report it by `say`."""
    try:
        found = set(mounts(root).values())
    except InfrastructureError:
        return 0
    removed: set[str] = set()
    for folder in [folder for mount in found for folder in mount.glob(f"{PREFIX}*")]:
        owner = folder.name.removeprefix(PREFIX).rpartition("_")[0].replace("_", "/")
        if _is_own(folder) and not is_running(owner):
            nodes = [f"{folder.name}/{node.name}" for node in _subfolders(folder)]
            with suppress(InfrastructureError):  # somebody else is removing it
                _remove(folder)
                removed.update(nodes)
    if removed:
        say(f"removed {len(removed)} cgroup{'s' * (len(removed) != 1)} whose controller is gone")
    return len(removed)


def make_folder(folder: Path) -> None:
    """Make a cgroup."""
    try:
        folder.mkdir()
    except OSError as error:
        raise InfrastructureError(f"no cgroup can be made in {folder.parent}: {error.strerror}") from error


def remove_folder(folder: Path) -> None:
    """Remove a cgroup that has no process."""
    folder.rmdir()


def _mounted(base: Path) -> list[str]:
    return [folder.name for folder in base.iterdir() if (folder / "cgroup.procs").is_file()] if base.is_dir() else []


def _delegate(folder: Path) -> None:
    """Give the cgroups below `folder` control of CPU and memory, as version 2 needs."""
    control = folder / "cgroup.subtree_control"
    try:
        enabled = control.read_text(encoding="ascii").split()
    except OSError as error:
        raise InfrastructureError(f"{control} cannot be read: {error.strerror}") from error
    if not set(NEEDED) <= set(enabled):
        try:
            _write(control, " ".join(f"+{controller}" for controller in NEEDED))
        except InfrastructureError as error:
            raise InfrastructureError(
                f"{folder} does not hand control of CPU and memory down, as in a container: {error}"
            ) from error


def _remove(parent: Path) -> None:
    for folder in with_those_below(parent):
        deadline_s = time.monotonic() + REMOVE_S_MAX
        while folder.is_dir():
            try:
                remove_folder(folder)
            except FileNotFoundError:
                break
            except OSError as error:
                if error.errno != errno.EBUSY or time.monotonic() > deadline_s:
                    raise InfrastructureError(f"the cgroup {folder} cannot be removed: {error.strerror}") from error
                for pid in processes(folder):
                    with suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.01)


def _subfolders(folder: Path) -> list[Path]:
    with suppress(FileNotFoundError):
        return [each for each in folder.iterdir() if each.is_dir()]
    return []


def _is_own(folder: Path) -> bool:
    with suppress(FileNotFoundError):
        return folder.stat().st_uid == os.geteuid()
    return False


def _cores(cpus: float | None) -> str:
    return "no cap" if cpus is None else f"{cpus:g} cores"


def _write(file: Path, text: str) -> None:
    """Write to a file without making it: in a cgroup it is the kernel's."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        raise InfrastructureError(f"{file} does not take {text!r}: {error.strerror}") from error


def _write_if_there(file: Path, text: str) -> None:
    """Write to a file if it is there: where swap is not accounted it is not."""
    if file.exists():
        _write(file, text)
