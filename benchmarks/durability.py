"""What the server's log costs: the real server with 1 % sparse pushes, without a log, with one, and with one synced.

As in server.py, but for the log. Rounds alternate. The rate is that of all clients together, and the processor time is
the server's own, of all its threads, for an update: other users of the machine disturb it less.
"""

import tempfile
from typing import Any, get_args

import numpy as np
import psutil

from benchmarks.server import CLIENTS, drive, start_server
from benchmarks.subjects import node_plan, real_gradient
from edgebed.algorithms.compression import top_k
from edgebed.core.plan import Durability
from edgebed.wire.tensors import encode_update

SUBJECTS: tuple[Durability, ...] = get_args(Durability)


def measure(*, quick: bool) -> list[dict[str, Any]]:
    """Rows of (clients, updates a second and processor time of one in microseconds by durability): medians."""
    shapes = [tensor.shape for tensor in node_plan("worker").task.layout]
    tensor, frames = encode_update("update", top_k.Compression(top_k.Config(), shapes).choose(real_gradient()))
    payload = [bytes(frame) for frame in frames]
    seconds, rounds = (0.3, 1) if quick else (2.0, 7)
    rows = []
    for clients in CLIENTS:
        per_s: dict[str, list[float]] = {name: [] for name in SUBJECTS}
        cpu_us: dict[str, list[float]] = {name: [] for name in SUBJECTS}
        for k in range(rounds):
            for name in (*SUBJECTS, *SUBJECTS)[k % len(SUBJECTS) :][: len(SUBJECTS)]:  # each is first in turn
                with tempfile.TemporaryDirectory(dir=".") as folder:  # on the disk of the checkout, not in memory
                    process, address, close = start_server("adacomp", clients, name, folder)
                    server = psutil.Process(process.pid)
                    before = server.cpu_times()
                    rate = drive(address, clients, tensor, payload, seconds)
                    after = server.cpu_times()
                    process.kill()
                    process.join()
                    close()
                spent_s = after.user + after.system - before.user - before.system
                per_s[name].append(rate)
                cpu_us[name].append(1e6 * spent_s / (rate * seconds))
        rows.append(
            {
                "clients": clients,
                "per_s": {name: float(np.median(rates)) for name, rates in per_s.items()},
                "rate": {name: _ratio(rates, per_s["none"]) for name, rates in per_s.items()},
                "cpu_us": {name: float(np.median(each)) for name, each in cpu_us.items()},
                "cpu": {name: _ratio(each, cpu_us["none"]) for name, each in cpu_us.items()},
            }
        )
    return rows


def _ratio(found: list[float], base: list[float]) -> float:
    """The median of the rounds' own ratios."""
    return float(np.median(np.divide(found, base)))
