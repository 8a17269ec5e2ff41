"""A link that no kernel holds, and that is cut: what was on its way comes later, or never."""

import pytest

from edgebed.core.framing import wire_bytes
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkChange, LinkPlan
from edgebed.emulation.model.link_model import link_model_of
from edgebed.emulation.outage import DEAD_S, tried_after_s
from edgebed.roles.events import MessageReceived, Send
from edgebed.runtimes import timestamps
from edgebed.runtimes.live.paced_link import HAND_OVER_S, PacedLink
from edgebed.runtimes.timestamps import Arriving, Leaving
from edgebed.wire.messages import Join, Model, Tensor

MBIT = 1_000_000
TENSOR = Tensor("theta", "uint8", (100_000,), "dense", 100_000)
PUSH = Send("server", Join(sender="edge-0", incarnation=1))
CUT, HEAL = Injection(node="edge-0", action="cut"), Injection(node="edge-0", action="heal")


def model(sent_s):
    """One whose first byte left then, of 100 kB."""
    return MessageReceived(
        "server", Model(sender="server", version=1, final=False, sent_s=sent_s, tensors=(TENSOR,)), (), 100_000
    )


@pytest.fixture
def make_link(make_node):
    """`make_link(**rates)`: a link that training has begun on."""

    def make(by_kernel=False, **asked):
        plan = make_node(link=LinkPlan(**asked))
        link = PacedLink(plan, link_model_of(plan, "model", "line"), by_kernel=by_kernel)
        link.began(0.0)
        return link

    return make


WHOLE_S = (wire_bytes(100_000) - 1600) * 8 / MBIT
"""What a model takes at 1 Mbit/s, but for what passes at once."""


def passed(link, now):
    """What has left and what is there by then."""
    return [type(each) for each in link.due(lambda: now)]


def arrives_s(link):
    """When the next message is there, looked for whenever something is due."""
    for _ in range(10):
        now = link.next_s
        if Arriving in passed(link, now):
            return now
    pytest.fail("nothing arrives")


def test_without_a_link_to_hold_a_message_leaves_and_arrives_at_once(make_link):
    """And nothing waits."""
    link = make_link()

    assert link.leave(PUSH, 1.0)
    assert link.arrive(model(1.0), 1.0)
    assert passed(link, 100.0) == []


def test_while_it_is_cut_nothing_passes_and_then_everything_does_so_much_later(make_link):
    """What was on its way, and what was sent meanwhile; peers wait with what they send."""
    link = make_link(downlink_bit_s=MBIT)
    link.arrive(model(1.0), 1.0)

    link.inject(CUT, 1.1)
    link.leave(PUSH, 1.2)
    assert link.is_closed
    assert passed(link, 100.0) == []

    assert not link.inject(HEAL, 3.1)
    assert link.is_closed
    goes_on_s = link.next_s
    assert goes_on_s == pytest.approx(1.1 + tried_after_s(2.0))
    assert passed(link, goes_on_s - 0.01) == []
    assert passed(link, goes_on_s) == [Leaving]
    assert not link.is_closed
    assert arrives_s(link) == pytest.approx(goes_on_s - 0.1 + WHOLE_S, abs=2 * HAND_OVER_S)


def test_the_answer_that_a_cut_node_waits_for_comes_when_tcp_tries_again(make_link):
    """A node that waits for none is connected at the heal."""
    waiting, idle = make_link(), make_link()
    waiting.leave(PUSH, 1.0)
    for link in (waiting, idle):
        link.inject(CUT, 1.1)
        assert not link.inject(HEAL, 3.1)

    assert waiting.is_closed
    assert waiting.next_s == pytest.approx(1.1 + tried_after_s(2.0))
    assert not idle.is_closed


def test_after_a_long_cut_all_is_lost_and_the_connection_is_to_be_ended(make_link):
    """As TCP would have it; what is sent then finds an empty link."""
    link = make_link(uplink_bit_s=MBIT, downlink_bit_s=MBIT)
    link.arrive(model(1.0), 1.0)
    link.leave(PUSH, 1.0)
    link.inject(CUT, 1.001)
    link.leave(PUSH, 1.1)

    assert link.inject(HEAL, 1.002 + DEAD_S)
    assert passed(link, 100.0) == []
    assert link.arriving_bytes == 0
    link.arrive(model(5.0), 5.0)
    assert arrives_s(link) == pytest.approx(5.0 + WHOLE_S, rel=0.01)


def test_what_was_sent_to_a_link_that_was_cut_passes_from_the_heal_on(make_link):
    """Its first byte cannot have come before."""
    link = make_link(downlink_bit_s=MBIT)
    link.inject(CUT, 1.0)
    link.inject(HEAL, 3.0)
    link.arrive(model(1.5), 3.0)

    assert arrives_s(link) > 3.7


