"""Links in the kernel: what is asked is what it holds, and what passes; with real interfaces and real TCP."""

import functools
import json
import math
import struct
import subprocess
import sys
import threading
import time

import msgspec
import pytest
from waiting import until

from edgebed.core.errors import InfrastructureError
from edgebed.core.framing import burst_bytes, packet_bytes, segment_bytes, wire_bytes
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkChange, LinkPlan
from edgebed.emulation.conditions import EffectiveLink, LinkState
from edgebed.emulation.netlink import ARRIVING, LinkReader, read_qdisc
from edgebed.emulation.readback import LinkMeter, deviation
from edgebed.emulation.shaping import Shaping
from edgebed.emulation.tc import Features, Shaper, disciplines, probe
from edgebed.emulation.tcp import counters

pytestmark = pytest.mark.process  # it waits in wall-clock time

PUSH_BYTES = 12_700
"""A compressed push of AdaComp's."""
BULK_S = 1.5
TRIES = 12
"""Times as many measurements, at most, until one is as quick as asked."""
PLAIN = Features(netem=False)
ROOT = 0xFFFF_FFFF


def shape(host, conditions: LinkState) -> Shaper:
    """What holds a host's link from now on."""
    shaper = host.call(Shaper, host.ip, "data", PLAIN)
    host.call(shaper.apply, conditions)
    return shaper


def held(host, conditions: LinkState) -> str:
    """How what the kernel holds differs from these conditions."""
    return deviation(conditions, *host.reader.queues(), netem=False)


def goodput_bit_s(near, far, duration_s: float = BULK_S) -> float:
    """Payload that passes from one end to the other while it sends all the time."""
    until_s = time.monotonic() + duration_s

    def send() -> None:
        with near:
            while time.monotonic() < until_s:
                near.sendall(bytes(16_384))

    sender = threading.Thread(target=send)
    sender.start()
    received, began_s = len(far.recv(1)), time.monotonic()
    while time.monotonic() < until_s:
        received += len(far.recv(1 << 18))
    took_s = time.monotonic() - began_s
    while far.recv(1 << 18):
        continue
    sender.join()
    far.close()
    return 8 * received / took_s


@pytest.mark.timed
@pytest.mark.parametrize("direction", ["uplink", "downlink"])
@pytest.mark.parametrize(("rate_bit_s", "mtu"), [(10_000_000, 1500), (50_000_000, 1500), (20_000_000, 1450)])
def test_bulk_passes_at_the_rate_asked(hosts, connected, direction, rate_bit_s, mtu):
    """Less the headers, within 10 %, whichever way it is that is limited; the other way is not.

    At no time faster, and as fast once in a few times: a machine whose timers come late loses throughput. So it is with
    the smaller packets of an overlay network, too.
    """
    one, other = hosts
    for host in hosts:
        host.call(functools.partial(host.ip.link, "set", index=host.index(), mtu=mtu))
    shape(one, LinkState(**{f"{direction}_bit_s": rate_bit_s}))
    expected_bit_s = rate_bit_s * segment_bytes(mtu) / packet_bytes(mtu)
    quickest_bit_s, tries = 0.0, 0

    while quickest_bit_s < 0.9 * expected_bit_s and tries < TRIES:
        ends = connected(one, other) if direction == "uplink" else connected(other, one)
        quickest_bit_s, tries = max(quickest_bit_s, goodput_bit_s(*ends)), tries + 1

    assert quickest_bit_s == pytest.approx(expected_bit_s, rel=0.1)


@pytest.mark.timed
@pytest.mark.parametrize("direction", ["uplink", "downlink"])
def test_a_single_push_after_a_silence_takes_its_bytes_less_the_burst(hosts, connected, direction):
    """12.7 kB at 10 mbit: a large burst would let it through in no time. The quickest of several, within 10 %."""
    one, other = hosts
    shape(one, LinkState(**{f"{direction}_bit_s": 10_000_000}))
    near, far = connected(one, other) if direction == "uplink" else connected(other, one)
    expected_s = (wire_bytes(PUSH_BYTES) - burst_bytes(10_000_000)) * 8 / 10_000_000
    took_s: list[float] = []

    with near, far:
        while len(took_s) < 8 or (min(took_s) > 1.1 * expected_s and len(took_s) < 8 * TRIES):
            time.sleep(0.1)  # the silence
            began_s = time.monotonic()
            near.sendall(bytes(PUSH_BYTES))
            left = PUSH_BYTES
            while left:
                left -= len(far.recv(left))
            took_s.append(time.monotonic() - began_s)

    assert min(took_s) == pytest.approx(expected_s, rel=0.1)


