"""Nodes that live in time namespaces of their own, as if on hosts that were started at other times.

As a program it is the fork server, and forks each node of `AHEAD` with a monotonic clock that is so many seconds ahead.
"""

import ctypes
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from edgebed.runtimes.processes import fork_server, forking

AHEAD = "EDGEBED_TEST_AHEAD"
CLONE_NEWTIME = 0x80


def set_ahead(patch: pytest.MonkeyPatch, ahead_s: Mapping[str, int]) -> None:
    """Let the nodes of the next runs begun here have clocks that are so many seconds ahead, or behind."""
    patch.setattr(forking, "PROGRAM", "other_clocks")
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    patch.setenv(AHEAD, json.dumps(dict(ahead_s)))


def why_not() -> str:
    """Why there are no time namespaces here; empty if there are."""
    if not Path("/proc/self/ns/time").exists():
        return "this kernel has no time namespaces"
    return "" if os.geteuid() == 0 else "that takes root"


def main() -> int:
    """Be the fork server."""
    ahead_s, fork = json.loads(os.environ[AHEAD]), fork_server._fork
    libc = ctypes.CDLL(None, use_errno=True)
    own = os.open("/proc/self/ns/time", os.O_RDONLY | os.O_CLOEXEC)

    def fork_ahead(command: dict[str, Any], niceness: int) -> int:
        seconds = ahead_s.get(command["fork"])
        if seconds is None:
            return fork(command, niceness)
        assert libc.unshare(CLONE_NEWTIME) == 0, os.strerror(ctypes.get_errno())
        Path("/proc/self/timens_offsets").write_text(f"monotonic {seconds} 0\nboottime {seconds} 0\n")
        pid = fork(command, niceness)
        assert libc.setns(own, CLONE_NEWTIME) == 0, os.strerror(ctypes.get_errno())
        return pid

    fork_server._fork = fork_ahead
    return fork_server.main()


if __name__ == "__main__":
    raise SystemExit(main())
