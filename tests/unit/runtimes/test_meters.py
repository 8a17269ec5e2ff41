"""What a node measures of itself: the arithmetic of a window, real processes that starve or are capped, transfers."""

import json
import math
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from node_plans import plan_of_role

from edgebed.core import records
from edgebed.core.errors import InfrastructureError
from edgebed.core.framing import burst_bytes, wire_bytes
from edgebed.core.plan import Injection, LinkChange, LinkPlan, Method, Part, Task
from edgebed.emulation.cgroups import Cgroups
from edgebed.emulation.netlink import BadAnswerError, Queue
from edgebed.journal.verdict.presence import Life, Span
from edgebed.roles.events import Send
from edgebed.runtimes.live.meters import LinkReading, Reading, TransfersMeter, UsageMeter, add_window
from edgebed.runtimes.live.paced_link import HAND_OVER_S
from edgebed.runtimes.live.shell.device import NodeDevice
from edgebed.runtimes.live.shell.lifetime import Lifetime
from edgebed.runtimes.timestamps import Leaving
from edgebed.wire.messages import Join, Model, Push, Stop, Tensor

MBIT = 1_000_000
NOTHING = records.Usage(time_s=0.0, cpu_s=0.0)


def plan_of(name="edge-0", role="worker", **asked):
    """A node."""
    task = Task(model="small", input_shape=(1,), classes=2, layout=(), batch_size=1, gradient_time_s=0.1)
    part = Part(name="none")
    method = Method(name="m", parts={"aggregation": part, "compression": part, "local_work": part})
    return plan_of_role(node=name, role=role, device_class="edge", seed=1, task=task, method=method, **asked)


END = Stop(sender="controller", reason="enough")


def usage_meter(life, reader=None, **asked):
    """A node's own, by its plan."""
    plan = plan_of(**asked)
    return UsageMeter(plan, NodeDevice(plan), life, link=reader)


def transfers_meter(others, life=None, *, delay="", **asked):
    """A node's own, by its plan."""
    return TransfersMeter(plan_of(**asked), life or Lifetime(0, began_s=0.0), others, delay=delay)


def reading(t, cpu_s=0.0, waited_s=0.0, absorbed_s=0.0, throttled_s=None, throttled_periods=0):
    """A look."""
    return Reading(t, cpu_s, waited_s, absorbed_s, throttled_s, throttled_periods)


def window(plan, **after):
    """A second from nothing."""
    before = reading(0.0, throttled_s=None if after.get("throttled_s") is None else 0.0)
    return add_window(NOTHING, plan.cpus, before, reading(1.0, **after))


@pytest.mark.parametrize(
    ("asked", "after", "starved_s"),
    [
        ({}, {"cpu_s": 0.5, "waited_s": 0.5}, 0.5),
        ({"cpus": 1.0}, {"cpu_s": 0.5, "waited_s": 0.5}, 0.5),
        ({"cpus": 0.5}, {"cpu_s": 0.5, "waited_s": 0.3}, 0.0),
        ({"cpus": 0.5}, {"cpu_s": 0.4, "waited_s": 0.6}, 0.1),
        ({"cpus": 0.5}, {"cpu_s": 0.2, "waited_s": 0.6, "throttled_s": 0.5}, 0.1),
        ({"compute_speed": 0.5}, {"cpu_s": 0.4, "waited_s": 0.5, "absorbed_s": 0.4}, 0.1),
        ({}, {"cpu_s": 0.5, "waited_s": 3.0}, 1.0),
        ({}, {"cpu_s": 0.5, "waited_s": None}, None),
    ],
    ids=["uncapped", "capped", "had its cap", "had most of it", "throttled", "paced", "many threads", "no count"],
)
def test_starving_is_waiting_that_a_node_was_entitled_not_to_do(asked, after, starved_s):
    """Not what its own cap or pace explains, and never more than the time that passed."""
    found = window(plan_of(**asked), **after).starved_s

    assert found == (starved_s if starved_s is None else pytest.approx(starved_s))


@pytest.mark.parametrize(("periods", "capped_s"), [(8, 0.0), (9, 1.0), (10, 1.0)])
def test_a_window_is_capped_where_nine_of_ten_periods_were_throttled(periods, capped_s):
    """The node would have computed on and on."""
    usage = window(plan_of(cpus=0.5), cpu_s=0.5, throttled_s=0.5, throttled_periods=periods)

    assert (usage.capped_s, usage.capped_cpu_s) == (capped_s, 0.5 * capped_s)


