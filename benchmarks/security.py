"""What authentication costs on the data network: a raw echo of the server's frames, with and without it.

1 % sparse pushes come up and whole models go down, as in server.py, over sockets that differ in their mechanism alone:
none, PLAIN (`security: plain`) or CURVE (`security: curve`). Rounds alternate. Beside the rates stands the processor
time of all processes for an exchange, which other users of the machine disturb less.
"""

import os
from typing import Any

import numpy as np
import zmq

from benchmarks.server import SECRET, drive, start_echo
from benchmarks.subjects import node_plan, real_gradient
from edgebed.algorithms.compression import top_k
from edgebed.runtimes.live.authentication import Credentials
from edgebed.wire.tensors import encode_update

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
                credentials = SUBJECTS[name]
                before = os.times()
                process, address, _ = start_echo("adacomp", clients, credentials)
                rate = drive(address, clients, tensor, payload, seconds, credentials)
                process.kill()
                process.join()
                after = os.times()
                spent_s = sum(after[2:4]) - sum(before[2:4])  # of children, which have all ended
                per_s[name].append(rate)
                cpu_us[name].append(1e6 * spent_s / (rate * seconds))
        rows.append(
            {
                "clients": clients,
                "per_s": {name: float(np.median(rates)) for name, rates in per_s.items()},
                "cpu_us": {name: float(np.median(times)) for name, times in cpu_us.items()},
            }
        )
    return rows
