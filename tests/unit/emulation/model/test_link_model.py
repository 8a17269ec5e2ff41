"""A node's link: what one message takes over it, by its rates, its burst and its latency, and when those change.

What several share is in test_flows.py.

Sizes are payload; what they are on the wire, and with it what they cost, is counted here by the same framing.
"""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from passing import Passed, Sent, one, passed
from tasks import one_array

from edgebed.core.framing import ACK_BYTES_A_SEGMENT, burst_bytes, num_segments, wire_bytes
from edgebed.core.plan import Method, Part, Task, TrainingNode, WorkerPlan
from edgebed.core.planned.link import LinkChange, LinkPlan
from edgebed.emulation.model.flows import Course
from edgebed.emulation.model.link_model import LinkModel, link_model_of

MBIT = 1_000_000
PUSH_BYTES = 12_700
MODEL_BYTES = 847_000


def plan_of(link: LinkPlan, node: str = "edge-0", seed: int = 1) -> TrainingNode:
    """A node with that link."""
    task = Task(model="-", inputs=one_array((1,)), outputs=2, layout=(), batch_size=1, gradient_time_s=0.01)
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


def leave(way: LinkModel, now_s: float, size: int) -> Passed:
    """How a message leaves through that link, whose receiver has none."""
    return one(Course(way.lanes[:1], way.lanes[1:]), way.leaves_s(now_s), size)


def arrive(way: LinkModel, now_s: float, size: int) -> float:
    """When a message is there that comes through that link, whose sender has none."""
    return way.arrives_s(one(Course(way.lanes[1:], way.lanes[:1]), now_s, size).end_s)


@pytest.mark.parametrize("mbit", [1, 5, 10, 50, 100])
@pytest.mark.parametrize("size", [PUSH_BYTES, MODEL_BYTES])
def test_a_message_after_silence_takes_its_bytes_less_the_burst(mbit, size):
    """Up and down alike; by hand: 12.7 kB are 13,294 bytes on the wire, at 10 mbit 1,600 of them at once: 9.36 ms."""
    expected_s = (wire_bytes(size) - burst_bytes(mbit * MBIT)) * 8 / (mbit * MBIT)

    assert leave(limited(up_mbit=mbit), 3.0, size) == (3.0, pytest.approx(3.0 + expected_s))
    assert arrive(limited(down_mbit=mbit), 3.0, size) == pytest.approx(3.0 + expected_s)
    if (mbit, size) == (10, PUSH_BYTES):
        assert expected_s == pytest.approx(9.355e-3, abs=1e-6)


def test_what_fits_into_the_burst_leaves_at_once():
    """A join, after a silence."""
    assert leave(limited(up_mbit=1), 1.0, 70) == (1.0, 1.0)


def test_two_messages_back_to_back_take_their_sum():
    """The second one's first byte leaves when the first one's last has; the burst was used up by the first."""
    way = limited(up_mbit=10)
    course = Course(way.lanes[:1], way.lanes[1:])
    push, model = passed([Sent(1.0, course, PUSH_BYTES), Sent(1.0, course, MODEL_BYTES)])

    assert model.first_s == push.end_s
    assert model.end_s - 1.0 == pytest.approx((wire_bytes(PUSH_BYTES) + wire_bytes(MODEL_BYTES) - 1600) * 8 / 10e6)


@pytest.mark.parametrize("began_s", [0.0, 2.5])
def test_a_changing_rate_counts_from_the_beginning_of_training(began_s):
    """847 kB at 1 mbit for a second, then at 10: what the first second does not carry takes a tenth of its time."""
    link = LinkPlan(uplink_bit_s=MBIT, changes=(LinkChange(at_s=1.0, uplink_bit_s=10 * MBIT),))
    way = passage(link, began_s)
    rest = wire_bytes(MODEL_BYTES) - 1600 - MBIT / 8

    assert leave(way, began_s, MODEL_BYTES)[1] == pytest.approx(began_s + 1.0 + rest * 8 / 10e6)


