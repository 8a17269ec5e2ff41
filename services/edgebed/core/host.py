"""The facts of this machine and of the software on it that a run depends on; they go into its manifest."""

import datetime as dt
import functools
import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

from edgebed.core.package import VERSION

PACKAGES = ("torch", "numpy", "pyzmq", "msgspec")
VECTORS = {"avx512f": "AVX-512", "avx2": "AVX2", "sve": "SVE", "asimd": "NEON"}
"""Vector instructions by their flag in `/proc/cpuinfo`, the widest first."""


def facts() -> dict[str, Any]:
    """Start time (UTC, ISO 8601), versions, git commit of the current folder, kernel, CPU, cores, memory in bytes."""
    return {
        "started": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "folder": str(Path.cwd()),
        "commit": _commit(),
        "versions": {
            "edgebed": VERSION,
            "python": platform.python_version(),
            **{name: version for name in PACKAGES if (version := _version(name))},
        },
        "host": machine(),
    }


def machine() -> dict[str, Any]:
    """Kernel, CPU, its vector instructions, cores and memory in bytes."""
    return {
        "kernel": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpu": _cpuinfo("model name", "Model") or platform.processor() or platform.machine(),
        "instructions": instructions(),
        "cores": _cores(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    }


def instructions() -> str:
    """The widest vector instructions of the processor that numbers are rounded by, e.g. AVX2; empty: not known."""
    flags = _cpuinfo("flags", "Features").split()
    return next((name for flag, name in VECTORS.items() if flag in flags), "")


def in_container() -> bool:
    """Whether this is edgebed's controller in a container of its own: its image sets EDGEBED_CONTAINER=1."""
    return os.environ.get("EDGEBED_CONTAINER") == "1"


@functools.cache
def _version(package: str) -> str | None:
    import importlib.metadata  # loads what reads e-mail, which only a run's start needs

    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cores() -> int:
    """The cores this process may use, which in a container or under taskset are fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cpuinfo(*names: str) -> str:
    """What the kernel says of the first processor under one of these names; empty where it says nothing."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() in names:
                return value.strip()
    except OSError:
        pass
    return ""


def _commit() -> str | None:
    """The git commit checked out in the current folder, with `+changes` where tracked files differ; None if none."""
    git = shutil.which("git")
    if git is None:
        return None
    try:
        found = subprocess.run(  # noqa: S603 # every word is ours
            [git, "--no-optional-locks", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=+changes"],
            capture_output=True, text=True, timeout=5, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None