def test_packets_that_a_slow_link_has_sent_twice_are_told_of(hosts, connected):
    """The second of three takes half a second, where the first was acknowledged at once: TCP takes it for lost."""
    shape(hosts[0], LinkState(uplink_bit_s=23_000))
    near, far = connected(*hosts)
    with near, far:
        near.sendall(bytes(3 * segment_bytes()))
        sent = counters(near.fileno())
        until(lambda: counters(near.fileno()).repeated, "word of a packet that came twice")
        arrived = counters(near.fileno())

    assert (sent.repeated, sent.is_waiting) == (0, True)
    assert not arrived.is_waiting
    assert 0.9 < arrived.unacknowledged_s < 2.0


def test_what_the_kernel_holds_is_what_was_asked(hosts):
    """Both directions, one, none, and back; whatever was there before, and who holds the link anew."""
    one, _ = hosts
    shaper = shape(one, LinkState())
    asked = [
        LinkState(uplink_bit_s=1_000_000, downlink_bit_s=100_000_000),
        LinkState(downlink_bit_s=5_555_555),
        LinkState(uplink_bit_s=50_000_000),
        LinkState(),
        LinkState(uplink_bit_s=256_000, downlink_bit_s=256_000),
    ]

    for conditions in asked:
        one.call(shaper.apply, conditions)
        assert held(one, conditions) == ""
        one.call(shaper.apply, conditions)
        assert held(one, conditions) == ""
    assert held(one, asked[0]) == (
        "uplink: the kernel holds 256kbit, asked 1mbit; downlink: the kernel holds 256kbit, asked 100mbit"
    )
    shape(one, asked[0])
    assert held(one, asked[0]) == ""


def test_a_change_loses_nothing_that_waits(hosts, connected):
    """The queue stays, with its counters; the new rate holds at once."""
    one, other = hosts
    shaper = shape(one, LinkState(uplink_bit_s=2_000_000))
    near, far = connected(one, other)
    with near, far:
        near.setblocking(False)
        left = near.send(bytes(100_000))  # as much as the kernel takes at once
        left -= len(far.recv(1))
        before, _ = one.reader.queues()

        one.call(shaper.apply, LinkState(uplink_bit_s=50_000_000))

        while left:
            left -= len(far.recv(left))
    after, _ = one.reader.queues()
    assert 0 < before.packets < after.packets
    assert after.bytes > before.bytes
    assert after.drops == 0
    assert after.rate_bit_s == 50_000_000


LINKS = [
    LinkState(),
    LinkState(uplink_bit_s=2_000_000),
    LinkState(downlink_bit_s=3_000_000),
    LinkState(uplink_bit_s=2_000_000, downlink_bit_s=3_000_000),
]


def cut(conditions: LinkState) -> LinkState:
    """The same link, cut."""
    return msgspec.structs.replace(conditions, cut=True)


def queueing(host) -> list[tuple]:
    """Every queueing discipline but the kernel's defaults, which have no handle, with what it limits."""
    qdiscs = [read_qdisc(payload) for payload in host.reader.dump(38, bytes(20))]
    return [
        (each.interface, each.handle, each.parent, each.kind, each.queue.rate_bit_s, each.queue.burst_bytes,
         each.queue.limit_bytes, each.queue.cut) for each in qdiscs if each.handle
    ]  # fmt: skip


