"""Latency, jitter and loss in the kernel: what is asked is what it holds, and what datagrams and TCP meet.

Only on a kernel that has netem: test_booted_kernel.py boots one, and runs these tests in it. There is one slow core, so
bounds are wide; what a figure is drawn by chance for, it misses once in a hundred thousand times.
"""

import functools
import json
import math
import os
import subprocess
import sys
import threading
import time

import pytest
from measured_links import DIRECTIONS, LINKS, MBIT, WORKER, held, measure, network, problem

from edgebed.core.errors import InfrastructureError
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkChange, LinkPlan
from edgebed.emulation.conditions import EffectiveLink, LinkState
from edgebed.emulation.namespaces import Namespaces
from edgebed.emulation.readback import LinkMeter, deviation
from edgebed.emulation.tc import Features, Shaper, probe

pytestmark = [pytest.mark.process, pytest.mark.netem]

LATE_S, LEAST_LATE_S = 0.05, 0.01
"""Seconds by which a median delay, and the least of many, may be longer than asked."""
CHANCE = 4.4  # standard deviations
DEADLINE_S = 20.0
DATAGRAMS = int(os.environ.get("EDGEBED_DATAGRAMS", "20000"))
"""Datagrams by which a campaign counts a loss."""


def do(made: Namespaces, number: int, **injection) -> str:
    """Have a fault done to the worker's link; return why it could not be."""
    made.inject(number, Injection(node=WORKER, **injection))
    until_s = time.monotonic() + DEADLINE_S
    while time.monotonic() < until_s:
        for answer in made.answers():
            if answer.done == number:
                return answer.problem
        time.sleep(0.01)
    pytest.fail("no answer")


def test_this_kernel_has_netem():
    """Else nothing here would show anything; the project finds it out by itself."""
    assert probe() == Features(netem=True)


def check(name: str, delays: int, datagrams: int) -> None:
    """A link is what was asked, in each direction: as the kernel tells it, and as datagrams meet it."""
    link = LINKS[name]
    with network(link) as made:
        assert problem(made, link) == ""
        for direction in DIRECTIONS:
            found = measure(made, direction, delays=delays, losses=datagrams, apart_s=2.0 * link.jitter_s)

            deviation_of_share = math.sqrt(link.loss * (1.0 - link.loss) / found.sent)
            assert found.loss == pytest.approx(link.loss, abs=CHANCE * deviation_of_share)
            deviation_of_median_s = link.jitter_s / math.sqrt(len(found.delays_s))
            late_s = found.delay_s - link.latency_s
            assert -CHANCE * deviation_of_median_s <= late_s < LATE_S + CHANCE * deviation_of_median_s
            assert link.latency_s - link.jitter_s <= min(found.delays_s) < link.latency_s + LEAST_LATE_S
            assert not link.jitter_s or min(found.delays_s) < link.latency_s - 0.2 * link.jitter_s
            assert found.jitter_s == pytest.approx(link.jitter_s, rel=0.4, abs=LATE_S)


def test_a_link_of_latency_jitter_and_loss_is_what_was_asked():
    """What is small and sent quickly is not lost for being much at a time."""
    check("all", delays=30, datagrams=2_000)


@pytest.mark.campaign
@pytest.mark.parametrize("name", list(LINKS))
def test_every_link_is_what_was_asked(name):
    """With a rate or none, each condition alone and all together."""
    check(name, delays=200, datagrams=DATAGRAMS)


@pytest.mark.campaign
def test_what_waits_for_a_rate_waits_in_a_queue_that_counts_bytes():
    """Below a netem, too: of what comes at once a fifth of a second's bytes pass, and the rest is dropped."""
    link = LinkPlan(uplink_bit_s=2 * MBIT, latency_s=0.05)
    with network(link) as made:
        found = measure(made, "uplink", delays=200, losses=0, size=1_400)
        queue, _ = held(made)

    passed_bytes = found.received * 1_442
    assert 45_000 <= passed_bytes <= 50_000 + 2 * 1_514 + 2e6 / 8 * 0.3
    assert max(found.delays_s) == pytest.approx(0.05 + 0.2, abs=0.05)
    assert queue.drops == pytest.approx(found.sent - found.received, abs=2)


def test_faults_change_what_netem_does():
    """Any number of times, in any order, with a cut between; what is undone is as planned, and read back each time."""
    planned = LinkPlan(uplink_bit_s=10 * MBIT, latency_s=0.01)
    changes = [
        LinkChange(latency_s=0.1, jitter_s=0.02), LinkChange(loss=0.5), LinkChange(latency_s=0.0, jitter_s=0.0),
        LinkChange(downlink_bit_s=MBIT, loss=0.0),
    ]  # fmt: skip
    effective = EffectiveLink(planned)
    steps = [step for change in changes for step in (
        {"action": "link", "change": change}, {"action": "cut"}, {"action": "heal"}
    )]  # fmt: skip

    with network(planned) as made:
        for number, step in enumerate([*steps, {"action": "link"}]):
            assert do(made, number, **step) == ""
            effective.inject(float(number), Injection(node=WORKER, **step))
            assert deviation(effective.at(float(number)), *held(made), netem=True) == ""
        assert problem(made, planned) == ""
        found = measure(made, "uplink", delays=20, losses=0, apart_s=0.05)
        assert 0.01 <= min(found.delays_s) < 0.01 + LATE_S


