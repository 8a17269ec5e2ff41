"""A recorded link of LTE in containers: what passes in each of its seconds is what the recording lets pass."""

import json
import os
import threading
import time
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from typing import Any

import pytest
from matplotlib.axes import Axes

from edgebed.core.framing import packet_bytes
from edgebed.planning.planning import plan_trials
from edgebed.reports.writing.figures import Chart
from edgebed.runtimes.containers.engines import Engines
from edgebed.runtimes.containers.links import Links
from edgebed.runtimes.containers.project import ImageNames
from edgebed.runtimes.containers.site import find_site
from edgebed.scenario.load import load_scenario
from edgebed.scenario.traces.library import known

TRACE = os.environ.get("EDGEBED_TRACE", "Verizon-LTE-short")
SECONDS = int(os.environ.get("EDGEBED_TRACE_SECONDS", "300"))
RESULTS = os.environ.get("EDGEBED_TRACE_RESULTS")
"""Folder for what was measured, as JSON and as figures; nothing is kept if left out."""
NAME = f"traced-{os.getpid()}"
PORT = 9000
SENDER = """
import socket, sys, time
host, port, packets_s, until_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
packet, began_s, sent = bytes(1472), time.monotonic(), 0
while (now_s := time.monotonic()) < until_s:
    while sent < (now_s - began_s) * packets_s:
        try:
            out.sendto(packet, socket.MSG_DONTWAIT, (host, port))
        except OSError:
            pass  # the queue is full, as it shall be
        sent += 1
    time.sleep(0.002)
"""
"""Sends full packets to an address, so many a second, until a time of the monotonic clock."""
RECEIVER = """
import collections, json, socket, sys, time
port, zero_s, until_s = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
here.settimeout(0.2)
here.bind(("", port))
seconds = collections.Counter()
while (now_s := time.monotonic()) < until_s:
    try:
        here.recv(2000)
    except TimeoutError:
        continue
    seconds[int(time.monotonic() - zero_s)] += 1
print(json.dumps([seconds[k] for k in range(max(seconds) + 1)]))
"""
"""Counts the packets that come in each second since a time, and prints them."""

pytestmark = [pytest.mark.timed, pytest.mark.campaign]


@dataclass
class Followed:
    """Bytes on the wire in each second of one direction: what the trace lets pass, and what came."""

    direction: str
    asked: list[float]
    passed: list[int]

    @property
    def good(self) -> float:
        """The share of seconds within 2 % or two packets."""
        bounds = [max(0.02 * asked, 2 * packet_bytes()) for asked in self.asked]
        good = [abs(off) <= bound for off, bound in zip(self.off(), bounds, strict=True)]
        return sum(good) / len(good)

    @property
    def total(self) -> float:
        """What passed in all, by what was asked."""
        return sum(self.passed) / sum(self.asked)

    def off(self) -> list[float]:
        """What passed too much in each second."""
        return list(starmap(lambda was, asked: was - asked, zip(self.passed, self.asked, strict=True)))

    def keep(self, folder: Path) -> None:
        """Write the seconds, and a figure of them."""
        told = {"trace": TRACE, "asked": self.asked, "passed": self.passed}
        (folder / f"{self.direction}.json").write_text(json.dumps(told))

        def plot(axes: Axes) -> None:
            axes.step(range(len(self.asked)), [8e-6 * each for each in self.asked], where="post", label="trace")
            axes.plot([k + 0.5 for k in range(len(self.passed))], [8e-6 * each for each in self.passed], ".",
                      markersize=3, label="passed")  # fmt: skip
            axes.set_xlabel("second")
            axes.set_ylabel("mbit/s")

        chart = Chart(f"LTE trace {self.direction}", plot, num_lines=2, size=(8.0, 3.0))
        (folder / f"{chart.name}.svg").write_bytes(chart.svg_file)


@pytest.fixture
def trace() -> str:
    """The recording, where somebody has converted it."""
    if TRACE not in known():
        pytest.skip(f"no trace {TRACE}: docs/traces.md says where to get it and how to convert it")
    return TRACE


