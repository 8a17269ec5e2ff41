"""How long messages took, against links as asked, and what else took of that: caps, computing, others' messages."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from node_plans import plan_of_role

from edgebed.core.framing import burst_bytes, wire_bytes
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkChange, LinkPlan
from edgebed.emulation.tcp import TcpCounters
from edgebed.roles.events import Send
from edgebed.runtimes.live.meters import TransfersMeter
from edgebed.runtimes.live.paced_link import HAND_OVER_S
from edgebed.runtimes.live.shell.connection_counts import ConnectionCounts, Sent
from edgebed.runtimes.live.shell.held_back import LOOKS_MAX, HeldBack
from edgebed.runtimes.live.shell.lifetime import Lifetime
from edgebed.runtimes.timestamps import Leaving
from edgebed.wire.messages import Join, Model, Push, Stop, Tensor

MBIT = 1_000_000


def plan_of(name="edge-0", role="worker", **asked):
    """A node."""
    return plan_of_role(node=name, role=role, device_class="edge", **asked)


END = Stop(sender="controller", reason="enough")


def transfers_meter(others, life=None, *, delay="", held_back=None, connections=None, **asked):
    """A node's own, by its plan."""
    return TransfersMeter(
        plan_of(**asked),
        life or Lifetime(0, began_s=0.0),
        others,
        delay=delay,
        held_back=held_back,
        connections=connections,
    )


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


def test_a_message_that_should_take_no_time_is_not_early():
    """Two shells tell its ends apart by some hundredths of a millisecond."""
    meter = transfers_meter({"edge-0": LinkPlan(uplink_bit_s=10 * MBIT)}, name="server", role="server")
    meter.received(1.0 - 0.00004, push(sent_s=1.0), 1000)

    assert [record.early for record in meter.read(10.0, 0.0)] == [0]


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
    """What it was to take is not known, whichever end's link it was; it is counted."""
    meter = transfers_meter({"edge-0": TEN_MBIT}, delay="line", name="server", role="server")
    for time_s, action in injections:
        change = LinkChange(uplink_bit_s=MBIT, downlink_bit_s=MBIT) if action == "link" else None
        meter.inject(time_s, Injection(node=whose, action=action, change=change))
    meter.received(sent_s + 0.9, push(sent_s=sent_s), 100_000)

    (record,) = meter.read(20.0, 0.0)
    assert (record.messages, record.left_out) == (is_judged, not is_judged)


# --- what else took of messages' time ---------------------------------------------------------------------------------


class Cap:
    """A capped cgroup's file in `folder`, and CPU time, that tests set."""

    def __init__(self, folder, cpus=0.05):
        self.file = folder / "cpu.stat"
        self.cpu_s = self.read_s = 0.0
        self.held_back = HeldBack({"": folder}, lambda: cpus, lambda: self.read_s, lambda: self.cpu_s)
        self.now(0.0)

    def now(self, throttled_s, cpu_s=0.0):
        """So far it was held back for so long, and has computed for so long."""
        self.file.write_text(f"throttled_usec {round(throttled_s * 1e6)}\n")
        self.cpu_s = cpu_s


def test_what_a_cap_took_of_a_stretch_of_time_is_known_between_two_looks(tmp_path):
    """At most: what lies between two looks may be of any moment; and never longer than the stretch itself."""
    cap = Cap(tmp_path)
    for t, throttled_s, cpu_s in ((1.0, 0.0, 0.0), (2.0, 0.3, 0.1), (3.0, 0.3, 0.2), (4.0, 1.2, 0.3)):
        cap.now(throttled_s, cpu_s)
        cap.held_back.look(t)
    within = cap.held_back.within

    assert within(1.0, 2.0) == pytest.approx((0.3, 0.1))
    assert within(2.0, 3.0) == pytest.approx((0.0, 0.1))
    assert within(1.5, 3.5) == pytest.approx((1.2, 0.3))
    assert within(1.95, 2.0) == pytest.approx((0.05, 0.0))
    assert within(0.0, 9.0) == pytest.approx((1.2, 0.3))
    assert within(2.0, 2.0) == (0.0, 0.0)