@pytest.mark.campaign
def test_a_link_whose_latency_changes_with_time_is_followed():
    """From when training began; a step to no latency at all takes the netem away."""
    link = LinkPlan(
        uplink_bit_s=10 * MBIT, latency_s=0.05,
        changes=(LinkChange(at_s=1.0, latency_s=0.2, loss=0.1), LinkChange(at_s=2.0, latency_s=0.0, loss=0.0)),
    )  # fmt: skip
    seen = []
    with network(link) as made:
        began_s = time.monotonic()
        made.began(began_s)
        while time.monotonic() < began_s + 2.5:
            up, _ = held(made)
            if not seen or seen[-1] != (round(up.delay_s, 6), round(up.loss, 6)):
                seen.append((round(up.delay_s, 6), round(up.loss, 6)))
            time.sleep(0.02)

    assert seen == [(0.05, 0.0), (0.2, 0.1), (0.0, 0.0)]


def test_a_node_finds_that_its_netem_was_changed(hosts):
    """Once it has looked twice, with what is held and what was asked."""
    one, _ = hosts
    link = LinkPlan(uplink_bit_s=10 * MBIT, latency_s=0.04, loss=0.01)
    asked = LinkState(uplink_bit_s=10 * MBIT, latency_s=0.04, loss=0.01)
    shaper = one.call(Shaper, one.ip, "data", Features(netem=True))
    one.call(shaper.apply, asked)
    meter = LinkMeter("edge-0", EffectiveLink(link), one.reader, "netem")
    meter.wait_until_held()
    (first,) = meter.read(0.0, None)
    assert (first.delay, first.latency_s, first.loss, first.problem) == ("netem", 0.04, 0.01, "")

    one.call(shaper.apply, LinkState(uplink_bit_s=10 * MBIT, latency_s=0.04))
    found = [*meter.read(51.0, 1.0), *meter.read(52.0, 1.0)]

    assert [record.problem for record in found] == [
        "; ".join(
            f"{direction}: the kernel's netem holds latency 40 ms, jitter 0 ms, loss 0 %, "
            "asked latency 40 ms, jitter 0 ms, loss 1 %"
            for direction in DIRECTIONS
        )
    ]


@pytest.mark.campaign
def test_tcp_fills_a_link_that_has_latency(hosts, connected):
    """Half its rate at least, though this machine is slow, and never more; the round trip is twice the latency."""
    one, other = hosts
    shaper = one.call(Shaper, one.ip, "data", Features(netem=True))
    one.call(shaper.apply, LinkState(uplink_bit_s=5 * MBIT, downlink_bit_s=50 * MBIT, latency_s=0.03))
    size = 1_000_000

    near, far = connected(one, other)
    with near, far:
        began_s = time.monotonic()
        near.sendall(b"there")
        far.recv(5)
        far.sendall(b"back")
        near.recv(4)
        round_trip_s = time.monotonic() - began_s
        sender = threading.Thread(target=near.sendall, args=(bytes(size),))
        began_s = time.monotonic()
        sender.start()
        left = size
        while left:
            left -= len(far.recv(1 << 16))
        took_s = time.monotonic() - began_s
        sender.join()

    assert 0.06 <= round_trip_s < 0.06 + 2 * LATE_S
    assert 0.9 * 8 * size / (5 * MBIT) < took_s < 2.0 * 8 * size / (5 * MBIT)


@pytest.mark.campaign
def test_the_helper_of_a_container_finds_netem_and_uses_it(hosts):
    """As the program that the engine starts in a node's network namespace."""
    one, _ = hosts
    command = [sys.executable, "-m", "edgebed.emulation.shaping"]
    asked = LinkState(uplink_bit_s=7 * MBIT, latency_s=0.03, jitter_s=0.01, loss=0.02)
    link = {"uplink_bit_s": 7 * MBIT, "latency_s": 0.03, "jitter_s": 0.01, "loss": 0.02}
    order = json.dumps({"subnet": "10.77.0.0/24", "netem": True, "link": link, "node": "edge-0", "stays": False})

    def helper(*arguments: str, told: str = "") -> dict:
        run = functools.partial(subprocess.run, input=told + "\n", capture_output=True, text=True, check=True)
        return json.loads(one.call(run, [*command, *arguments]).stdout)

    assert helper("--probe") == {"netem": True}
    assert helper(told=order) == {"interface": "data"}
    assert deviation(asked, *one.reader.queues(), netem=True) == ""


def test_a_queue_of_somebody_elses_is_never_replaced(hosts):
    """Also where it is a netem."""
    one, _ = hosts
    index = one.index()
    one.call(lambda: one.ip.tc("add", "netem", index, handle=0x770000, delay=1000))

    with pytest.raises(InfrastructureError, match=r"data already has a netem 77: .* tc qdisc del dev data root"):
        one.call(Shaper, one.ip, "data", Features(netem=True))