def test_what_passes_in_a_second_is_what_the_recording_lets_pass(engine: Any, trace: str) -> None:
    """Both ways, by more than the link carries: 95 % of the seconds within 2 % or two packets, all within 0.5 %."""
    scenario = load_scenario({
        "name": NAME, "question": "Does a link follow its trace?", "seed": 3, "method": "asgd",
        "task": {"data": "digits", "model": "small"}, "stop": {"time": "1h"},
        "fleet": {"edge": {"count": 1, "link_trace": trace}},
    })  # fmt: skip
    plan = plan_trials(scenario)[0].plan
    engines = Engines()
    site = find_site(engines, f"{NAME}/0001", "asgd")
    problems: list[Exception] = []
    try:
        links = Links(engines, site, ImageNames.named().server, plan, problems.append)
        pair = [_sleeping(engine.client.api, site) for _ in range(2)]
        found = _followed(engine.client.api, links, plan, pair)
    finally:
        site.clear(engine.client, networks=True)
        engines.close()

    for each in found:
        print(f"{trace} {each.direction}: {each.good:.1%} of the seconds, {each.total - 1:+.2%} in all")
        if RESULTS:
            each.keep(Path(RESULTS))
    assert problems == []
    assert min(each.good for each in found) >= 0.95
    assert [each.total for each in found] == [pytest.approx(1.0, abs=0.005)] * 2


def _sleeping(api: Any, site: Any) -> str:
    """A container on the data network that does nothing by itself."""
    host_config = api.create_host_config(network_mode=site.data.id)
    settings = {"entrypoint": ["sleep", "3600"], "labels": site.labels, "host_config": host_config}
    container = str(api.create_container(ImageNames.named().server, **settings)["Id"])
    api.start(container)
    return container


def _followed(api: Any, links: Links, plan: Any, pair: list[str]) -> list[Followed]:
    """What passes the link of the first of two containers, when both send each other more than it carries."""
    node = plan.node("edge-0")
    links.set(node, 1, pair[0])
    began_s = time.monotonic()
    links.began(began_s)
    zero_s = (
        began_s - node.link.offset_s
    )  # the trace's own zero, so that its rows and the seconds counted begin together
    first = int(node.link.offset_s) + 2  # those who send are there by then
    until_s = zero_s + first + SECONDS
    counts: dict[str, list[int]] = {}

    def inside(container: str, program: str, *arguments: object) -> str:
        started = api.exec_create(container, ["python", "-c", program, *map(str, arguments)])["Id"]
        return str(api.exec_start(started).decode())

    def send(direction: str, source: str, target: str, port: int) -> None:
        (network,) = api.inspect_container(target)["NetworkSettings"]["Networks"].values()
        packets_s = 1.3 * max(_rates(plan, direction)) / packet_bytes() + 50
        sending = (source, SENDER, network["IPAddress"], port, packets_s, until_s)
        sender = threading.Thread(target=inside, args=sending)
        sender.start()
        counts[direction] = json.loads(inside(target, RECEIVER, port, zero_s, until_s + 0.5))
        sender.join()

    ways = [("up", pair[0], pair[1], PORT), ("down", pair[1], pair[0], PORT + 1)]
    threads = [threading.Thread(target=send, args=way) for way in ways]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    followed = []
    for direction, count in sorted(counts.items(), reverse=True):
        rates, seconds = _rates(plan, direction), range(first, first + SECONDS)
        came = dict(enumerate(count))
        asked = [rates[k % len(rates)] for k in seconds]
        followed.append(Followed(direction, asked, [came.get(k, 0) * packet_bytes() for k in seconds]))
    return followed


def _rates(plan: Any, direction: str) -> list[float]:
    """What the trace lets pass in each of its rows, of a second each, in bytes."""
    changes = plan.node("edge-0").link.changes
    return [(each.uplink_bit_s if direction == "up" else each.downlink_bit_s) / 8 for each in changes]