@pytest.mark.parametrize("conditions", LINKS)
@pytest.mark.parametrize("direction", ["uplink", "downlink"])
def test_nothing_passes_a_link_that_is_cut_and_what_was_sent_arrives_after_the_heal(
    hosts, connected, conditions, direction
):
    """TCP sends it again. Also where no rate was limited."""
    one, other = hosts
    shaper = shape(one, conditions)
    near, far = connected(one, other) if direction == "uplink" else connected(other, one)
    with near, far:
        near.sendall(b"before")
        assert far.recv(6) == b"before"

        one.call(shaper.apply, cut(conditions))
        assert held(one, cut(conditions)) == ""
        near.sendall(b"during")
        far.settimeout(0.3)
        with pytest.raises(TimeoutError):
            far.recv(6)

        one.call(shaper.apply, conditions)
        far.settimeout(10.0)
        assert far.recv(6) == b"during"


@pytest.mark.parametrize("conditions", LINKS)
def test_a_heal_restores_the_queues_exactly(hosts, conditions):
    """Those of the moment: a link that changed meanwhile is as it is to be now. Cut twice, and by another holder."""
    one, _ = hosts
    assert queueing(one) == []
    shaper = shape(one, conditions)
    before = queueing(one)

    one.call(shaper.apply, cut(conditions))
    one.call(shaper.apply, cut(conditions))
    one.call(shaper.apply, conditions)

    assert queueing(one) == before
    one.call(shaper.apply, cut(conditions))
    one.call(shaper.apply, cut(LinkState(uplink_bit_s=9_000_000)))
    assert held(one, cut(LinkState(uplink_bit_s=9_000_000))) == ""
    shaper = shape(one, LinkState(uplink_bit_s=9_000_000))
    assert held(one, LinkState(uplink_bit_s=9_000_000)) == ""
    one.call(shaper.apply, LinkState())
    assert queueing(one) == []


def test_a_cut_that_is_taken_back_behind_its_back_is_found(hosts):
    """And one that nobody asked for."""
    one, _ = hosts
    shaper = shape(one, LinkState(uplink_bit_s=2_000_000))

    assert held(one, cut(LinkState(uplink_bit_s=2_000_000))) == (
        "uplink: the kernel holds 2mbit, asked that nothing passes; "
        "downlink: the kernel holds no limit, asked that nothing passes"
    )
    one.call(shaper.apply, cut(LinkState()))
    assert held(one, LinkState(uplink_bit_s=2_000_000)) == (
        "uplink: the kernel drops everything, asked 2mbit; downlink: the kernel drops everything, asked no limit"
    )


def test_what_somebody_else_has_set_is_never_replaced(hosts):
    """The message names interface, kind and handle, and what to do; edgebed's own may be taken over."""
    one, _ = hosts
    index = one.index()
    options = {"rate": 125_000, "burst": 5_000, "limit": 50_000}
    one.call(lambda: one.ip.tc("add", "tbf", index, handle=0x770000, parent=ROOT, **options))

    with pytest.raises(InfrastructureError, match=r"data already has a tbf 77: .* tc qdisc del dev data root"):
        shape(one, LinkState(downlink_bit_s=1_000_000))

    assert (
        held(one, LinkState(uplink_bit_s=1_000_000)) == "uplink: the kernel lets 5000 bytes through at once, asked 1600"
    )
    one.call(lambda: one.ip.tc("del", index=index, parent=ROOT, handle=0x770000))
    one.call(lambda: one.ip.tc("add", "ingress", index))
    with pytest.raises(InfrastructureError, match=r"data already has a ingress ffff: .* tc qdisc del dev data ingress"):
        shape(one, LinkState(uplink_bit_s=1_000_000))
    one.call(lambda: one.ip.tc("del", "ingress", index))
    shape(one, LinkState(uplink_bit_s=1_000_000))


def test_large_packets_are_refused(hosts):
    """A token bucket would drop them all."""
    one, _ = hosts
    index = one.index()
    one.call(lambda: one.ip.link("set", index=index, mtu=9000))

    with pytest.raises(InfrastructureError, match="data has an MTU of 9000"):
        shape(one, LinkState(uplink_bit_s=1_000_000))


