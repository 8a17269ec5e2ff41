"""A link that is cut for a while: what comes later, and what is lost."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tasks import one_array

from edgebed.core.plan import Method, Part, Task, WorkerPlan
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkChange, LinkPlan
from edgebed.emulation.model.link_model import LinkModel
from edgebed.emulation.outage import DEAD_S, PROBE_S, RECONNECT_S, TIMEOUT_S, Outage, tried_after_s

TIMES = st.floats(0.0, 20.0)


@given(TIMES, TIMES)
def test_a_healed_link_is_tried_again_before_it_was_silent_for_twice_as_long(cut_s: float, lasts_s: float) -> None:
    """And not before it is healed; who waits for an answer gives it up first, after a long cut."""
    outage = Outage()
    outage.cut(cut_s, stalls=True)
    healed_s = cut_s + lasts_s
    goes_on_s = outage.goes_on_s(healed_s)

    assert outage.is_cut
    assert healed_s - 1e-6 <= goes_on_s
    if lasts_s <= (DEAD_S - TIMEOUT_S - PROBE_S) / 2:
        assert goes_on_s <= cut_s + 2 * lasts_s + TIMEOUT_S + PROBE_S
    assert goes_on_s <= cut_s + DEAD_S or goes_on_s == math.inf
    assert outage.renewed_s(healed_s) >= max(healed_s, cut_s + DEAD_S) + RECONNECT_S
    assert outage.end(healed_s) == pytest.approx(lasts_s)
    assert not outage.is_cut


@pytest.mark.parametrize(
    ("silent_s", "after_s"), [(0.0, 0.0), (0.05, 0.1), (0.3, 0.34), (0.34, 0.34), (0.8, 0.82), (1.0, 1.78), (2.0, 3.7)]
)
def test_tcp_tries_again_after_times_that_double(silent_s: float, after_s: float) -> None:
    """A probe, and then the time-out of 0.24 s, 0.48 s, 0.96 s."""
    assert tried_after_s(silent_s) == pytest.approx(after_s)


def test_where_nothing_waits_a_healed_link_passes_messages_at_once() -> None:
    """However long it was cut; what is sent meanwhile counts from then on."""
    outage = Outage()
    outage.cut(10.0, stalls=False)
    assert outage.goes_on_s(30.0) == 30.0
    outage.stall(29.0)
    outage.stall(29.9)

    assert outage.goes_on_s(30.0) == pytest.approx(30.78)


def test_a_cut_counts_from_the_first_and_a_heal_from_none() -> None:
    """Cutting what is cut, and healing what is whole, changes nothing."""
    outage = Outage()
    outage.stall(4.0)
    assert outage.goes_on_s(5.0) == 5.0
    assert outage.end(5.0) == 0.0
    outage.cut(10.0, stalls=False)
    outage.cut(11.0, stalls=True)
    assert outage.goes_on_s(12.0) == 12.0
    assert outage.end(12.0) == 2.0


@pytest.fixture
def passage() -> LinkModel:
    """That of a worker at 1 mbit up, 10 mbit down, 20 ms away."""
    part = Part(name="-", settings={})
    plan = WorkerPlan(
        node="edge-0",
        device_class="edge",
        seed=1,
        task=Task(model="-", inputs=one_array((1,)), outputs=2, layout=(), batch_size=1, gradient_time_s=0.0),
        method=Method(name="-", parts={"aggregation": part, "compression": part, "local_work": part}),
        num_examples=1,
        link=LinkPlan(uplink_bit_s=1_000_000, downlink_bit_s=10_000_000, latency_s=0.02),
    )
    return LinkModel(plan, limits=True, delays=True)


def test_a_passage_that_stood_still_is_as_much_later(passage: LinkModel) -> None:
    """What was in its delay line at the cut is not overtaken by what is sent after the heal."""
    passage.clock.effective.inject(0.0, Injection(node="edge-0", action="link", change=LinkChange(latency_s=3.0)))
    passage.began(0.0)
    first_s = passage.leaves_s(0.1)
    passage.inject(0.2, Injection(node="edge-0", action="link"))
    passage.stand_still(0.5, 2.0)

    assert first_s == pytest.approx(3.1)
    assert passage.leaves_s(2.5) == pytest.approx(first_s + 2.0)


def test_a_cleared_passage_has_room_at_once(passage: LinkModel) -> None:
    """A second message leaves as if there had been no first."""
    passage.outward.last_s = passage.inward.last_s = 9.0
    passage.clear(5.0)

    assert passage.leaves_s(5.0) == pytest.approx(5.02)
    assert passage.arrives_s(5.0) == pytest.approx(5.02)


def test_the_first_byte_is_there_after_the_latency(passage: LinkModel) -> None:
    """However long the rest takes."""
    assert passage.begins_s(7.0) == pytest.approx(7.02)
