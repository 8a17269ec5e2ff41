"""What of edgebed works on this machine, and what is lost where something does not.

It is tried where trying leaves no trace; nothing is downloaded, measured or written.
"""

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import msgspec
import psutil

from edgebed.core.errors import InfrastructureError
from edgebed.core.package import VERSION
from edgebed.core.quantities import bytes_text, count_text
from edgebed.emulation import calibration
from edgebed.emulation.means import mechanisms_of, why_no_cgroups, why_no_namespaces
from edgebed.journal.run_folder import runs_root
from edgebed.learning.data_sets.registry import DATA_SETS, data_directory, how_to_get, is_here
from edgebed.studies.host.calibrate import REQUIREMENTS

CORES_MIN = 2
"""Cores that the demo and the quickstart ask for."""
MEMORY_BYTES_MIN = 4 * 10**9
DISK_BYTES_MIN = 2 * 10**9


class Finding(msgspec.Struct, frozen=True):
    """What was found of one thing that a run may need."""

    subject: str
    works: bool
    found: str
    """What there is, or why there is not."""
    lost: str = ""
    """What does not work without it, and what to do; empty where it works."""


def examine() -> Iterator[Finding]:
    """Yield what is found of everything, the most basic first: on a busy machine each may take a while."""
    yield from _machine()
    yield from _kernel()
    yield from _engine()
    yield from _files()


def _machine() -> Iterator[Finding]:
    is_linux = sys.platform == "linux"
    yield Finding(
        "system", is_linux, f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "" if is_linux else "live runs need Linux; simulations may work",
    )  # fmt: skip
    try:
        torch = metadata.version("torch")
    except metadata.PackageNotFoundError:
        yield Finding("packages", False, f"edgebed {VERSION}, no torch", "nothing can be trained: scripts/setup")
    else:
        yield Finding("packages", True, f"edgebed {VERSION}, torch {torch}")
    cores = len(os.sched_getaffinity(0)) if is_linux else os.cpu_count() or 1
    memory = psutil.virtual_memory()
    enough = cores >= CORES_MIN and memory.total >= MEMORY_BYTES_MIN
    yield Finding(
        "cores, memory", enough,
        f"{count_text(cores, 'core')}, {bytes_text(memory.total)}, {bytes_text(memory.available)} of it free",
        "" if enough else "live runs of more than a few nodes are degraded; simulations take longer",
    )  # fmt: skip


def _kernel() -> Iterator[Finding]:
    is_root = os.geteuid() == 0
    yield Finding(
        "root", is_root, "yes" if is_root else "no",
        "" if is_root else "what the kernel holds in --runtime process, below; containers need no root",
    )  # fmt: skip
    reason = why_no_namespaces()
    yield Finding(
        "links", not reason, f"no: {reason}" if reason else "network namespaces and tc",
        "--runtime process holds rates and latencies by a model in the transport" if reason else "",
    )  # fmt: skip
    netem = bool(not reason and mechanisms_of("process", "kernel").netem)
    yield Finding(
        "netem", netem, "yes" if netem else "no",
        "" if netem else "packets are not lost (loss is refused); the transport makes latency and jitter",
    )  # fmt: skip
    reason = why_no_cgroups()
    yield Finding(
        "cgroups", not reason, f"no: {reason}" if reason else "CPU and memory",
        "--runtime process paces nodes instead of capping CPUs, and holds no memory cap" if reason else "",
    )  # fmt: skip


def _engine() -> Iterator[Finding]:
    try:
        REQUIREMENTS["docker"]()
    except InfrastructureError as error:
        yield Finding("containers", False, str(error), "--runtime docker, and Prometheus and Grafana beside it")
    else:
        yield Finding("containers", True, "an engine answers, and has the images of the nodes")


def _files() -> Iterator[Finding]:
    root = runs_root().absolute()
    free = shutil.disk_usage(_there(root)).free
    writable = os.access(_there(root), os.W_OK)
    remedy = "" if writable else "runs cannot be kept: --runs-dir or $EDGEBED_RUNS_DIR names another folder"
    if writable and free < DISK_BYTES_MIN:
        remedy = "long runs may fill the disk: --runs-dir or $EDGEBED_RUNS_DIR names another folder"
    yield Finding("disk", not remedy, f"{bytes_text(free)} free for runs in {root}", remedy)
    in_files = [name for name, built_in in DATA_SETS.items() if built_in.in_files]
    absent = [name for name in in_files if not is_here(name)]
    yield Finding(
        "data", not absent,
        f"no {', '.join(absent)} in {data_directory()}" if absent else f"{', '.join(in_files)} in {data_directory()}",
        f"{how_to_get(absent)}; digits, synthetic and plays need nothing" if absent else "",
    )  # fmt: skip
    path = calibration.calibration_path()
    measured = calibration.load(path)
    here = measured is not None and measured.holds_on(calibration.HostFacts.here())
    yield Finding(
        "calibration", here, f"{path}" if here else "none of this machine",
        "" if here else "plan cannot warn of rates that this machine does not hold: edgebed calibrate",
    )  # fmt: skip


def _there(path: Path) -> Path:
    """Return the path, or the nearest folder above it that there is."""
    return next(each for each in (path, *path.parents) if each.exists())
