"""Where the processor time of an update goes: the real server with its log and secret, 1 % sparse pushes, four clients.

The server's process runs with timers around its parts, each of which counts the time of its own thread, without that of
the parts within it. What no timer has is the loop around them; what other threads used is ZeroMQ's own thread, which
moves the bytes. The timers cost the server a few microseconds an update, which the parts contain.
"""

import multiprocessing
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import psutil

from benchmarks.alternating import sparse_push
from benchmarks.server import cpu_s, drive, running, start_server
from edgebed.algorithms.aggregation import asynchronous
from edgebed.roles.server import parameter_server
from edgebed.roles.server.answers import Answers
from edgebed.roles.server.parameter_server import ParameterServer
from edgebed.runtimes.live.endpoint import RouterEndpoint
from edgebed.runtimes.live.live_node import LiveNode
from edgebed.runtimes.live.shell.reporter import Reporter
from edgebed.runtimes.server_log import ServerLog
from edgebed.wire import frames as codec

CLIENTS = 4

PARTS: Sequence[tuple[str, Sequence[tuple[Any, str]]]] = (
    ("wait for sockets and timers", [(LiveNode, "_wait")]),
    ("frames to messages", [(codec, "decode")]),
    ("check and unpack the update", [(ParameterServer, "_decode")]),
    ("apply it, with staleness", [(asynchronous.Aggregation, "push"), (asynchronous.Aggregation, "pulled")]),
    ("copy the model for the answer", [(Answers, "to_worker")]),
    ("rules and records of the server", [(ParameterServer, "handle")]),
    ("append to the log", [(ServerLog, "take"), (ServerLog, "note"), (ServerLog, "turn")]),
    ("messages to frames", [(codec, "encode"), (parameter_server, "message_bytes")]),
    ("hand the answer to the socket", [(RouterEndpoint, "send")]),
    ("report to the controller", [(Reporter, "report"), (Reporter, "journal")]),
)
"""What is timed together: names, and the functions by their owners."""


def measure(*, quick: bool) -> dict[str, Any]:
    """Microseconds of processor time an update by part: medians over rounds."""
    seconds, rounds = (0.3, 1) if quick else (2.0, 7)
    found = [_measured(seconds) for _ in range(rounds)]
    return {"clients": CLIENTS, "us": {name: float(np.median([each[name] for each in found])) for name in found[0]}}


def _measured(seconds: float) -> dict[str, float]:
    tensor, payload = sparse_push()
    spent_s = multiprocessing.get_context("fork").Array("d", len(PARTS), lock=False)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        started = start_server("adacomp", CLIENTS, "log", folder, lambda: _time_parts(spent_s))
        with running(started) as (server, address):
            main_s, all_s, before = _main_thread_s(server), cpu_s(server), list(spent_s)
            updates = drive(address, CLIENTS, tensor, payload, seconds) * seconds
            main_s, all_s = _main_thread_s(server) - main_s, cpu_s(server) - all_s
            parts_s = [after - start for after, start in zip(spent_s, before, strict=True)]
    named = dict(zip((name for name, _ in PARTS), parts_s, strict=True))
    named["receiving, and the loop around these"] = main_s - sum(parts_s)
    named["ZeroMQ's thread and others"] = all_s - main_s
    named["all"] = all_s
    return {name: 1e6 * each / updates for name, each in named.items()}


def _main_thread_s(process: psutil.Process) -> float:
    (main,) = [thread for thread in process.threads() if thread.id == process.pid]
    return float(main.user_time + main.system_time)


def _time_parts(spent_s: Any) -> None:
    """Put timers around all parts, in this process; `spent_s` gets what each has used."""
    within = [0.0]
    """Time of the timed calls within each that is going on."""

    def timed(index: int, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            within.append(0.0)
            begin = time.thread_time()
            try:
                return function(*args, **kwargs)
            finally:
                took = time.thread_time() - begin
                spent_s[index] += took - within.pop()
                within[-1] += took

        return call

    for index, (_, functions) in enumerate(PARTS):
        for owner, name in functions:
            setattr(owner, name, timed(index, getattr(owner, name)))