def test_a_node_that_is_held_back_while_it_looks_was_held_back_after_the_time_it_looked_for(tmp_path):
    """It asked for the time, then its cap held it back, then it read how long: none of that was before."""
    cap = Cap(tmp_path, cpus=0.02)
    cap.held_back.look(1.0)
    cap.now(0.098)
    cap.read_s = 1.1
    cap.held_back.look(1.002)
    cap.held_back.look(1.1)

    assert cap.held_back.within(1.003, 1.1) == pytest.approx((0.097, 0.0))


def test_a_look_at_what_has_begun_before_leaves_what_came_before_that_aside(tmp_path):
    """A second was spent in the cap's hands before, and 0.08 s since: the look that was due is made up for."""
    cap = Cap(tmp_path)
    cap.held_back.look(0.0)
    cap.now(1.08, 0.01)
    cap.held_back.look(2.0, since_s=1.92)

    assert cap.held_back.within(1.92, 2.0) == pytest.approx((0.08, 0.0))
    assert cap.held_back.within(0.0, 1.92)[0] == pytest.approx(1.0)


def test_a_cap_that_holds_a_node_back_while_it_hands_a_message_over_explains_so_much(tmp_path):
    """Between the time that the message bears and its way to the kernel, as where a cap gives 2 ms at a time."""
    cap = Cap(tmp_path, cpus=0.02)
    meter = transfers_meter({"server": LinkPlan()}, link=TEN_MBIT, held_back=cap.held_back)
    cap.now(0.5)
    meter.read(0.9, 0.0)
    cap.held_back.look(0.9)
    cap.now(0.598)
    meter.sent(1.1, (1.0, 1.0), "server", 12_700, paced=False)
    meter.received(1.3, Model(sender="server", version=1, final=False, sent_s=1.2, tensors=UPDATE), 12_700)
    up = next(line for line in meter.read(10.0, 0.0) if line.direction == "up")

    assert up.throttled_s == pytest.approx(0.098)


@given(
    steps=st.lists(st.tuples(*[st.floats(0.0, 2.0)] * 3), min_size=1, max_size=30),
    since_s=st.floats(0.0, 20.0),
    took_s=st.floats(0.0, 20.0),
)
def test_no_stretch_of_time_is_explained_by_more_than_passed(tmp_path_factory, steps, since_s, took_s):
    """Cap and computing together, whatever the kernel counts on several cores."""
    cap = Cap(tmp_path_factory.mktemp("cgroup"))
    now = throttled_s = cpu_s = 0.0
    for gap_s, throttled, cpu in steps:
        now, throttled_s, cpu_s = now + gap_s, throttled_s + throttled, cpu_s + cpu
        cap.now(throttled_s, cpu_s)
        cap.held_back.look(now)
    found = cap.held_back.within(since_s, since_s + took_s)

    assert min(found) >= 0.0
    assert sum(found) <= took_s + 1e-6


def test_a_server_that_runs_for_days_remembers_its_last_looks(tmp_path):
    """Not all of them."""
    held_back = HeldBack({}, lambda: None, lambda: 0.0, lambda: 0.0)
    for number in range(30_000):
        held_back.look(number / 1000)

    assert len(held_back.looks) <= LOOKS_MAX
    assert held_back.within(29.0, 30.0) == (0.0, 0.0)


def test_both_ends_tell_what_their_caps_took_of_a_message(tmp_path):
    """A worker pushes, is held back for 90 ms, and gets its model: its sender's line, and its receiver's."""
    cap = Cap(tmp_path)
    meter = transfers_meter({"server": LinkPlan()}, link=TEN_MBIT, held_back=cap.held_back)
    meter.sent(1.0, (1.0, 1.0), "server", 12_700, paced=False)
    cap.now(0.09, 0.004)
    meter.received(1.25, Model(sender="server", version=1, final=False, sent_s=1.2, tensors=UPDATE), 12_700)
    down, up = meter.read(10.0, 0.0)

    assert (up.direction, up.messages, up.throttled_s) == ("up", 0, pytest.approx(0.09))
    assert (down.direction, down.messages, down.throttled_s) == ("down", 1, pytest.approx(0.05))
    assert down.busy_s == 0.0