def test_an_overlays_packets_are_held_by_their_size(hosts):
    """The interface's own MTU decides what passes at once, and who reads it back sees the same."""
    one, _ = hosts
    index = one.index()
    one.call(lambda: one.ip.link("set", index=index, mtu=1450))
    conditions = LinkState(uplink_bit_s=1_000_000, downlink_bit_s=20_000_000)
    shape(one, conditions)

    reader = one.call(LinkReader, one.address)
    up, down = reader.queues()
    reader.close()
    assert (reader.mtu, up.burst_bytes, down.burst_bytes) == (1450, 1550, pytest.approx(2900, abs=2))
    assert deviation(conditions, up, down, netem=False, mtu=1450) == ""
    assert "asked 1600" in deviation(conditions, up, down, netem=False)


def test_netem_is_used_where_the_kernel_has_it_and_nowhere_else(hosts):
    """What it makes is read back; without it nothing of it is asked for, and forcing it says what is missing."""
    one, _ = hosts
    conditions = LinkState(uplink_bit_s=10_000_000, latency_s=0.04, jitter_s=0.005, loss=0.01)
    shaper = one.call(Shaper, one.ip, "data", Features(netem=True))

    if probe().netem:
        one.call(shaper.apply, conditions)
        assert deviation(conditions, *one.reader.queues(), netem=True) == ""
    else:
        with pytest.raises(InfrastructureError, match="this kernel has no netem"):
            one.call(shaper.apply, conditions)
        latency = LinkState(uplink_bit_s=10_000_000, latency_s=0.04)
        assert [kind for kind, _ in disciplines(10_000_000, latency, probe())] == ["tbf"]


def test_links_follow_their_timelines_from_when_training_began(hosts):
    """Before that they are as they begin; what is due is changed when it is asked to, and nothing else is."""
    one, other = hosts
    changing = LinkPlan(uplink_bit_s=8_000_000, changes=(LinkChange(at_s=5.0, uplink_bit_s=1_000_000),
                                                     LinkChange(at_s=1000.0, downlink_bit_s=2_000_000)))  # fmt: skip
    shaping = Shaping(lambda name: Shaper({one.address: one, other.address: other}[name].ip, "data", PLAIN))
    for host, link in ((one, changing), (other, LinkPlan(downlink_bit_s=3_000_000))):
        host.call(shaping.add, host.address, link)
    assert held(one, LinkState(uplink_bit_s=8_000_000)) == ""
    assert shaping.due_s() == math.inf

    shaping.began(time.monotonic() - 6.0)
    one.call(shaping.tick)

    assert held(one, LinkState(uplink_bit_s=1_000_000)) == ""
    assert held(other, LinkState(downlink_bit_s=3_000_000)) == ""
    assert shaping.due_s() == pytest.approx(time.monotonic() + 994.0, abs=1.0)
    one.call(shaping.tick)
    assert held(one, LinkState(uplink_bit_s=1_000_000)) == ""


def test_a_change_that_cannot_be_is_refused_and_forgotten(hosts):
    """The link is as it was, and what is asked for next is done."""
    one, _ = hosts
    shaping = Shaping(lambda _: Shaper(one.ip, "data", PLAIN))
    one.call(lambda: shaping.add("edge-0", LinkPlan(uplink_bit_s=8_000_000)))
    change = LinkChange(uplink_bit_s=4_000_000, downlink_bit_s=10)
    with pytest.raises(InfrastructureError, match="not 10bit"):
        one.call(shaping.inject, Injection(node="edge-0", action="link", change=change))
    assert held(one, LinkState(uplink_bit_s=8_000_000)) == ""

    one.call(shaping.inject, Injection(node="edge-0", action="cut"))
    one.call(shaping.inject, Injection(node="edge-0", action="heal"))
    assert held(one, LinkState(uplink_bit_s=8_000_000)) == ""


