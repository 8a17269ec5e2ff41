"""A link that is cut for a while: what comes later, and what is lost."""

import pytest

from edgebed.core.plan import Injection, LinkChange, LinkPlan, Method, Part, Task, WorkerPlan
from edgebed.emulation.link_model import LinkModel
from edgebed.emulation.outage import DEAD_S, Outage


def test_a_short_cut_delays_and_a_long_one_loses() -> None:
    """Up to DEAD_S, and not a moment longer."""
    outage = Outage()
    outage.cut(10.0)
    assert outage.is_cut
    assert outage.heal(10.0 + DEAD_S) == DEAD_S
    assert not outage.is_cut
    outage.cut(20.0)
    assert outage.heal(20.25 + DEAD_S) is None


def test_a_cut_counts_from_the_first_and_a_heal_from_none() -> None:
    """Cutting what is cut, and healing what is whole, changes nothing."""
    outage = Outage()
    assert outage.heal(5.0) == 0.0
    outage.cut(10.0)
    outage.cut(11.0)
    assert outage.heal(12.0) == 2.0


@pytest.fixture
def passage() -> LinkModel:
    """That of a worker at 1 mbit up, 10 mbit down, 20 ms away."""
    part = Part(name="-", settings={})
    plan = WorkerPlan(
        node="edge-0",
        device_class="edge",
        seed=1,
        task=Task(model="-", input_shape=(1,), classes=2, layout=(), batch_size=1, gradient_time_s=0.0),
        method=Method(name="-", parts={"aggregation": part, "compression": part, "local_work": part}),
        num_examples=1,
        link=LinkPlan(uplink_bit_s=1_000_000, downlink_bit_s=10_000_000, latency_s=0.02),
    )
    return LinkModel(plan, limits=True, delays=True)


def test_a_passage_that_stood_still_is_as_much_later(passage: LinkModel) -> None:
    """What was leaving at the cut leaves after the heal, and what is sent then queues up behind it."""
    _, gone_s = passage.leave(0.0, 125_000)
    passage.stand_still(0.5, 2.0)
    _, next_s = passage.leave(1.0, 125_000)

    assert next_s - (gone_s + 2.0) == pytest.approx(gone_s - 0.02, rel=0.02)


def test_a_cleared_passage_has_room_at_once(passage: LinkModel) -> None:
    """A second message leaves as if there had been no first."""
    passage.leave(0.0, 1_250_000)
    passage.clear(5.0)
    first_s, gone_s = passage.leave(5.0, 125_000)

    assert first_s == pytest.approx(5.02)
    assert gone_s == pytest.approx(5.02 + 1.03, abs=0.05)


def test_a_changed_link_holds_what_is_booked_from_then_on(passage: LinkModel) -> None:
    """Half the rate, until it is as planned again."""
    passage.began(0.0)
    _, planned_s = passage.leave(10.0, 125_000)
    passage.inject(20.0, Injection(node="edge-0", action="link", change=LinkChange(uplink_bit_s=500_000)))
    _, slow_s = passage.leave(20.0, 125_000)
    passage.inject(30.0, Injection(node="edge-0", action="link"))
    _, again_s = passage.leave(30.0, 125_000)

    assert slow_s - 20.0 == pytest.approx(2 * (planned_s - 10.0), rel=0.05)
    assert again_s - 30.0 == pytest.approx(planned_s - 10.0)


def test_the_first_byte_is_there_after_the_latency(passage: LinkModel) -> None:
    """However long the rest takes."""
    assert passage.begins_s(7.0) == pytest.approx(7.02)
