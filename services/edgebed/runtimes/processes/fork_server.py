"""The fork server: one process that has torch loaded and forks nodes, so that each costs megabytes and milliseconds.

It has one thread and no socket. Commands come as JSON lines on standard input, the ends of nodes go out as JSON lines
on standard output:

    {"fork": "edge-0", "log": "/…/edge-0.log", "environment": {"controller_address": "tcp://127.0.0.1:5555", …}}
    {"forked": "edge-0", "pid": 4711}
    {"signal": 9, "pid": 4711, "number": 7}
    {"signalled": 7, "gone": false}
    {"exited": "edge-0", "pid": 4711, "reason": "killed by SIGKILL"}
    {"end": true}
    {"ended": true}

Signals go through it: a process keeps its number for as long as its parent has not asked how it ended. `end` kills the
nodes that are left of a trial, before the next one. When standard input closes (the run is over, or its controller
died) it does the same and ends. Nodes die with the fork server, whatever kills it.
"""

import gc
import json
import os
import select
import signal
import sys
from pathlib import Path
from typing import Any

from edgebed.core.last_words import describe_status
from edgebed.core.linux import come_first, die_with_parent
from edgebed.emulation.cgroups import enter


def main() -> int:
    """Serve until standard input closes."""
    _load()
    niceness = come_first()
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    children: dict[int, str] = {}
    pending = b""
    while True:
        ready, _, _ = select.select([0, wake_read], [], [])
        if wake_read in ready:
            os.read(wake_read, 4096)
            _reap(children)
        if 0 in ready:
            data = os.read(0, 65536)
            if not data:
                break
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                _obey(json.loads(line), children, niceness)
            _reap(children)
    _end(children)
    return 0


def _end(children: dict[int, str]) -> None:
    """Kill all nodes and wait for them."""
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    for pid in children:
        os.waitpid(pid, 0)
    children.clear()


def _obey(command: dict[str, Any], children: dict[int, str], niceness: int) -> None:
    """Carry out a command; `niceness` is a node's."""
    if "fork" in command:
        pid = _fork(command, niceness)
        children[pid] = command["fork"]
        _say({"forked": command["fork"], "pid": pid})
        return
    if "end" in command:
        _end(children)
        _say({"ended": True})
        return
    _reap(children)
    gone = command["pid"] not in children
    if not gone:
        os.kill(command["pid"], command["signal"])
    _say({"signalled": command["number"], "gone": gone})


def _load() -> None:
    """Import what nodes need, once."""
    from edgebed.learning.allocator import keep_freed_memory

    gc.disable()  # nearly all that is imported stays
    keep_freed_memory()
    import torch

    from edgebed.core.package import fingerprint
    from edgebed.learning import network  # noqa: F401
    from edgebed.runtimes.live import node  # noqa: F401

    fingerprint()  # of the nodes' code: the files may change later
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()  # the collector would touch, and so copy, every page that nodes share with this process
    gc.enable()


def _fork(command: dict[str, Any], niceness: int) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        if not die_with_parent(parent):
            os._exit(1)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        log = os.open(command["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        null = os.open(os.devnull, os.O_RDONLY)
        for target, source in ((0, null), (1, log), (2, log)):
            os.dup2(source, target)
        os.setpriority(os.PRIO_PROCESS, 0, niceness)
        Path("/proc/self/comm").write_text(command["environment"]["node"], encoding="utf-8")  # as ps and top show it
        enter(command["environment"]["cgroups"])
        from edgebed.runtimes.live.node import NodeEnvironment, run_node

        code = run_node(NodeEnvironment(**command["environment"]))
    except BaseException:  # noqa: BLE001 - whatever it was, it ends this process and no other
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _reap(children: dict[int, str]) -> None:
    """Report nodes that have ended; a frozen one has not."""
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        _say({"exited": children.pop(pid), "pid": pid, "reason": describe_status(status)})


def _say(line: dict[str, Any]) -> None:
    os.write(1, json.dumps(line).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main())
