"""What the server's log costs: the real server with 1 % sparse pushes, without a log, with one, and with one synced.

As in server.py, but for the log. Rounds alternate. The rate is that of all clients together, and the processor time is
the server's own, of all its threads, for an update: other users of the machine disturb it less.
"""

import tempfile
from typing import Any, get_args

import numpy as np

from benchmarks.alternating import alternate, sparse_push
from benchmarks.server import CLIENTS, cpu_s, drive, running, start_server
from edgebed.core.plan import Durability

SUBJECTS: tuple[Durability, ...] = get_args(Durability)


def measure(*, quick: bool) -> list[dict[str, Any]]:
    """Rows of (clients, updates a second and processor time of one in microseconds by durability): medians."""
    return [_measured(clients, quick=quick) for clients in CLIENTS]


def _measured(clients: int, *, quick: bool) -> dict[str, Any]:
    tensor, payload = sparse_push()

    def measured(name: str, seconds: float) -> tuple[float, float]:
        with tempfile.TemporaryDirectory(dir=".") as folder:  # on the disk of the checkout, not in memory
            started = start_server("adacomp", clients, name, folder)  # type: ignore[arg-type]
            with running(started) as (server, address):
                before_s = cpu_s(server)
                rate = drive(address, clients, tensor, payload, seconds)
                return rate, cpu_s(server) - before_s

    per_s, cpu_us = alternate(SUBJECTS, measured, quick=quick)
    return {
        "clients": clients,
        "per_s": {name: float(np.median(rates)) for name, rates in per_s.items()},
        "rate": {name: _ratio(rates, per_s["none"]) for name, rates in per_s.items()},
        "cpu_us": {name: float(np.median(each)) for name, each in cpu_us.items()},
        "cpu": {name: _ratio(each, cpu_us["none"]) for name, each in cpu_us.items()},
    }


def _ratio(found: list[float], base: list[float]) -> float:
    """The median of the rounds' own ratios."""
    return float(np.median(np.divide(found, base)))
