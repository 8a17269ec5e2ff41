"""A process, named so that anybody can find out later whether it still lives: `<boot>/<namespace>/<pid>/<start>`.

Process numbers are used again, differ between namespaces, and start anew with the machine; together with those and the
process's start (in ticks since the machine started: the time of day may be set, this may not) they are unique.
"""

import os
from pathlib import Path

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
PARTS = 4


def own_process_name() -> str:
    """The name of this process."""
    return process_name(os.getpid())


def process_name(pid: int | str) -> str:
    """The name of the process that now has this number; FileNotFoundError or ProcessLookupError if none has."""
    after_command = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
    return f"{_boot_id()}/{_namespace()}/{pid}/{after_command.split()[19]}"


def is_running(name: str) -> bool:
    """Whether the process of this name still runs; true where that is unknown, as for one in another namespace."""
    named = name.split("/")
    if len(named) != PARTS:
        return True  # of a version that names its processes otherwise
    boot, namespace, pid, _ = named
    if boot != _boot_id():
        return False
    if namespace != _namespace():
        return True
    try:
        return process_name(pid) == name
    except (FileNotFoundError, ProcessLookupError):
        return False


def is_of_this_boot(name: str) -> bool:
    """Whether a process has this name since this machine started; no name of another machine's, or earlier, has."""
    return name.partition("/")[0] == _boot_id()


def _boot_id() -> str:
    return BOOT_ID.read_text(encoding="ascii").strip()


def _namespace() -> str:
    """Return the name of the present namespace of process numbers."""
    return str(Path("/proc/self/ns/pid").readlink()).strip("pid:[]")