def test_what_gathers_in_a_silence_follows_the_rate_too():
    """The burst is used up at 1 s, when the rate falls; a hundredth of a second later 125 bytes may pass at once."""
    link = LinkPlan(uplink_bit_s=10 * MBIT, changes=(LinkChange(at_s=1.0, uplink_bit_s=MBIT // 10),))
    lane = passage(link).uplink
    lane.gather(0.999)
    lane.tokens = 0.0

    assert lane.gather(1.01) == pytest.approx(0.001 * 10e6 / 8 + 0.01 * 1e5 / 8)


def test_before_training_a_link_is_what_it_begins_with():
    """A join may come before the node has heard that training began."""
    way = link_model_of(
        plan_of(LinkPlan(uplink_bit_s=MBIT, changes=(LinkChange(at_s=1.0, uplink_bit_s=2 * MBIT),))), "model", ""
    )

    assert leave(way, 100.0, PUSH_BYTES)[1] == pytest.approx(100.0 + (wire_bytes(PUSH_BYTES) - 1600) * 8 / 1e6)


def test_a_pull_over_a_very_uneven_link_waits_for_its_acknowledgements():
    """At 100/1 mbit they are the limit, at 10/1 the model is; a push right behind them has the uplink to itself."""
    uneven, mild = limited(1, 100), limited(1, 10)
    acknowledged_s = ACK_BYTES_A_SEGMENT * num_segments(MODEL_BYTES) * 8 / 1e6
    part = 1 - burst_bytes(100 * MBIT) / wire_bytes(MODEL_BYTES)
    down, up = Course(uneven.lanes[1:], uneven.lanes[:1]), Course(uneven.lanes[:1], uneven.lanes[1:])
    due_s = 1.0 + acknowledged_s * part
    model, push = passed([Sent(1.0, down, MODEL_BYTES), Sent(due_s, up, PUSH_BYTES)])

    assert model.end_s == pytest.approx(due_s)
    assert arrive(mild, 1.0, MODEL_BYTES) - 1.0 == pytest.approx((wire_bytes(MODEL_BYTES) - 1600) * 8 / 10e6)
    assert push.end_s - due_s == pytest.approx(wire_bytes(PUSH_BYTES) * 8 / 1e6)


def test_latency_is_added_in_each_direction_before_the_uplink_and_after_the_downlink():
    """So the first byte leaves after it."""
    way = limited(10, 10, latency_s=0.04)
    took_s = (wire_bytes(PUSH_BYTES) - 1600) * 8 / 10e6

    assert leave(way, 1.0, PUSH_BYTES) == (pytest.approx(1.04), pytest.approx(1.04 + took_s))
    assert arrive(way, 2.0, PUSH_BYTES) == pytest.approx(2.0 + took_s + 0.04)


@given(st.floats(0, 0.2), st.floats(0, 1), st.lists(st.floats(0, 60), min_size=1, max_size=30).map(sorted))
def test_jitter_stays_within_its_bounds_and_keeps_the_order(latency_s, share, times):
    """A message may be late because the one before it was, never early."""
    jitter_s = share * latency_s
    way = passage(LinkPlan(latency_s=latency_s, jitter_s=jitter_s, uplink_bit_s=MBIT))
    out = [arrive(way, now_s, 1) for now_s in times]

    assert out == sorted(out)
    latest_s = -math.inf
    for now_s, out_s in zip(times, out, strict=True):
        latest_s = max(latest_s, now_s + latency_s + jitter_s)
        assert now_s + latency_s - jitter_s - 1e-9 <= out_s <= latest_s + 1e-9


def delays(node: str, seed: int, direction: str) -> list[float]:
    """Ten messages a second apart."""
    way = link_model_of(plan_of(LinkPlan(latency_s=0.05, jitter_s=0.05), node, seed), "tc", "line")
    if direction == "up":
        return [leave(way, float(k), 1)[0] - k for k in range(10)]
    return [arrive(way, float(k), 1) - k for k in range(10)]


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

    assert leave(link_model_of(both, "tc", "line"), 1.0, MODEL_BYTES) == (1.1, 1.1)
    assert leave(link_model_of(both, "model", ""), 1.0, 70) == (1.0, 1.0)
    assert link_model_of(both, "tc", "netem") is None
    assert link_model_of(rate, "tc", "line") is None
    assert link_model_of(delay, "model", "netem") is None
    assert link_model_of(plan_of(LinkPlan()), "model", "line") is None
