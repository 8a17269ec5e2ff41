"""The rate between two nodes in the kernel: it holds, nobody else's does, and who takes it away is found."""

import dataclasses
import threading
import time

import pytest

from edgebed.core.framing import packet_bytes, segment_bytes
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkChange, LinkPlan
from edgebed.emulation.conditions import EffectiveLink, LinkState
from edgebed.emulation.netlink import LEAVING, read_qdisc
from edgebed.emulation.readback import LinkMeter, deviation
from edgebed.emulation.tc import Features, Shaper

pytestmark = pytest.mark.process  # it waits in wall-clock time

MBIT = 1_000_000
PAYLOAD = segment_bytes() / packet_bytes()
BULK_S = 3.0


@pytest.fixture
def third(hosts):
    """10.77.0.3, another node behind the same interface as 10.77.0.2."""
    _, other = hosts
    index = other.index()
    other.call(lambda: other.ip.addr("add", index=index, address="10.77.0.3", prefixlen=24))
    return dataclasses.replace(other, address="10.77.0.3")


def shaper_of(host) -> Shaper:
    """What holds a host's link, made anew: it finds what is there."""
    return host.call(Shaper, host.ip, "data", Features(netem=False))


def queues(host) -> list[tuple]:
    """Every queueing discipline of the interface but the kernel's defaults."""
    found = [read_qdisc(payload) for payload in host.reader.dump(38, bytes(20))]
    index = host.index()
    return [
        (each.handle, each.kind, each.queue.rate_bit_s) for each in found if each.handle and each.interface == index
    ]


def rates_bit_s(*ways) -> list[float]:
    """Payload that passes each of these connections while all send, but for the first half second."""
    until_s = time.monotonic() + BULK_S
    received = [0.0] * len(ways)

    def send(near) -> None:
        while time.monotonic() < until_s:
            near.sendall(bytes(8192))

    def take(k: int, far) -> None:
        began_s = time.monotonic() + 0.5
        while (now := time.monotonic()) < until_s:
            size = len(far.recv(1 << 18))
            received[k] += size if now > began_s else 0
        received[k] *= 8 / (until_s - began_s)
        while far.recv(1 << 18):
            continue

    threads = [threading.Thread(target=send, args=(near,)) for near, _ in ways]
    takers = [threading.Thread(target=take, args=(k, far)) for k, (_, far) in enumerate(ways)]
    for each in (*threads, *takers):
        each.start()
    for each, (near, _) in zip(threads, ways, strict=True):
        each.join()
        near.close()
    for each in takers:
        each.join()
    for _, far in ways:
        far.close()
    return received


@pytest.mark.timed
@pytest.mark.parametrize("uplink_bit_s", [8 * MBIT, 40 * MBIT])
def test_the_rate_between_two_holds_and_a_third_has_what_is_left(hosts, third, connected, uplink_bit_s):
    """Within a tenth, for as long as both are sent all that passes."""
    one, other = hosts
    shaper = shaper_of(one)
    one.call(shaper.apply, LinkState(uplink_bit_s=uplink_bit_s))
    one.call(shaper.narrow, {other.address: MBIT})

    narrowed, whole = rates_bit_s(connected(one, other), connected(one, third))

    assert narrowed == pytest.approx(MBIT * PAYLOAD, rel=0.1)
    assert whole == pytest.approx((uplink_bit_s - MBIT) * PAYLOAD, rel=0.1)


@pytest.mark.timed
def test_where_the_uplink_is_slower_it_is_shared_as_before(hosts, third, connected):
    """A rate between two above half of the uplink takes nothing from the third."""
    one, other = hosts
    shaper = shaper_of(one)
    one.call(shaper.apply, LinkState(uplink_bit_s=4 * MBIT))
    one.call(shaper.narrow, {other.address: 10 * MBIT})

    rates = rates_bit_s(connected(one, other), connected(one, third))

    assert sum(rates) == pytest.approx(4 * MBIT * PAYLOAD, rel=0.1)
    assert min(rates) > 0.2 * sum(rates)


@pytest.mark.parametrize(
    "conditions", [LinkState(), LinkState(uplink_bit_s=2 * MBIT), LinkState(uplink_bit_s=MBIT, downlink_bit_s=MBIT)]
)
def test_when_it_ends_the_queues_are_as_before_and_nothing_that_waited_is_lost(hosts, connected, conditions):
    """Also where somebody else goes on with the link; the rest of it changes and is cut beside."""
    one, other = hosts
    shaper = shaper_of(one)
    one.call(shaper.apply, conditions)
    before = queues(one)
    near, far = connected(one, other)
    with near, far:
        one.call(shaper.narrow, {other.address: 80_000, "10.77.0.9": MBIT})
        near.sendall(bytes(30_000))
        one.call(shaper.apply, LinkState(cut=True))
        one.call(shaper.apply, conditions)
        assert {to: each.rate_bit_s for to, each in one.reader.narrowed().items()} == {
            other.address: 80_000, "10.77.0.9": MBIT
        }  # fmt: skip
        assert deviation(conditions, *one.reader.queues(), netem=False) == ""
        again = shaper_of(one)
        one.call(again.narrow, {other.address: 160_000})
        assert [each.rate_bit_s for each in one.reader.narrowed().values()] == [160_000]
        one.call(again.narrow, {})

        assert one.reader.narrowed() == {}
        assert queues(one) == before
        far.settimeout(10.0)
        received = 0
        while received < 30_000:
            received += len(far.recv(1 << 16))


@pytest.mark.parametrize("tampering", ["filter", "queue", "rate", "elsewhere"])
def test_who_takes_it_away_is_found(hosts, tampering):
    """By the node itself, at its second look; and by nobody where it holds."""
    one, other = hosts
    shaper = shaper_of(one)
    meter = LinkMeter("edge-0", EffectiveLink(LinkPlan()), one.reader, "")
    change = LinkChange(uplink_bit_s=MBIT)
    meter.inject(1.0, Injection(node="edge-1", action="link", peer="edge-0", change=change))
    one.call(shaper.narrow, {other.address: MBIT})
    (held,) = meter.read(5.0, 0.0)
    index, ifb, ip = one.index(), one.call(lambda: one.ip.link_lookup(ifname="edgebed0a4d0002")[0]), one.ip

    def tamper() -> None:
        if tampering == "filter":
            ip.tc("del-filter", index=index, parent=LEAVING)
        elif tampering == "queue":
            ip.tc("del", index=ifb, parent=0xFFFF_FFFF)
        elif tampering == "rate":
            Shaper(ip, "data", Features(netem=False)).narrow({other.address: 2 * MBIT})
        else:
            Shaper(ip, "data", Features(netem=False)).narrow({"10.77.0.9": MBIT, "10.77.0.8": MBIT})

    one.call(tamper)
    assert list(meter.read(6.0, 0.0)) == []
    (found,) = meter.read(7.0, 0.0)

    assert (held.narrowed, held.problem) == ({"edge-1": MBIT}, "")
    held_now = {"filter": "none", "queue": "no limit", "rate": "2mbit", "elsewhere": "1mbit, 1mbit"}[tampering]
    assert found.problem == f"rate between two: the kernel holds {held_now}, asked 1mbit with edge-1"