def test_what_a_cap_took_long_after_a_message_left_explains_nothing_of_it(tmp_path):
    """Handing over 5 ms of computing at a twentieth of a core takes two periods, not the round that follows."""
    cap = Cap(tmp_path)
    meter = transfers_meter({"server": LinkPlan()}, link=TEN_MBIT, held_back=cap.held_back)
    meter.sent(1.0, (1.0, 1.0), "server", 12_700, paced=False)
    cap.now(5.0)
    meter.received(9.05, Model(sender="server", version=1, final=False, sent_s=9.0, tensors=UPDATE), 12_700)
    (up,) = [record for record in meter.read(10.0, 0.0) if record.direction == "up"]

    assert up.throttled_s == pytest.approx(0.2)


def test_a_server_tells_how_long_it_computed_while_a_push_waited():
    """That is its own time, and what it waited for a core itself is not."""
    held_back = HeldBack({}, lambda: None, lambda: 0.0, iter((0.0, 0.03, 0.5)).__next__)
    meter = transfers_meter({"edge-0": TEN_MBIT}, name="server", role="server", held_back=held_back)
    held_back.look(0.9)
    meter.received(1.5, push(), 12_700)
    (record,) = meter.read(10.0, 0.0)

    assert (record.busy_s, record.throttled_s) == (pytest.approx(0.03), 0.0)


def test_the_server_tells_what_pushes_and_models_took_from_each_other_on_its_link():
    """Two pushes at once, and two models at once; acknowledgements wait behind what goes their way."""
    link = LinkPlan(uplink_bit_s=MBIT, downlink_bit_s=MBIT)
    others = {"edge-0": TEN_MBIT, "edge-1": TEN_MBIT}
    meter = transfers_meter(others, name="server", role="server", link=link)
    for name, now in (("edge-0", 1.2), ("edge-1", 1.3)):
        meter.received(now, push(name), 12_700)
    alone_s = (wire_bytes(12_700) - burst_bytes(MBIT)) * 8 / MBIT
    first = {(each.name, each.direction): each.beside_s for each in meter.read(2.0, 0.0)}
    for name in others:
        meter.sent(2.0, (2.0, 2.0), name, 12_700, paced=False)
    for name, now in (("edge-0", 3.2), ("edge-1", 3.3)):
        meter.received(now, push(name, sent_s=3.0), 12_700)
    second = {(each.name, each.direction): each.beside_s for each in meter.read(20.0, 0.0)}

    assert first == {(name, "up"): pytest.approx(alone_s) for name in others}
    assert second["edge-0", "down"] == pytest.approx(2 * alone_s)
    assert second["edge-1", "down"] == pytest.approx(alone_s * 3)
    assert second["edge-0", "up"] == pytest.approx(2 * alone_s)


def test_what_is_not_answered_by_the_end_is_allowed_for_what_came_its_acknowledgements_way():
    """The last model for each worker, once."""
    life = Lifetime(0, began_s=0.0)
    link = LinkPlan(uplink_bit_s=MBIT, downlink_bit_s=MBIT)
    meter = transfers_meter({"edge-0": TEN_MBIT, "edge-1": TEN_MBIT}, life, name="server", role="server", link=link)
    meter.sent(2.0, (2.0, 2.0), "edge-0", 12_700, paced=False)
    meter.received(3.2, push("edge-1", sent_s=3.0), 12_700)
    alone_s = (wire_bytes(12_700) - burst_bytes(MBIT)) * 8 / MBIT

    told = [len(list(meter.read(10.0, 0.0)))]
    life.stop = END
    told += [len(list(meter.read(now, 0.0))) for now in (20.0, 21.0)]

    assert told == [1, 1, 0]
    assert meter.totals["edge-0", "down", ""].beside_s == pytest.approx(alone_s)


class Kernel:
    """Connections to these nodes, of which the kernel says how long something was not acknowledged."""

    def __init__(self):
        self.sent = {}
        self.came_bytes = 0

    def look(self):
        """Nothing is to be read."""


