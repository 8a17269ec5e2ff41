"""By how much a process grows while it does something: tried out in a child of this one."""

import ctypes
import os
import traceback
from collections.abc import Callable
from pathlib import Path

from edgebed.core.errors import InfrastructureError

STATUS, CLEAR_REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")
RESET_PEAK = "5"  # of proc(5)
KIB = 1024


def grown_bytes(prepare: Callable[[], Callable[[], object]]) -> int:
    """Return the most memory in bytes that a child process has at a time, over what it has before.

    `prepare` runs in the child and returns what is to be tried. What this process has freed is given back first, so
    that the child finds nothing to use again. InfrastructureError where the child fails.
    """
    give_back_freed()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _be_child(prepare, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(pid, 0)
    if status or not said:
        raise InfrastructureError(f"memory could not be measured: the process ended with status {status}")
    return int(said)


def _be_child(prepare: Callable[[], Callable[[], object]], writing: int) -> None:
    """Run as the child process; never return."""
    status = 1
    try:
        work = prepare()
        give_back_freed()
        CLEAR_REFS.write_text(RESET_PEAK, encoding="ascii")
        before = _kib("VmRSS")
        work()
        os.write(writing, str(KIB * max(0, _kib("VmHWM") - before)).encode())
        status = 0
    except BaseException:  # noqa: BLE001 - the parent says that it failed, this says why
        traceback.print_exc()
    finally:
        os._exit(status)


def give_back_freed() -> None:
    """Give freed memory back to the kernel; do nothing where the C library cannot."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _kib(field: str) -> int:
    lines = STATUS.read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))
