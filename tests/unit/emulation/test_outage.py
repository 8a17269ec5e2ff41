"""A link that is cut for a while: what comes later, and what is lost."""

import pytest

from edgebed.core.plan import Injection, LinkChange, LinkPlan, Method, Part, Task, WorkerPlan
from edgebed.emulation.model.link_model import LinkModel
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
