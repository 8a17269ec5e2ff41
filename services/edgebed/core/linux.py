"""What Linux offers a process: namespaces, mounts, to end with one's parent, to come before others, many open files."""

import ctypes
import os
import resource
import signal
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from edgebed.core.errors import InfrastructureError

_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWNET = 0x2_0000, 0x400_0000, 0x4000_0000  # linux/sched.h
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x1, 0x20, 0x1000, 0x4000, 0x4_0000  # linux/mount.h
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_NICE_FIRST = -10
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_TIME_NAMESPACE = Path("/proc/self/ns/time")

Result = TypeVar("Result")


def enter_new_network_namespace() -> None:
    """Move the calling thread alone into a network namespace made for it. Raises OSError, e.g. without the right."""
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.unshare(_CLONE_NEWNET))


def enter_network_namespace(descriptor: int) -> None:
    """Move the calling thread alone into an open network namespace. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.setns(descriptor, _CLONE_NEWNET))


def enter_new_mount_namespace(hostname: str) -> None:
    """Give this process mounts that nobody else sees, those there are now to begin with, and a hostname of its own.

    Raises OSError, e.g. without the right.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.unshare(_CLONE_NEWNS | _CLONE_NEWUTS))
    _check(libc.mount(None, b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None))
    socket.sethostname(hostname)


def bind_mount(source: str, target: str, *, read_only: bool = False) -> None:
    """Mount a file or folder over another, or over itself, in this process's mounts. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    flags = [_MS_BIND | _MS_REC, _MS_BIND | _MS_REMOUNT | _MS_RDONLY]  # the kernel takes `read only` in a second step
    for each in flags[: 1 + read_only]:
        _check(libc.mount(os.fsencode(source), os.fsencode(target), None, ctypes.c_ulong(each), None))


def monotonic_clock() -> str:
    """The name of the monotonic clock that this process reads: whoever reads one of that name reads the same.

    It is that of the kernel since its boot, in the process's time namespace. Empty where it is not known.
    """
    try:
        boot = _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return ""
    with suppress(OSError):  # a kernel without time namespaces has one clock
        return f"{boot} {_TIME_NAMESPACE.readlink()}"
    return boot


def come_first() -> int:
    """Let this process run before most others as soon as it has something to do, if it has the right to.

    Return the niceness that it had before, for children that are not to come first.
    """
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, min(before, _NICE_FIRST))
    return before


def allow_open_files(needed: int = 0, what: str = "") -> None:
    """Let this process open as many files as its user may; a connection is one.

    Raises InfrastructureError where these are fewer than `needed`, naming `what` needs them.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if most != resource.RLIM_INFINITY and most < needed:
        raise InfrastructureError(
            f"{what} needs {needed:,} open files, and this process may have {most:,}; raise its hard limit "
            f"(ulimit -Hn {needed}, as root, or LimitNOFILE of the service that starts it), or run fewer nodes"
        )


def in_own_thread(function: Callable[[], Result]) -> Result:
    """Run `function` in its own thread, and return or raise what it does; a namespace that it enters ends with that."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(function).result()


def die_with_parent(parent: int) -> bool:
    """Have this process killed when its parent ends; False if the parent is not `parent` any more.

    To the kernel the parent is the thread that started this process: it must last as long as this is needed.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    return os.getppid() == parent


def _check(status: int) -> None:
    if status:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
