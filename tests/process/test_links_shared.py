"""The model of links that are shared, against the kernel and against SimGrid: random fleets around one server.

`scripts/campaign --only links` takes fifty fleets; the figures are in docs/links.md. Messages go over real
connections of TCP between real namespaces, whose links tc holds, two to thirty workers at a time, both ways.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from random_stars import Star, classes, modelled, star

from edgebed.core.framing import wire_bytes
from edgebed.core.planned.link import LinkPlan
from edgebed.emulation.means import why_no_namespaces
from edgebed.emulation.model.fair_share import fair_rates
from edgebed.emulation.namespaces import Namespaces, inside
from edgebed.emulation.tcp import choose_congestion_control

FLEETS = int(os.environ.get("EDGEBED_STARS", "50"))
REFEREE = Path(__file__).parents[1] / "shared" / "simgrid_star.py"
BEGIN_S = 0.2
"""Until all threads are there."""

pytestmark = pytest.mark.campaign


@dataclass
class Errors:
    """By how much the model's times differ from others', as parts of these."""

    messages: list[float] = field(default_factory=list)
    fleets: list[float] = field(default_factory=list)
    """The mean of a fleet's messages."""
    ends: list[float] = field(default_factory=list)
    """When the last message of a fleet is over."""

    def add(self, given: Star, model: Sequence[float], real: Sequence[float]) -> None:
        """Compare one fleet's ends."""
        modelled_s, real_s = took_s(given, model), took_s(given, real)
        self.messages += list(modelled_s / real_s - 1.0)
        self.fleets.append(modelled_s.mean() / real_s.mean() - 1.0)
        self.ends.append(max(model) / max(real) - 1.0)

    def row(self, name: str) -> str:
        """A row of the document's table: median of the errors, median and 95th percentile of their sizes, in %."""
        cells = []
        for each in (self.messages, self.fleets, self.ends):
            size = np.abs(each)
            cells.append(
                f"{100 * np.median(each):+.1f}, {100 * np.median(size):.1f} / {100 * np.percentile(size, 95):.1f}"
            )
        return f"| {name} | {len(self.fleets)} | {len(self.messages)} | {' | '.join(cells)} |"


def took_s(given: Star, ends: Sequence[float]) -> np.ndarray:
    """How long each message took since it was sent, waiting behind others of its connection included."""
    return np.array([end_s - said.at_s for said, end_s in zip(given.said, ends, strict=True)])


