"""The laws of a link: never more than it was asked to carry, never slower than that makes it, first come, first served.

Sizes are payload; what they are on the wire, and with it what they cost, is counted here by the same framing.
"""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core.framing import ACK_BYTES_A_SEGMENT, burst_bytes, num_segments, wire_bytes
from edgebed.core.plan import LinkChange, LinkPlan, Method, NodePlan, Part, Task, WorkerPlan
from edgebed.emulation.conditions import LinkSchedule
from edgebed.emulation.link_model import LinkClock, LinkModel, TokenBucket, link_model_of

MBIT = 1_000_000
PUSH_BYTES = 12_700
MODEL_BYTES = 847_000

rates = st.integers(100_000, 100 * MBIT)
sizes = st.integers(1, 2 * MODEL_BYTES)
sends = st.lists(st.tuples(st.floats(0, 5), sizes), min_size=1, max_size=12).map(sorted)
changes = st.lists(st.tuples(st.floats(0.01, 5), rates), max_size=6).map(
    lambda pairs: tuple(LinkChange(at_s=at, uplink_bit_s=rate, downlink_bit_s=rate) for at, rate in sorted(pairs))
)


@st.composite
def links(draw: st.DrawFn) -> LinkPlan:
    """Limited in both directions, with changes that happen once or again and again."""
    changing = draw(changes)
    period_s = draw(st.sampled_from([None, 6.0])) if changing else None
    return LinkPlan(
        uplink_bit_s=draw(rates), downlink_bit_s=draw(rates), changes=changing, period_s=period_s,
        offset_s=draw(st.floats(0, 5.9)) if period_s else 0.0,
    )  # fmt: skip


def plan_of(link: LinkPlan, node: str = "edge-0", seed: int = 1) -> NodePlan:
    """A node with that link."""
    task = Task(model="-", input_shape=(1,), classes=2, layout=(), batch_size=1, gradient_time_s=0.01)
    part = Part(name="-")
    method = Method(name="-", parts={"aggregation": part, "compression": part, "local_work": part})
    return WorkerPlan(node=node, device_class="edge", seed=seed, task=task, method=method, link=link)


def passage(link: LinkPlan, began_s: float = 0.0) -> LinkModel:
    """All of that link held by the model, from the beginning of training on."""
    made = link_model_of(plan_of(link), "model", "line")
    assert made is not None
    made.began(began_s)
    return made


def limited(up_mbit: float | None = None, down_mbit: float | None = None, **fields) -> LinkModel:
    """A passage with these rates."""
    rates = [None if mbit is None else round(mbit * MBIT) for mbit in (up_mbit, down_mbit)]
    return passage(LinkPlan(uplink_bit_s=rates[0], downlink_bit_s=rates[1], **fields))


def capacity_bytes(link: LinkPlan, since_s: float, until_s: float) -> float:
    """Bytes that the uplink can carry in a time: its rate, piece by piece."""
    schedule, total = LinkSchedule(link), 0.0
    while since_s < until_s:
        rate = schedule.at(since_s).uplink_bit_s
        end_s = min(until_s, schedule.next_change_s(since_s))
        total += rate / 8 * (end_s - since_s)
        since_s = end_s
    return total


def burst_max(link: LinkPlan) -> int:
    """The largest burst that the uplink ever has."""
    return max(burst_bytes(each.uplink_bit_s) for each in (link, *link.changes))


@given(links(), sends)
def test_messages_leave_in_the_order_of_sending(link, sends):
    """None leaves before it is sent, none before the one before it has left."""
    way = passage(link)
    left = [(now_s, *way.leave(now_s, size)) for now_s, size in sends]

    assert all(now_s <= first_s <= gone_s for now_s, first_s, gone_s in left)
    for (_, first_s, gone_s), (_, later_first_s, later_gone_s) in itertools.pairwise(left):
        assert first_s <= later_first_s
        assert gone_s <= later_gone_s