@given(
    looks=st.lists(st.tuples(*[st.floats(0.001, 5.0)] * 5, st.integers(0, 50)), min_size=2, max_size=20),
    cpus=st.none() | st.floats(0.01, 4.0),
)
def test_usage_only_grows_and_nobody_starves_longer_than_it_ran(looks, cpus):
    """Whatever the kernel counts."""
    plan, usage, before = plan_of(cpus=cpus), NOTHING, reading(0.0, throttled_s=0.0)
    for look in looks:
        after = Reading(*(old + new for old, new in zip(before, look, strict=True)))
        grown = add_window(usage, plan.cpus, before, after)
        for name in ("time_s", "cpu_s", "starved_s", "throttled_s", "capped_s", "capped_cpu_s"):
            assert getattr(grown, name) >= (getattr(usage, name) or 0.0)
        usage, before = grown, after

    assert usage.starved_s <= usage.time_s + 1e-4


def test_usage_comes_whenever_a_tenth_was_added_and_at_the_end():
    """Before training there is nothing to say; the first look is where it counts from; ten seconds are the most."""
    life = Lifetime(0)
    meter = usage_meter(life)
    said = {t: list(meter.read(float(t), None if t < 3 else 2.5)) for t in range(200)}
    life.stop = END
    said[200] = list(meter.read(200.0, 2.5))
    times_s = [found[0].time_s for found in said.values() if found]

    assert times_s[:12] == [*map(float, range(1, 11)), 11.0, 12.0]
    assert all(after - before <= max(1.0, 0.1 * before + 0.5) for before, after in pairwise(times_s))
    assert times_s[-1] == 197.0
    assert len(times_s) < 50
    assert said[200][0].memory_bytes > 1_000_000


@given(life_s=st.integers(3, 400))
def test_of_a_node_that_is_killed_all_is_told_but_what_is_not_owed(life_s):
    """Whenever it was: the verdict asks for no more than the node could tell."""
    meter = usage_meter(Lifetime(0))
    told = [each.time_s for t in range(life_s) for each in meter.read(float(t), 0.0)]

    assert told[-1] >= Life(Span(0.0, float(life_s)), told=False).owed.length_s


@dataclass
class Interface:
    """Counters of an interface that receives a megabyte a second, and the queue behind it, by a clock of its own."""

    t: float = 0.0
    error: Exception | None = None
    late_s: float = 0.0
    mtu: int = 1500
    drops_a_second: int = 0

    def bytes(self):
        """Received and sent; whoever asked is told late."""
        if self.error:
            raise self.error
        received = int(self.t * 1_000_000)
        self.t += self.late_s
        return received, 0

    def queues(self):
        """Of what has arrived 10 packets were dropped, and 5000 bytes wait."""
        drops = 10 + round(self.drops_a_second * self.t)
        return None, Queue(rate_bit_s=8 * MBIT, packets=90, drops=drops, waiting_bytes=5000)


def usage_of(interface, seconds, late=()):
    """What a meter says of an interface at the end of its looks."""
    life = Lifetime(0)
    life.now = lambda: interface.t
    meter = usage_meter(life, interface, link=LinkPlan(downlink_bit_s=8 * MBIT))
    for second in range(seconds):
        interface.t = float(second)
        interface.late_s = 0.9 if second in late else 0.0
        life.stop = END if second == seconds - 1 else None
        found = list(meter.read(interface.t, 0.0))
    return found[-1]


def test_usage_has_the_interfaces_own_bytes_and_the_queues_packets():
    """What arrived at the interface, whatever becomes of it then."""
    usage = usage_of(Interface(), 21)

    assert (usage.downlink_bytes, usage.downlink_packets, usage.downlink_drops) == (20_000_000, 0, 0)
    assert (usage.downlink_busiest, usage.downlink_busiest_bit_s) == (1.0, 8 * MBIT)
    assert (usage.uplink_bytes, usage.uplink_packets, usage.uplink_busiest) == (0, None, None)


def test_looks_that_come_late_make_no_link_busier():
    """The counters are of some moment until the clock was read again."""
    assert usage_of(Interface(), 30, late=(4, 10, 16, 22)).downlink_busiest <= 1.0


def test_small_packets_that_are_dropped_make_no_link_less_than_idle():
    """Each counts as a full one; the record can be read, and with it all that the node reports beside it."""
    usage = usage_of(Interface(drops_a_second=2_000), 21)

    assert usage.downlink_busiest == 0.0
    assert msgspec.json.decode(msgspec.json.encode(usage), type=records.Usage) == usage


@pytest.mark.parametrize("error", [OSError(19, "No such device"), BadAnswerError("3 bytes")])
def test_a_kernel_that_does_not_answer_leaves_the_link_unmeasured(error):
    """And the node goes on."""
    assert usage_of(Interface(error=error), 5).downlink_bytes is None


