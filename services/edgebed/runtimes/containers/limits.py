"""The limits and rights of a node's container, from the node's plan: pure data, in the terms of the engine's interface.

CPU is capped by a quota for each period of the kernel's scheduler, not as `nano_cpus`, which could not be changed
while the container runs: it begins with what a node needs to start. Swap is capped with memory: otherwise a node gets
as much again, on disk.
"""

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from docker.types import Mount

from edgebed.core.plan import Security, TrainingNode
from edgebed.core.planned.program import Limits, ProgramPlan
from edgebed.emulation.caps import CPU_PERIOD_US, cpu_quota_us, starting_cpus
from edgebed.emulation.readback import Delay, Mechanism
from edgebed.runtimes.containers.server_volume import MOUNTED_AT

PIDS_MAX = 64  # a node has some ten threads, and one more for each visitor of its metrics
PIDS_A_CORE = 4  # torch's and OpenBLAS' own
TMP_BYTES = 64 * 2**20
USER = "10001:10001"
LOG_MAX = {"max-size": "10m", "max-file": "1"}
NO_LOG = {"type": "none", "config": {}}
TMP = "/tmp"  # noqa: S108 - in a container
HELPER_BYTES = 128 * 2**20
RELAY_BYTES = 512 * 2**20
CGROUP_PARENT = "EDGEBED_CGROUP_PARENT"
"""Environment variable that names the cgroup below which nodes' containers are; empty: where the engine puts them."""
NO_QUOTA = -1  # as the kernel writes it; the engine takes 0 for no change


def num_threads(node: TrainingNode) -> int:
    """Number of threads that compute at once: what the cap can feed, and one without a cap, as in every runtime."""
    return max(1, math.ceil(node.cpus or 1.0))


def cgroup_parent(engine: Mapping[str, Any]) -> str:
    """The cgroup below which nodes' containers are, by what their engine says of itself; empty: its own.

    An engine without systemd has all of its containers in one cgroup, which weighs as much as any single process of the
    machine. Nodes get what they were promised beside busy processes only if each weighs as one.
    """
    if (named := os.environ.get(CGROUP_PARENT)) is not None:
        return named
    is_rootless = any("rootless" in option for option in engine.get("SecurityOptions") or ())
    return "/" if engine.get("CgroupDriver") == "cgroupfs" and not is_rootless else ""


def host_settings(node: TrainingNode, memory_bytes: int, volume: str = "", parent: str = "") -> dict[str, Any]:
    """Caps and rights of a container that starts, and may use so much memory.

    `volume`: the one for a server's log; `parent`: the cgroup that it is below, the engine's own if empty.
    """
    settings = _confined(memory_bytes, PIDS_MAX + PIDS_A_CORE * num_threads(node), starting_cpus(node.cpus), parent)
    settings["tmpfs"] = {TMP: f"size={TMP_BYTES},mode=1777"}  # but for a volume, all that a node can write to
    if volume:
        settings["mounts"] = [Mount(MOUNTED_AT, volume)]
    return settings


def program_settings(
    node: ProgramPlan, limits: Limits, cpus: float | None, mounts: Sequence[Mount], parent: str
) -> dict[str, Any]:
    """Caps and rights of a program's container: `cpus` are its cap now, `mounts` what it reads and may write."""
    settings = _confined(node.memory_bytes, limits.processes + 1, cpus, parent)  # the engine's init is one
    return settings | {"mounts": list(mounts), "log_config": NO_LOG}


def _confined(memory_bytes: int | None, pids: int, cpus: float | None, parent: str) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "cap_drop": ["ALL"],
        "init": True,
        "log_config": {"type": "json-file", "config": LOG_MAX},
        "pids_limit": pids,
        "read_only": True,
        "security_opt": ["no-new-privileges"],
    }
    if memory_bytes is not None:
        settings |= {"mem_limit": memory_bytes, "memswap_limit": memory_bytes}
    if parent:
        settings["cgroup_parent"] = parent
    return settings if cpus is None else settings | cpu_settings(cpus)


def cpu_settings(cpus: float | None) -> dict[str, int]:
    """A cap on CPU, also for a running container; None: takes the cap away."""
    return {"cpu_period": CPU_PERIOD_US, "cpu_quota": NO_QUOTA if cpus is None else cpu_quota_us(cpus)}


def helper_settings() -> dict[str, Any]:
    """Rights of the helper that sets a node's link: the one right, in the namespace that it is put into."""
    return {
        "auto_remove": True,
        "cap_add": ["NET_ADMIN"],
        "cap_drop": ["ALL"],
        "log_config": NO_LOG,
        "mem_limit": HELPER_BYTES,
        "memswap_limit": HELPER_BYTES,
        "pids_limit": PIDS_MAX,
        "read_only": True,
        "security_opt": ["no-new-privileges"],
    }


def holder_settings(mounts: Sequence[Mount]) -> dict[str, Any]:
    """Rights of what holds a program's place: those of a helper. It writes the names of all nodes, and is removed last.

    `mounts` are what its program has.
    """
    return helper_settings() | {"auto_remove": False, "read_only": False, "mounts": list(mounts)}


def witness_settings() -> dict[str, Any]:
    """Rights of a program's witness: those of a helper, and to read the cgroups and processes of the machine."""
    cgroups = Mount("/sys/fs/cgroup", "/sys/fs/cgroup", type="bind", read_only=True)
    return helper_settings() | {"mounts": [cgroups], "pid_mode": "host"}


def probe_settings() -> dict[str, Any]:
    """Rights of a host's probe: none, in the network namespace that it is put into."""
    return {name: value for name, value in helper_settings().items() if name != "cap_add"}


def relay_settings() -> dict[str, Any]:
    """Rights of the relay: none, beside the two networks that it is in. A thousand nodes take some 40 MiB of it."""
    return probe_settings() | {
        "init": True,
        "mem_limit": RELAY_BYTES,
        "memswap_limit": RELAY_BYTES,
    }


def environment(
    node: TrainingNode,
    controller_address: str,
    secret: str,
    security: Security,
    data_subnet: str,
    management_subnet: str,
    mechanism: Mechanism,
    delay: Delay,
    log_folder: str = "",
) -> dict[str, str]:
    """The environment from which a node's `node_main.py` learns who and where it is."""
    threads = str(num_threads(node))
    return {
        "EDGEBED_NODE": node.node,
        "EDGEBED_CONTROLLER_ADDRESS": controller_address,
        "EDGEBED_SECRET": secret,
        "EDGEBED_SECURITY": security,
        "EDGEBED_DATA_SUBNET": data_subnet,
        "EDGEBED_MANAGEMENT_SUBNET": management_subnet,
        "EDGEBED_MECHANISM": mechanism,
        "EDGEBED_DELAY": delay,
        "EDGEBED_LOG_FOLDER": log_folder,
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
    }