@given(links(), sends)
def test_no_window_holds_more_than_burst_and_rate_allow(link, sends):
    """Whatever is sent when: between any first byte and any last byte no more passes than was asked for."""
    lane = TokenBucket(LinkClock(LinkSchedule(link)), lambda conditions: conditions.uplink_bit_s)
    lane.clock.began_s = 0.0
    passed = [(*lane.book(now_s, wire_bytes(size)), wire_bytes(size)) for now_s, size in sends]

    for first in range(len(passed)):
        total = 0
        for begin_s, end_s, size in passed[first:]:
            total += size
            allowed = burst_max(link) + capacity_bytes(link, passed[first][0], end_s)
            assert total <= allowed * (1 + 1e-9) + 1e-3
            assert begin_s <= end_s


@given(links(), sends)
def test_a_lane_is_never_idle_while_something_waits(link, sends):
    """It is no slower than asked for either: what waited in line left at the full rate."""
    lane = TokenBucket(LinkClock(LinkSchedule(link)), lambda conditions: conditions.uplink_bit_s)
    lane.clock.began_s = 0.0
    free_s = 0.0
    for now_s, size in sends:
        first_s, end_s = lane.book(now_s, wire_bytes(size))
        assert first_s == max(now_s, free_s)
        assert capacity_bytes(link, first_s, end_s) <= wire_bytes(size) * (1 + 1e-9) + 1e-3
        free_s = end_s


@pytest.mark.parametrize("mbit", [1, 5, 10, 50, 100])
@pytest.mark.parametrize("size", [PUSH_BYTES, MODEL_BYTES])
def test_a_message_after_silence_takes_its_bytes_less_the_burst(mbit, size):
    """Up and down alike; by hand: 12.7 kB are 13,294 bytes on the wire, at 10 mbit 1,600 of them at once: 9.36 ms."""
    expected_s = (wire_bytes(size) - burst_bytes(mbit * MBIT)) * 8 / (mbit * MBIT)

    assert limited(up_mbit=mbit).leave(3.0, size) == (3.0, pytest.approx(3.0 + expected_s))
    assert limited(down_mbit=mbit).arrive(3.0, 3.0, size) == pytest.approx(3.0 + expected_s)
    if (mbit, size) == (10, PUSH_BYTES):
        assert expected_s == pytest.approx(9.355e-3, abs=1e-6)


def test_what_fits_into_the_burst_leaves_at_once():
    """A join, after a silence."""
    assert limited(up_mbit=1).leave(1.0, 70) == (1.0, 1.0)


def test_two_messages_back_to_back_take_their_sum():
    """The second one's first byte leaves when the first one's last has; the burst was used up by the first."""
    way = limited(up_mbit=10)
    _, gone_s = way.leave(1.0, PUSH_BYTES)
    first_s, later_gone_s = way.leave(1.0, MODEL_BYTES)

    assert first_s == gone_s
    assert later_gone_s - 1.0 == pytest.approx((wire_bytes(PUSH_BYTES) + wire_bytes(MODEL_BYTES) - 1600) * 8 / 10e6)


@pytest.mark.parametrize("began_s", [0.0, 2.5])
def test_a_changing_rate_counts_from_the_beginning_of_training(began_s):
    """847 kB at 1 mbit for a second, then at 10: what the first second does not carry takes a tenth of its time."""
    link = LinkPlan(uplink_bit_s=MBIT, changes=(LinkChange(at_s=1.0, uplink_bit_s=10 * MBIT),))
    way = passage(link, began_s)
    rest = wire_bytes(MODEL_BYTES) - 1600 - MBIT / 8

    assert way.leave(began_s, MODEL_BYTES)[1] == pytest.approx(began_s + 1.0 + rest * 8 / 10e6)