def test_what_waits_or_was_dropped_before_the_node_has_not_passed():
    """An interface counts what arrives; the queue is behind it."""
    queue = Queue(rate_bit_s=8 * MBIT, drops=2, waiting_bytes=1000)

    assert LinkReading(0.0, 0.0, 100_000, 7, None, queue).passed == (7, 100_000 - 1000 - 2 * 1514)
    assert LinkReading(0.0, 0.0, 100_000, 7, None, queue, 1450).passed == (7, 100_000 - 1000 - 2 * 1464)


HOG = textwrap.dedent(
    """
    import json, sys, time
    from types import SimpleNamespace
    import msgspec
    from edgebed.emulation.cgroups import enter
    from edgebed.runtimes.live.meters import UsageMeter
    from edgebed.runtimes.live.shell.device import NodeDevice
    from edgebed.runtimes.live.shell.lifetime import Lifetime
    from edgebed.core.plan import LinkPlan
    from edgebed.wire.messages import Stop
    enter(sys.argv[2:])
    plan = SimpleNamespace(node="hog", cpus=json.loads(sys.argv[1]), link=LinkPlan())
    life = Lifetime(0)
    meter = UsageMeter(plan, NodeDevice(plan), life, own_cgroup=len(sys.argv) > 2)
    sys.stdin.readline()
    began = until = time.monotonic()
    list(meter.read(began, 0.0))
    while until < began + 4.0:
        until += 1.0
        while time.monotonic() < until:
            pass
        if until >= began + 4.0:
            life.stop = Stop(sender="controller", reason="enough")
        found = list(meter.read(time.monotonic(), 0.0))
    print(msgspec.json.encode(found[-1]).decode())
    """
)