def test_a_cut_that_the_kernel_makes_is_not_made_here_once_more(make_link):
    """The kernel drops packets, and TCP sends them again."""
    link = make_link(by_kernel=True)
    link.inject(CUT, 1.0)

    assert link.leave(PUSH, 1.1)
    assert not link.is_closed
    assert not link.inject(HEAL, 100.0)


def test_a_link_without_a_limit_can_be_given_one(make_link):
    """And its plan's again, which is none."""
    link = make_link()
    slower = Injection(node="edge-0", action="link", change=LinkChange(downlink_bit_s=MBIT))
    link.inject(slower, 1.0)

    assert not link.arrive(model(2.0), 2.0)
    assert arrives_s(link) > 2.8
    link.inject(Injection(node="edge-0", action="link"), 20.0)
    link.arrive(model(21.0), 21.0)
    assert link.next_s == 21.0


def test_a_link_that_has_rates_alone_can_be_given_latency(make_link, make_node):
    """And one that has latency alone, rates."""
    limited = PacedLink(make_node(), link_model_of(make_node(link=LinkPlan(downlink_bit_s=MBIT)), "model", ""))
    limited.began(0.0)
    limited.inject(Injection(node="edge-0", action="link", change=LinkChange(latency_s=2.0)), 1.0)
    limited.arrive(model(3.0), 3.0)
    late = PacedLink(make_node(), link_model_of(make_node(link=LinkPlan(latency_s=0.01)), "none", "line"))
    late.began(0.0)
    late.inject(Injection(node="edge-0", action="link", change=LinkChange(downlink_bit_s=MBIT)), 1.0)
    late.arrive(model(3.0), 3.0)

    assert arrives_s(limited) > 5.8
    assert arrives_s(late) > 3.8


def test_two_peers_share_the_uplink_and_a_burst_of_one_does_not_block_the_other(make_link):
    """A hundred messages to one, then one to another: it leaves beside the first that the burst leaves out."""
    link = make_link(uplink_bit_s=MBIT)
    size = timestamps.payload_bytes(PUSH)
    for _ in range(100):
        link.leave(PUSH, 1.0)
    link.leave(Send("edge-1", PUSH.message), 1.0)
    left = []
    while link.next_s < 10.0:
        now = link.next_s
        left += [(passing.effect.to, passing.gone_s) for passing in link.due(lambda now=now: now)]

    assert [to for to, _ in left].index("edge-1") == 20
    assert len(left) == 101
    assert max(gone_s for _, gone_s in left) == pytest.approx(1.0 + (101 * wire_bytes(size) - 1600) * 8 / MBIT)


def test_two_that_come_together_share_the_downlink(make_link):
    """Each takes as long as both."""
    link = make_link(downlink_bit_s=MBIT)
    for peer in ("edge-0~1", "edge-1~1"):
        link.arrive(MessageReceived(peer, model(1.0).message, (), 100_000), 1.0)
    together_s = 1.0 + (2 * wire_bytes(100_000) - 1600) * 8 / MBIT

    assert [arrives_s(link), arrives_s(link)] == pytest.approx([together_s, together_s], rel=0.01)


def test_a_message_whose_link_becomes_slower_leaves_later(make_link):
    """What faults ask for is done for what is on its way, too."""
    link = make_link(downlink_bit_s=MBIT)
    link.arrive(model(1.0), 1.0)
    link.inject(Injection(node="edge-0", action="link", change=LinkChange(downlink_bit_s=MBIT // 2)), 1.4)

    assert arrives_s(link) - 1.4 == pytest.approx(2 * (1.0 + WHOLE_S - 1.4), rel=0.001)


def test_what_goes_to_one_of_two_peers_passes_a_lane_of_its_own_until_that_ends(make_link):
    """At the rate asked, and the other has what is left of the uplink; what waits then passes at once."""
    link = make_link(uplink_bit_s=10 * MBIT)
    slow = Injection(node="edge-0", action="link", peer="server", change=LinkChange(uplink_bit_s=MBIT))
    size, sent = 100_000, model(0.0).message
    link.inject(slow, 1.0)
    for to in ("server", "edge-1", "server"):
        assert not link.leave(Send(to, sent, (bytes(size),)), 1.0)

    left = [(each.effect.to, each.gone_s) for now in (1.2, 2.0) for each in link.due(lambda now=now: now)]
    assert [to for to, _ in left] == ["edge-1", "server"]
    assert left[0][1] == pytest.approx(1.0 + (wire_bytes(size) - 1600) * 8 / (9 * MBIT), rel=0.02)
    assert left[1][1] == pytest.approx(1.0 + WHOLE_S, rel=0.02)

    link.inject(Injection(node="edge-0", action="link", peer="server"), 2.0)
    (last,) = link.due(lambda: 2.2)
    assert last.gone_s < 2.0 + WHOLE_S / 9