def test_a_setting_that_is_changed_behind_its_back_is_found(hosts):
    """By the node's own read-back, once, with what is held and what was asked; and when it is right again."""
    one, _ = hosts
    link = LinkPlan(uplink_bit_s=10_000_000, changes=(LinkChange(at_s=100.0, uplink_bit_s=20_000_000),))
    shaper = shape(one, LinkState(uplink_bit_s=10_000_000))
    meter = LinkMeter("edge-0", EffectiveLink(link), one.reader, "")
    meter.wait_until_held()
    (first,) = meter.read(0.0, None)
    assert (first.mechanism, first.interface, first.uplink_held, first.problem) == ("tc", "data", 10_000_000, "")
    assert (first.uplink_burst, first.downlink_held) == (1600, None)
    assert list(meter.read(50.0, 1.0)) == []

    one.call(shaper.apply, LinkState(uplink_bit_s=1_000_000))
    assert list(meter.read(51.0, 1.0)) == [], "what is found once does not count"
    (found,) = meter.read(52.0, 1.0)
    assert found.problem == "uplink: the kernel holds 1mbit, asked 10mbit"
    assert list(meter.read(53.0, 1.0)) == []

    one.call(shaper.apply, LinkState(uplink_bit_s=10_000_000))
    (right,) = meter.read(54.0, 1.0)
    assert right.problem == ""
    assert list(meter.read(101.5, 1.0)) == [], "a change may come a second late"
    assert list(meter.read(102.5, 1.0)) == []
    (late,) = meter.read(103.0, 1.0)
    assert late.problem == "uplink: the kernel holds 10mbit, asked 20mbit"

    index = one.index()
    one.call(lambda: one.ip.link("del", index=index))
    assert list(meter.read(112.0, 1.0)) == [], "what lasts is told every ten seconds"
    (gone,) = meter.read(113.0, 1.0)
    assert (gone.differed, gone.differences) == (5, (found.problem, gone.problem))
    assert gone.problem == "link: the kernel cannot be asked: the interface data is gone"


@pytest.mark.parametrize("way", ["removed", "led elsewhere"])
def test_a_way_around_the_downlinks_queue_is_found(hosts, way):
    """Queue and ingress are as they were, but packets pass beside them; set anew, all is well again."""
    one, _ = hosts
    conditions = LinkState(downlink_bit_s=10_000_000)
    shape(one, conditions)
    assert held(one, conditions) == ""
    index = one.index()

    one.call(lambda: one.ip.tc("del-filter", index=index, parent=ARRIVING))
    if way == "led elsewhere":
        one.call(lambda: one.ip.link("add", ifname="elsewhere", kind="ifb"))
        (elsewhere,) = one.call(lambda: one.ip.link_lookup(ifname="elsewhere"))
        redirect = {"kind": "mirred", "action": "redirect", "direction": "egress", "ifindex": elsewhere}
        one.call(
            lambda: one.ip.tc(
                "add-filter", "u32", index, parent=ARRIVING, prio=1, protocol=3, target=1, keys=["0x0/0x0+0"],
                action=redirect,
            )
        )  # fmt: skip
    assert held(one, conditions) == "downlink: the kernel holds no limit, asked 10mbit"


def test_an_answer_that_came_too_late_is_not_taken_for_another(hosts):
    """Each question has its number."""
    one, _ = hosts
    get_link, request, nowhere = 18, 1, 9999
    one.reader._socket.send(struct.pack("=IHHIIBxHiII", 32, get_link, request, 12345, 0, 0, 0, nowhere, 0, 0))

    assert one.reader.queues() == (None, None)
    assert len(one.reader.bytes()) == 2