def transferred(given: Star, folder: Path) -> list[float]:
    """When each message was there, in real namespaces."""
    links = {
        f"node-{k}": LinkPlan(uplink_bit_s=up, downlink_bit_s=down)
        for k, (up, down) in enumerate([given.server, *given.workers])
    }
    namespaces = Namespaces(links, folder / "namespaces.log")
    ends = [0.0] * len(given.said)
    with contextlib.closing(namespaces), contextlib.ExitStack() as open_:
        home = namespaces.homes["node-0"]
        with inside(home.namespace):
            listening = open_.enter_context(socket.create_server((home.address, 0), backlog=64))
        threads = []
        begin_s = time.monotonic() + BEGIN_S + 0.02 * len(given.workers)
        for worker in range(len(given.workers)):
            with inside(namespaces.homes[f"node-{worker + 1}"].namespace):
                near = open_.enter_context(socket.create_connection(listening.getsockname()))
            far = open_.enter_context(listening.accept()[0])
            for is_up, source, target in ((True, near, far), (False, far, near)):
                said = [k for k, each in enumerate(given.said) if (each.worker, each.is_up) == (worker, is_up)]
                sizes = [given.said[k].size for k in said]
                times = [begin_s + given.said[k].at_s for k in said]
                threads += [
                    threading.Thread(target=_send, args=(source, times, sizes)),
                    threading.Thread(target=_receive, args=(target, said, sizes, ends, begin_s)),
                ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    return ends


def _send(connection: socket.socket, times: list[float], sizes: list[int]) -> None:
    choose_congestion_control(connection.fileno())
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for at_s, size in zip(times, sizes, strict=True):
        time.sleep(max(0.0, at_s - time.monotonic()))
        connection.sendall(bytes(size))


def _receive(connection: socket.socket, said: list[int], sizes: list[int], ends: list[float], begin_s: float) -> None:
    buffer = bytearray(1 << 16)
    for number, size in zip(said, sizes, strict=True):
        left = size
        while left:
            left -= connection.recv_into(buffer, min(left, len(buffer)))
        ends[number] = time.monotonic() - begin_s


@pytest.mark.parametrize("two_way", [False, True], ids=["one way", "both ways at a time"])
def test_random_fleets_take_what_the_kernel_makes_them_take(tmp_path, capsys, two_way):
    """A fleet's mean time of a message, in the median of the fleets: within a twentieth, each way.

    Both ways at a time TCP does not fill a link: acknowledgements wait in the queue of what goes their way.
    """
    if reason := why_no_namespaces():
        pytest.skip(f"no namespaces: {reason}; run the tests as root")
    errors = Errors()
    for seed in range(FLEETS):
        given = star(seed, two_way=two_way)
        errors.add(given, [each.end_s for each in modelled(given)], transferred(given, tmp_path))
    with capsys.disabled():
        print("\n" + errors.row("the kernel, both ways at a time" if two_way else "the kernel, one way"))

    limit = 0.2 if two_way else 0.05
    assert np.median(np.abs(errors.fleets)) <= limit
    assert np.median(np.abs(errors.ends)) <= limit


HELD_BACK_BY = ("nothing but its own uplink", "its own uplink, in a full link", "the server's link")
"""What holds a message of the slowest class back, by max-min arithmetic."""


def held_back_by(given: Star, worker: int) -> str:
    """Return what holds a worker's message back while all send."""
    lanes = {k: float(up) for k, (up, _) in enumerate(given.workers)} | {"server": float(given.server[1])}
    if sum(up for up, _ in given.workers) <= given.server[1]:
        return HELD_BACK_BY[0]
    rates = fair_rates([(k, "server") for k in range(len(given.workers))], lanes)
    return HELD_BACK_BY[1 if rates[worker] >= 0.999 * lanes[worker] else 2]


def test_a_slow_class_beside_fast_ones_takes_what_the_kernel_makes_it_take(tmp_path, capsys):
    """Messages whose sender's own uplink is the bottleneck: within 3 %, in the median.

    Each fleet is measured twice, since the kernel differs from itself: who loses a packet in a full queue is chance.
    """
    if reason := why_no_namespaces():
        pytest.skip(f"no namespaces: {reason}; run the tests as root")
    model: dict[str, list[float]] = {name: [] for name in HELD_BACK_BY}
    again: dict[str, list[float]] = {name: [] for name in HELD_BACK_BY}
    for seed in range(FLEETS):
        given, class_of = classes(seed)
        modelled_s = took_s(given, [each.end_s for each in modelled(given)])
        first_s, second_s = (took_s(given, transferred(given, tmp_path)) for _ in range(2))
        for number in range(len(class_of), len(given.said)):  # the first ones open the windows
            worker = given.said[number].worker
            if class_of[worker] == 0:
                name = held_back_by(given, worker)
                model[name].append(modelled_s[number] / min(first_s[number], second_s[number]) - 1.0)
                again[name].append(first_s[number] / second_s[number] - 1.0)
    with capsys.disabled():
        for name in HELD_BACK_BY:
            print(f"\n| {name} | {len(model[name])} | {sizes_text(model[name])} | {sizes_text(again[name])} |", end="")

    assert np.median(np.abs([*model[HELD_BACK_BY[0]], *model[HELD_BACK_BY[1]]])) <= 0.03


def sizes_text(errors: Sequence[float]) -> str:
    """Median of errors, median and 95th percentile of their sizes, in %; nothing where there are none."""
    if not errors:
        return "-"
    size = 100 * np.abs(errors)
    return f"{100 * np.median(errors):+.1f}, {np.median(size):.1f} / {np.percentile(size, 95):.1f}"


def referee() -> str:
    """A Python that has SimGrid."""
    for python in (sys.executable, shutil.which("python3", path="/usr/bin"), shutil.which("python3")):
        if python and not subprocess.run([python, "-c", "import simgrid"], capture_output=True, check=False).returncode:
            return python
    pytest.skip("no SimGrid: apt-get install python3-simgrid")


@pytest.mark.parametrize("two_way", [False, True], ids=["one way", "both ways at a time"])
def test_random_fleets_take_what_simgrid_makes_them_take(capsys, two_way):
    """Each message to a millionth, without bursts, queues and acknowledgements, which SimGrid's fluid model has not."""
    python, bare, full = referee(), Errors(), Errors()
    for seed in range(FLEETS):
        given = star(seed, two_way=two_way)
        asked = {
            "server": given.server,
            "workers": given.workers,
            "said": [(each.worker, each.is_up, each.at_s, wire_bytes(each.size)) for each in given.said],
        }
        done = subprocess.run([python, REFEREE], input=json.dumps(asked), capture_output=True, text=True, check=True)
        ends = json.loads(done.stdout)
        bare.add(given, [each.end_s for each in modelled(given, bare=True)], ends)
        full.add(given, [each.end_s for each in modelled(given)], ends)
    with capsys.disabled():
        ways = "both ways at a time" if two_way else "one way"
        print(f"\n{bare.row(f'SimGrid, {ways}')}\n{full.row(f'SimGrid, {ways}; with bursts and acknowledgements')}")

    assert max(np.abs(bare.messages)) <= 1e-6
    assert max(np.abs(full.fleets)) <= 0.05
