"""What authentication costs on the data network: a raw echo of the server's frames, with and without it.

1 % sparse pushes come up and whole models go down, as in server.py, over sockets that differ in their mechanism alone:
none, PLAIN (`security: plain`) or CURVE (`security: curve`). Rounds alternate. Beside the rates stands the processor
time of all processes for an exchange, which other users of the machine disturb less.
"""

import os
from typing import Any

import numpy as np
import zmq

from benchmarks.alternating import alternate, sparse_push
from benchmarks.server import SECRET, drive, running, start_echo
from edgebed.runtimes.live.authentication import Credentials

CLIENTS = (1, 4)


class NoCredentials(Credentials):
    """Sockets without a mechanism, as no run has them."""

    def ask(self, socket: zmq.Socket[bytes], *, encrypted: bool) -> None:
        """Ask for nothing."""

    def show(self, socket: zmq.Socket[bytes], *, encrypted: bool) -> None:
        """Show nothing."""


SUBJECTS = {
    "none": NoCredentials.of(SECRET),
    "plain": Credentials.of(SECRET),
    "curve": Credentials.of(SECRET, "curve"),
}


def measure(*, quick: bool) -> list[dict[str, Any]]:
    """Rows of (clients, exchanges a second and processor time of one in microseconds by mechanism): medians."""
    return [_measured(clients, quick=quick) for clients in CLIENTS]


def _measured(clients: int, *, quick: bool) -> dict[str, Any]:
    tensor, payload = sparse_push()

    def measured(name: str, seconds: float) -> tuple[float, float]:
        credentials = SUBJECTS[name]
        before = os.times()
        with running(start_echo("adacomp", clients, credentials)) as (_, address):
            rate = drive(address, clients, tensor, payload, seconds, credentials)
        after = os.times()
        return rate, sum(after[2:4]) - sum(before[2:4])  # of children, which have all ended

    per_s, cpu_us = alternate(tuple(SUBJECTS), measured, quick=quick)
    return {
        "clients": clients,
        "per_s": {name: float(np.median(rates)) for name, rates in per_s.items()},
        "cpu_us": {name: float(np.median(times)) for name, times in cpu_us.items()},
    }