def helper(host, order: dict) -> subprocess.Popen[bytes]:
    """The program that holds a link, told what to hold."""
    command = [sys.executable, "-m", "edgebed.emulation.shaping"]
    process = host.call(lambda: subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
    process.stdin.write(json.dumps(order).encode() + b"\n")
    process.stdin.flush()
    return process


def test_the_helper_sets_a_link_and_ends(hosts):
    """One that never changes, on the interface with an address in the subnet; it stays set."""
    one, _ = hosts
    process = helper(one, {"subnet": "10.77.0.0/24", "netem": False, "link": {"uplink_bit_s": 7_000_000}})

    out, _ = process.communicate(timeout=20)

    assert (json.loads(out), process.returncode) == ({"interface": "data"}, 0)
    assert held(one, LinkState(uplink_bit_s=7_000_000)) == ""


def test_the_helper_of_a_link_that_changes_stays(hosts):
    """It changes the link when it is told that training began, and ends with its standard input."""
    one, _ = hosts
    link = {"uplink_bit_s": 7_000_000, "changes": [{"at_s": 5.0, "downlink_bit_s": 3_000_000}]}
    process = helper(one, {"subnet": "10.77.0.0/24", "netem": False, "link": link})
    assert json.loads(process.stdout.readline()) == {"interface": "data"}
    assert held(one, LinkState(uplink_bit_s=7_000_000)) == ""

    process.stdin.write(json.dumps({"began": time.monotonic() - 6.0}).encode() + b"\n")
    process.stdin.flush()

    meter = LinkMeter(
        "edge-0", EffectiveLink(LinkPlan(uplink_bit_s=7_000_000, downlink_bit_s=3_000_000)), one.reader, ""
    )
    meter.wait_until_held()
    assert process.poll() is None
    out, _ = process.communicate(timeout=20)
    assert (out, process.returncode) == (b"", 0)


def test_the_helper_that_stays_does_what_faults_ask_for_and_says_when_it_is_done(hosts):
    """Of a link that does not change by itself, and had been changed in an earlier life of the node's."""
    one, _ = hosts
    change = {"node": "edge-0", "action": "link", "change": {"uplink_bit_s": 1_000_000}}
    order = {"subnet": "10.77.0.0/24", "netem": False, "link": {"uplink_bit_s": 7_000_000}, "node": "edge-0",
             "stays": True, "injected": [change]}  # fmt: skip
    process = helper(one, order)
    assert json.loads(process.stdout.readline()) == {"interface": "data"}
    assert held(one, LinkState(uplink_bit_s=1_000_000)) == ""

    def ask(**message) -> dict:
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    assert ask(change={"node": "edge-0", "action": "cut"}, number=7) == {"done": 7}
    assert held(one, cut(LinkState())) == ""
    assert ask(change={"node": "edge-0", "action": "heal"}, number=8) == {"done": 8}
    assert held(one, LinkState(uplink_bit_s=1_000_000)) == ""
    assert ask(change=change | {"change": {"downlink_bit_s": 7}}, number=9) == {
        "done": 9, "problem": "tc holds rates from 1000bit to 34359738360bit here, not 7bit",
    }  # fmt: skip
    assert ask(change=change | {"change": None}, number=10) == {"done": 10}
    assert held(one, LinkState(uplink_bit_s=7_000_000)) == ""
    assert ask(change={"node": "edge-1", "action": "cut"}, number=11) == {
        "done": 11, "problem": "edge-1 has no link to the data network",
    }  # fmt: skip
    out, _ = process.communicate(timeout=20)
    assert (out, process.returncode) == (b"", 0)


def test_the_helper_says_what_is_wrong(hosts):
    """No address in the subnet: no traceback, and the exit code of the machine's fault."""
    one, _ = hosts
    process = helper(one, {"subnet": "203.0.113.0/24", "netem": False, "link": {"uplink_bit_s": 7_000_000}})

    out, _ = process.communicate(timeout=20)

    assert json.loads(out) == {"problem": "no network interface here has an address in 203.0.113.0/24"}
    assert process.returncode == 3


def test_without_the_right_the_message_says_which(hosts):
    """An ordinary user in the namespace can read the link, and not set it."""
    one, _ = hosts
    program = (
        "import os\n"
        "from pyroute2 import IPRoute\n"
        "from edgebed.emulation.conditions import LinkState\n"
        "from edgebed.emulation.netlink import LinkReader\n"
        "from edgebed.emulation.tc import Features, Shaper\n"
        "os.setuid(65534)\n"
        f"print(LinkReader('{one.address}').queues()[0])\n"
        "Shaper(IPRoute(), 'data', Features(netem=False)).apply(LinkState(uplink_bit_s=10**6))\n"
    )
    command = [sys.executable, "-c", program]
    done = one.call(lambda: subprocess.run(command, capture_output=True, text=True, check=False))

    assert done.stdout == "None\n"
    assert "no permission to limit the link of data: that needs NET_ADMIN" in done.stderr