def hogs(cpus, folders):
    """What that many processes that compute for four seconds say of themselves, begun together."""
    started = []
    for each in folders:
        command = [sys.executable, "-c", HOG, json.dumps(cpus), *each]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    try:
        for process in started:
            process.stdin.write("\n")
            process.stdin.flush()
        return [json.loads(process.communicate(timeout=60)[0]) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()


@pytest.fixture
def cgroups():
    """Where this kernel and these rights allow."""
    try:
        made = Cgroups()
    except InfrastructureError as error:
        pytest.skip(str(error))
    yield made
    made.remove()


def put_first(folders):
    """Give cgroups, and those that they are in, the greatest weight, so that nothing else on this machine matters."""
    for folder in map(Path, folders):
        for each in (folder, folder.parent):
            for name, most in (("cpu.shares", "262144"), ("cpu.weight", "10000")):
                if (each / name).exists():
                    (each / name).write_text(most)


@pytest.mark.slow
def test_a_capped_hog_is_throttled_and_starves_far_less_than_that(cgroups):
    """A quota of a fifth of a core: it has that, and what it waits for is its cap."""
    folders = cgroups.make(plan_of(cpus=0.2))
    put_first(folders)
    (usage,) = hogs(0.2, [folders])

    assert usage["cpus_held"] == 0.2
    assert usage["throttled_s"] > 0.6 * usage["time_s"]
    assert usage["starved_s"] < 0.05 * usage["time_s"]
    assert usage["capped_s"] > 0.0
    assert usage["capped_cpu_s"] / usage["capped_s"] == pytest.approx(0.2, rel=0.2)
    assert usage["memory_bytes"] > 0


@pytest.mark.slow
def test_hogs_that_were_promised_more_cores_than_there_are_starve():
    """Twice as many as cores, without a cgroup: on the mean they wait at least for half of the time."""
    count = 2 * len(os.sched_getaffinity(0))
    found = hogs(1.0, [()] * count)

    assert sum(usage["starved_s"] for usage in found) / sum(usage["time_s"] for usage in found) > 0.4
    assert not any("throttled_s" in usage for usage in found)


# --- transfers --------------------------------------------------------------------------------------------------------

UPDATE = (Tensor("update", "float32", (10,), "dense", 10),)
TEN_MBIT = LinkPlan(uplink_bit_s=10 * MBIT, downlink_bit_s=10 * MBIT, latency_s=0.02)


def push(sender="edge-0", sent_s=1.0):
    """A push that left then."""
    return Push(sender=sender, incarnation=1, step=0, base=0, loss=0.0, sent_s=sent_s, tensors=UPDATE)


def test_the_server_tells_of_each_worker_what_its_pushes_took():
    """Against the slower of the worker's uplink and its own downlink; other messages do not count."""
    others = {"edge-0": TEN_MBIT, "edge-1": LinkPlan()}
    meter = transfers_meter(others, delay="line", name="server", role="server")
    meter.received(1.5, push(), 100_000)
    meter.received(2.5, push(sent_s=2.0), 100_000)
    meter.received(3.0, push("edge-1", sent_s=2.9), 100_000)
    meter.received(3.0, Join(sender="edge-0", incarnation=1), 100)
    meter.received(3.0, push(sent_s=-1.0), 100)
    (record,) = meter.read(10.0, 0.0)

    assert (record.name, record.direction, record.messages) == ("edge-0", "up", 2)
    assert record.bytes == 2 * (100_000 + 70 * 66)
    assert record.time_s == pytest.approx(1.0)
    assert record.asked_s == pytest.approx((record.bytes - 2 * 1600) * 8 / 10e6)
    assert record.latency_s == 0.0


@pytest.mark.parametrize(("delay", "latency_s"), [("line", 0.02), ("netem", 0.03)])
def test_a_worker_tells_what_models_took_with_the_latency_that_lies_behind_the_first_byte(delay, latency_s):
    """A delay line holds back before a message leaves; the kernel's netem while it is on its way, at both ends."""
    meter = transfers_meter({"server": LinkPlan(latency_s=0.01)}, delay=delay, link=TEN_MBIT)
    model = Model(sender="server", version=1, final=False, sent_s=5.0, tensors=UPDATE)
    meter.received(5.2, model, 1000)
    (record,) = meter.read(10.0, 0.0)

    assert (record.name, record.direction) == ("edge-0", "down")
    assert record.latency_s == pytest.approx(latency_s)
    assert record.asked_s == pytest.approx(latency_s)  # the rest fits into the burst


@pytest.mark.parametrize(("delay", "far_s"), [("line", 0.0), ("netem", 0.01)])
def test_latency_is_measured_by_the_message_that_was_held_back_least(delay, far_s):
    """Without what its bytes take, and the other end's latency where the kernel adds both; handling is in it."""
    meter = transfers_meter({"server": LinkPlan(latency_s=0.01)}, delay=delay, link=TEN_MBIT)
    for took_s in (0.05, 0.0213 + far_s, 0.045):
        meter.received(5.0 + took_s, Model(sender="server", version=1, final=False, sent_s=5.0, tensors=UPDATE), 1000)
    (record,) = meter.read(10.0, 0.0)

    assert record.delay_s == pytest.approx(0.0213)


def test_a_message_whose_bytes_take_long_tells_nothing_of_latency():
    """2 MB at 10 mbit take 1.7 s: a per cent of that is the whole latency."""
    meter = transfers_meter({"server": LinkPlan()}, delay="line", link=TEN_MBIT)
    meter.received(7.0, Model(sender="server", version=1, final=False, sent_s=5.0, tensors=UPDATE), 2_000_000)

    assert [record.delay_s for record in meter.read(10.0, 0.0)] == [None]


def test_what_a_delay_line_holds_back_before_a_message_leaves_its_sender_tells():
    """Whoever receives it cannot see that; the time in which its bytes leave is none of it."""
    meter = transfers_meter({"server": LinkPlan()}, delay="line", link=TEN_MBIT)
    effect = Send("server", push())
    for asked_s, left_s in ((1.0, 1.13), (2.0, 2.1207)):
        meter.left(left_s, Leaving(effect, asked_s + 0.02, asked_s, asked_s + 0.12))
    (record,) = meter.read(10.0, 0.0)

    assert (record.name, record.direction, record.messages) == ("edge-0", "up", 0)
    assert record.delay_s == pytest.approx(0.0207)


def test_a_burst_that_is_too_large_shows_in_every_small_push_that_it_lets_through():
    """12.7 kB at 10 mbit take 9.3 ms; within a bucket of 64 kB they take next to none, whatever other pushes take."""
    meter = transfers_meter({"edge-0": TEN_MBIT}, delay="line", name="server", role="server")
    for at_s, took_s in ((1.0, 0.001), (2.0, 0.0083), (3.0, 0.0085), (4.0, 0.1)):
        meter.received(at_s + took_s, push(sent_s=at_s), 12_700)
    (record,) = meter.read(10.0, 0.0)

    assert record.asked_s / record.messages == pytest.approx(0.0094, rel=0.01)
    assert (record.messages, record.early) == (4, 2)


@pytest.mark.parametrize(("jitter_s", "early"), [(0.0, 1), (0.02, 0)])
def test_jitter_is_no_reason_to_call_a_message_early(jitter_s, early):
    """It was asked for."""
    link = LinkPlan(latency_s=0.04, jitter_s=jitter_s)
    meter = transfers_meter({"server": LinkPlan()}, delay="line", link=link)
    model = Model(sender="server", version=1, final=False, sent_s=5.0, tensors=UPDATE)
    meter.received(5.025, model, 1000)

    assert [record.early for record in meter.read(10.0, 0.0)] == [early]


@given(sent_s=st.floats(), changes=st.booleans())
@example(sent_s=math.nan, changes=True)
@example(sent_s=math.inf, changes=False)
def test_a_message_may_tell_any_time_of_sending(sent_s, changes):
    """Whoever it comes from; an impossible one is counted and not measured, and none keeps the node."""
    link = LinkPlan(uplink_bit_s=MBIT)
    if changes:
        link = LinkPlan(
            changes=(LinkChange(at_s=0.0, uplink_bit_s=MBIT), LinkChange(at_s=1.0, uplink_bit_s=8)), period_s=2.0
        )
    meter = transfers_meter({"edge-0": link}, delay="", name="server", role="server")
    meter.received(100.0, push(sent_s=sent_s), 100_000)

    found = [(record.messages, record.impossible) for record in meter.read(101.0, 0.0)]
    is_possible = sent_s <= 100.0 + HAND_OVER_S
    assert found == [(int(is_possible), int(not is_possible))] * (0.0 <= sent_s < math.inf)


class Uncertain:
    """A clock that may be wrong by 40 ms."""

    def now_ns(self):
        """Its time."""
        return 100 * 10**9

    def error_s(self):
        """Its error."""
        return 0.04


def test_times_of_two_clocks_are_judged_beyond_the_errors_of_both():
    """Less by 59 ms than a message needs may be the clocks', by 61 ms not; that it came before it left cannot be."""
    life = Lifetime(0, Uncertain(), {"edge-0": 0.02}, began_s=0.0)
    meter = transfers_meter({"edge-0": LinkPlan(uplink_bit_s=4 * MBIT)}, life, name="server", role="server")
    least_s = (wire_bytes(100_000) - burst_bytes(4 * MBIT)) * 8 / (4 * MBIT)
    for time_s in (0.9 * least_s - 0.059, 0.9 * least_s - 0.061, -0.059, -0.061):
        meter.received(50.0, push(sent_s=50.0 - time_s), 100_000)
    (record,) = meter.read(51.0, 0.0)

    assert (record.messages, record.early, record.impossible) == (3, 2, 1)
    assert record.error_s == pytest.approx(3 * 0.06)
    assert record.time_s == pytest.approx(1.8 * least_s - 0.059 - 0.061 - 0.059)


def test_transfers_come_every_ten_seconds_and_at_the_end_if_there_are_new_ones():
    """Cumulative, so that what is lost on the way is not missed."""
    life = Lifetime(0, began_s=0.0)
    meter = transfers_meter({"edge-0": TEN_MBIT}, life, name="server", role="server")
    meter.received(1.5, push(), 100)
    counts = [[record.messages for record in meter.read(float(t), 0.0)] for t in (1, 2, 12)]
    meter.received(12.5, push(), 100)
    life.stop = END
    counts.append([record.messages for record in meter.read(13.0, 0.0)])

    assert counts == [[1], [], [], [2]]


@pytest.mark.parametrize(
    ("injections", "sent_s", "is_judged"),
    [
        ([(5.0, "cut")], 4.0, True),
        ([(1.5, "cut"), (1.8, "heal")], 1.0, False),
        ([(1.5, "cut"), (1.8, "heal")], 6.0, False),
        ([(1.5, "cut"), (1.8, "heal")], 7.0, True),
        ([(1.5, "link")], 2.0, False),
        ([(1.5, "link")], 3.0, True),
        ([(-math.inf, "link")], 1.0, True),
    ],
    ids=["before", "cut", "just healed", "long healed", "just changed", "long changed", "of an earlier life"],
)
@pytest.mark.parametrize("whose", ["edge-0", "server"])
def test_a_message_that_met_a_fault_of_a_link_is_not_judged(injections, sent_s, is_judged, whose):
    """What it was to take is not known; whichever end's link it was."""
    meter = transfers_meter({"edge-0": TEN_MBIT}, delay="line", name="server", role="server")
    for time_s, action in injections:
        change = LinkChange(uplink_bit_s=MBIT, downlink_bit_s=MBIT) if action == "link" else None
        meter.inject(time_s, Injection(node=whose, action=action, change=change))
    meter.received(sent_s + 0.9, push(sent_s=sent_s), 100_000)

    assert len(list(meter.read(20.0, 0.0))) == is_judged