def test_what_gathers_in_a_silence_follows_the_rate_too():
    """The burst is used up at 1 s, when the rate falls; a hundredth of a second later 125 bytes may pass at once."""
    link = LinkPlan(uplink_bit_s=10 * MBIT, changes=(LinkChange(at_s=1.0, uplink_bit_s=MBIT // 10),))
    lane = TokenBucket(LinkClock(LinkSchedule(link)), lambda conditions: conditions.uplink_bit_s)
    lane.clock.began_s = 0.0
    used_s = lane.book(0.995, 1600 + 0.004 * 10e6 / 8)[1]

    assert used_s == pytest.approx(0.999)
    gathered = 0.001 * 10e6 / 8 + 0.01 * 1e5 / 8
    assert lane.book(1.01, 1600)[1] == pytest.approx(1.01 + (1600 - gathered) * 8 / 1e5)


def test_before_training_a_link_is_what_it_begins_with():
    """A join may come before the node has heard that training began."""
    way = link_model_of(
        plan_of(LinkPlan(uplink_bit_s=MBIT, changes=(LinkChange(at_s=1.0, uplink_bit_s=2 * MBIT),))), "model", ""
    )

    assert way.leave(100.0, PUSH_BYTES)[1] == pytest.approx(100.0 + (wire_bytes(PUSH_BYTES) - 1600) * 8 / 1e6)


@given(links(), links(), sizes, st.floats(0.1, 5))
def test_a_message_takes_as_long_as_the_slower_link_not_the_sum(sending, receiving, size, now_s):
    """Its bytes pass the receiver's link while later ones still leave the sender's."""
    sender, receiver = passage(sending), passage(receiving)
    first_s, gone_s = sender.leave(now_s, size)
    alone_s = passage(receiving).arrive(first_s, first_s, size)

    assert receiver.arrive(first_s, gone_s, size) == pytest.approx(max(gone_s, alone_s))


@given(links(), st.lists(st.tuples(st.floats(0.1, 3), st.floats(0, 3), sizes), min_size=1, max_size=10))
def test_messages_of_several_senders_arrive_in_order_and_within_the_rate(link, messages):
    """However they overlapped on their way: together they are no faster than the receiver's link, but for bursts."""
    link = LinkPlan(uplink_bit_s=link.uplink_bit_s, downlink_bit_s=link.uplink_bit_s)
    way = passage(link)
    arrivals = sorted((first_s + took_s, first_s, size) for first_s, took_s, size in messages)
    due = [way.arrive(first_s, now_s, size) for now_s, first_s, size in arrivals]

    assert due == sorted(due)
    assert all(due_s >= now_s for due_s, (now_s, _, _) in zip(due, arrivals, strict=True))
    total = sum(wire_bytes(size) for _, _, size in arrivals)
    bursts = 2 * burst_max(link) * len(messages)
    begin_s = min(first_s for _, first_s, _ in arrivals)
    assert total <= bursts + link.downlink_bit_s / 8 * (max(due) - begin_s) * (1 + 1e-9)


def test_a_short_message_does_not_cost_a_long_one_the_time_that_it_was_already_passing():
    """A second at 10 mbit, all but over when another sender's kilobyte comes."""
    way = limited(down_mbit=10)
    size = 1_190_000
    long_s = (wire_bytes(size) - 1600) * 8 / 10e6
    way.arrive(1.0 + 0.9 * long_s, 1.0 + 0.9 * long_s, 1000)

    assert way.arrive(1.0, 1.0 + long_s, size) == pytest.approx(1.0 + long_s, rel=0.002)


def test_an_idle_time_is_used_once():
    """Two long messages cannot both have passed in it."""
    way = limited(down_mbit=10)
    size = 1_190_000
    long_s = (wire_bytes(size) - 1600) * 8 / 10e6
    way.arrive(1.0 + 0.9 * long_s, 1.0 + 0.9 * long_s, 1000)
    way.arrive(1.0, 1.0 + long_s, size)

    assert way.arrive(1.0, 1.0 + long_s, size) == pytest.approx(1.0 + 2 * long_s, rel=0.005)


def test_a_small_message_does_not_overtake_one_that_waits_for_acknowledgements():
    """Over 100/1 mbit, the bytes of a large one have long left."""
    way = limited(100, 1)
    _, gone_s = way.leave(1.0, MODEL_BYTES)

    assert way.leave(1.0, 70)[1] == gone_s


def test_a_pull_over_a_very_uneven_link_waits_for_its_acknowledgements():
    """At 100/1 mbit they are the limit, at 10/1 the model is; a push right behind them leaves after them."""
    acknowledgements_s = ACK_BYTES_A_SEGMENT * num_segments(MODEL_BYTES) * 8 / 1e6
    uneven, mild = limited(1, 100), limited(1, 10)
    due_s = uneven.arrive(1.0, 1.0, MODEL_BYTES)

    assert due_s - 1.0 == pytest.approx(acknowledgements_s - 1600 * 8 / 1e6)
    assert mild.arrive(1.0, 1.0, MODEL_BYTES) - 1.0 == pytest.approx((wire_bytes(MODEL_BYTES) - 1600) * 8 / 10e6)
    assert uneven.leave(due_s, PUSH_BYTES)[1] - 1.0 == pytest.approx(
        acknowledgements_s + (wire_bytes(PUSH_BYTES) - 1600) * 8 / 1e6
    )


@pytest.mark.parametrize("claimed_s", [math.nan, math.inf, -math.inf, -1.0, 1e308, 2.0 + 1e-9])
def test_a_time_of_sending_that_cannot_be_is_taken_for_now(claimed_s):
    """It comes from the network, so it may be anything."""
    assert limited(down_mbit=10).arrive(claimed_s, 2.0, PUSH_BYTES) == limited(down_mbit=10).arrive(
        2.0, 2.0, PUSH_BYTES
    )


def test_latency_is_added_in_each_direction_before_the_uplink_and_after_the_downlink():
    """So the first byte leaves after it."""
    way = limited(10, 10, latency_s=0.04)
    took_s = (wire_bytes(PUSH_BYTES) - 1600) * 8 / 10e6

    assert way.leave(1.0, PUSH_BYTES) == (pytest.approx(1.04), pytest.approx(1.04 + took_s))
    assert way.arrive(2.0, 2.0, PUSH_BYTES) == pytest.approx(2.0 + took_s + 0.04)


@given(st.floats(0, 0.2), st.floats(0, 1), st.lists(st.floats(0, 60), min_size=1, max_size=30).map(sorted))
def test_jitter_stays_within_its_bounds_and_keeps_the_order(latency_s, share, times):
    """A message may be late because the one before it was, never early."""
    jitter_s = share * latency_s
    way = passage(LinkPlan(latency_s=latency_s, jitter_s=jitter_s, uplink_bit_s=MBIT))
    out = [way.arrive(0.0, now_s, 1) for now_s in times]

    assert out == sorted(out)
    latest_s = -math.inf
    for now_s, out_s in zip(times, out, strict=True):
        latest_s = max(latest_s, now_s + latency_s + jitter_s)
        assert now_s + latency_s - jitter_s - 1e-9 <= out_s <= latest_s + 1e-9


def delays(node: str, seed: int, direction: str) -> list[float]:
    """Ten messages a second apart."""
    way = link_model_of(plan_of(LinkPlan(latency_s=0.05, jitter_s=0.05), node, seed), "tc", "line")
    if direction == "up":
        return [way.leave(float(k), 1)[0] - k for k in range(10)]
    return [way.arrive(0.0, float(k), 1) - k for k in range(10)]


def test_jitter_depends_on_seed_node_direction_and_number_alone():
    """The same in every runtime, and again."""
    drawn = delays("edge-0", 1, "up")

    assert drawn == delays("edge-0", 1, "up")
    assert max(drawn) - min(drawn) > 0.02
    for other in (("edge-0", 2, "up"), ("edge-1", 1, "up"), ("edge-0", 1, "down")):
        assert drawn != delays(*other)


def test_only_what_nothing_else_holds_is_held_here():
    """The kernel's rates are not applied twice; netem's latency neither."""
    both = plan_of(LinkPlan(uplink_bit_s=MBIT, latency_s=0.1))
    rate, delay = plan_of(LinkPlan(uplink_bit_s=MBIT)), plan_of(LinkPlan(latency_s=0.1))

    assert link_model_of(both, "tc", "line").leave(1.0, MODEL_BYTES) == (1.1, 1.1)
    assert link_model_of(both, "model", "").leave(1.0, 70) == (1.0, 1.0)
    assert link_model_of(both, "tc", "netem") is None
    assert link_model_of(rate, "tc", "line") is None
    assert link_model_of(delay, "model", "netem") is None
    assert link_model_of(plan_of(LinkPlan()), "model", "line") is None


def test_what_leaves_in_the_very_first_moment_passes_the_receivers_link_meanwhile():
    """In virtual time training begins at 0."""
    sender, receiver = limited(up_mbit=10), limited(down_mbit=10)
    first_s, gone_s = sender.leave(0.0, MODEL_BYTES)

    assert first_s == 0.0
    assert receiver.arrive(first_s, gone_s, MODEL_BYTES) == pytest.approx(gone_s)