def test_the_sender_tells_how_long_its_kernel_waited_for_the_other_one():
    """Whatever was given to TCP, against what that takes as asked; what ZeroMQ itself says meanwhile does not count."""
    kernel = Kernel()
    meter = transfers_meter({"server": LinkPlan()}, link=TEN_MBIT, connections=kernel)
    list(meter.read(0.0, 0.0))
    told = ((True, 0.02, True), (False, 0.05, True), (False, 0.06, False), (False, 5.0, True), (True, 5.04, False))
    for now, (is_sent, so_far_s, is_waiting) in enumerate(told, start=1):
        if is_sent:
            meter.sent(now - 0.1, (now - 0.1, now - 0.1), "server", 12_700, paced=False)
        kernel.sent["server"] = Sent(so_far_s, 0, is_waiting)
        found = list(meter.read(now + 9.0 * (now == len(told)), 0.0))
    (record,) = found

    assert (record.name, record.direction, record.messages) == ("edge-0", "up", 0)
    assert (record.unacknowledged, record.unacknowledged_s) == (2, pytest.approx(0.06 + 0.04))
    assert record.unacknowledged_asked_s == pytest.approx(2 * wire_bytes(12_700) * 8 / 10e6, rel=1e-4)


def test_packets_that_were_sent_again_though_they_had_come_take_their_time_of_the_link_as_asked():
    """Three at first; the receiver tells of them when everything is acknowledged already."""
    kernel = Kernel()
    meter = transfers_meter({"server": LinkPlan()}, link=TEN_MBIT, connections=kernel)
    list(meter.read(0.0, 0.0))
    meter.sent(0.5, (0.5, 0.5), "server", 12_700, paced=False)
    for now, repeated in ((1.0, 0), (2.0, 3)):
        kernel.sent["server"] = Sent(0.02, repeated, is_waiting=False)
        found = list(meter.read(now + 9.0 * (now == 2.0), 0.0))
    (record,) = found

    assert record.unacknowledged_s == pytest.approx(0.02)
    assert record.repeated_s == pytest.approx(3 * 1514 * 8 / 10e6, abs=1e-6)


def test_what_was_not_acknowledged_around_a_fault_of_a_link_is_left_out():
    """What it was to take is not known."""
    kernel = Kernel()
    meter = transfers_meter({"server": LinkPlan()}, link=TEN_MBIT, connections=kernel)
    meter.inject(0.5, Injection(node="edge-0", action="cut"))
    meter.inject(3.5, Injection(node="edge-0", action="heal"))
    for now in (1.0, 2.0, 3.0, 4.0):
        meter.sent(now - 0.1, (now - 0.1, now - 0.1), "server", 12_700, paced=False)
        kernel.sent["server"] = Sent(now, 1, is_waiting=True)
        assert not list(meter.read(now, 0.0))


def test_what_met_a_fault_is_left_out_until_it_is_acknowledged():
    """It may take long, and what is sent beside it waits for it."""
    kernel = Kernel()
    meter = transfers_meter({"server": LinkPlan()}, link=TEN_MBIT, connections=kernel)
    meter.inject(0.5, Injection(node="edge-0", action="link", change=LinkChange(uplink_bit_s=1000)))
    found = []
    for now, so_far_s, is_waiting in ((1.0, 0.9, True), (7.0, 6.9, True), (8.0, 7.5, False), (9.0, 7.52, False)):
        meter.sent(now - 0.1, (now - 0.1, now - 0.1), "server", 12_700, paced=False)
        kernel.sent["server"] = Sent(so_far_s, 0, is_waiting)
        found += meter.read(now, 0.0)
    found += meter.read(20.0, 0.0)

    assert (found[-1].unacknowledged, found[-1].unacknowledged_s) == (1, pytest.approx(0.02))


def test_connections_count_on_when_one_takes_the_place_of_another(monkeypatch):
    """What was seen of the one that ended stays; of the other all counts."""
    told = {7: TcpCounters(1, 0.5, 1000, 3, is_waiting=False)}
    monkeypatch.setattr("edgebed.runtimes.live.shell.connection_counts.counters", told.get)
    counts = ConnectionCounts(lambda: {"server": 7})
    counts.look()
    told[7] = TcpCounters(1, 0.7, 1500, 4, is_waiting=False, congestion_control="cubic")
    counts.look()
    told[7] = TcpCounters(2, 0.1, 300, 1, is_waiting=True, congestion_control="bbr")  # to be chosen in a moment
    counts.look()
    told.clear()
    counts.look()

    assert counts.sent == {"server": (pytest.approx(0.8), 5, True)}
    assert counts.came_bytes == 1800
    assert counts.congestion_controls == {"cubic"}
