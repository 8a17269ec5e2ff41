"""What passes links at a time: the laws of sharing over time, whoever comes, goes, or changes."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from passing import Passed, Sent, one, passed

from edgebed.core.framing import MTU, ack_share, burst_bytes, wire_bytes
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkChange, LinkPlan
from edgebed.emulation.conditions import EffectiveLink, LinkSchedule
from edgebed.emulation.model.fair_share import fair_rates
from edgebed.emulation.model.flows import Course, Flow, Flows
from edgebed.emulation.model.lane import Lane, LinkClock
from edgebed.emulation.transfer_time import transfer_s

MBIT = 1_000_000
BURST_MAX = burst_bytes(100 * MBIT)

rates = st.integers(100_000, 20 * MBIT)
sizes = st.integers(1, 1_000_000)


@st.composite
def links(draw: st.DrawFn) -> LinkPlan:
    """Limited in both directions, with changes that happen once or again and again."""
    pairs = sorted(draw(st.lists(st.tuples(st.floats(0.01, 5), rates), max_size=4)))
    period_s = draw(st.sampled_from([None, 6.0])) if pairs else None
    return LinkPlan(
        uplink_bit_s=draw(rates), downlink_bit_s=draw(rates), period_s=period_s,
        offset_s=draw(st.floats(0, 5.9)) if period_s else 0.0,
        changes=tuple(LinkChange(at_s=at, uplink_bit_s=rate, downlink_bit_s=rate) for at, rate in pairs),
    )  # fmt: skip


class Node:
    """A node's two lanes."""

    def __init__(self, link: LinkPlan) -> None:
        self.clock = LinkClock(EffectiveLink(link))
        self.clock.began_s = 0.0
        self.up = Lane(self.clock, lambda conditions: conditions.uplink_bit_s)
        self.down = Lane(self.clock, lambda conditions: conditions.downlink_bit_s)


def course(sender: Node, receiver: Node, *, acknowledged: bool = True, window: float = math.inf) -> Course[int]:
    """Their connection, one way; TCP sends at once what finds room in the queue, or `window` bytes of it."""
    made = Course[int]((sender.up, receiver.down), (receiver.up, sender.down) if acknowledged else ())
    made.window = window
    return made


def limited(up_mbit: float | None = None, down_mbit: float | None = None, **fields) -> Node:
    """A node with these rates."""
    up, down = (None if mbit is None else round(mbit * MBIT) for mbit in (up_mbit, down_mbit))
    return Node(LinkPlan(uplink_bit_s=up, downlink_bit_s=down, **fields))


@st.composite
def meshes(draw: st.DrawFn) -> list[Sent]:
    """Messages over connections of two to six nodes."""
    nodes = [Node(draw(links())) for _ in range(draw(st.integers(2, 6)))]
    pairs = draw(st.lists(st.sampled_from(list(itertools.permutations(range(len(nodes)), 2))), min_size=1, max_size=8))
    courses = [course(nodes[a], nodes[b]) for a, b in dict.fromkeys(pairs)]
    return [
        Sent(at_s, courses[k % len(courses)], size)
        for at_s, k, size in draw(
            st.lists(st.tuples(st.floats(0, 5), st.integers(0, 99), sizes), min_size=1, max_size=12)
        )
    ]


def in_order(sent: list[Sent]) -> dict[Course[int], list[int]]:
    """Numbers of messages, by connection, as they were sent."""
    found: dict[Course[int], list[int]] = {}
    for number in sorted(range(len(sent)), key=lambda number: sent[number].at_s):
        found.setdefault(sent[number].course, []).append(number)
    return found


@given(meshes())
def test_messages_of_a_connection_pass_in_order_one_at_a_time(sent):
    """None begins before it is sent, nor before the one before it is through."""
    how = passed(sent)

    assert all(each.at_s <= found.first_s <= found.end_s for each, found in zip(sent, how, strict=True))
    for numbers in in_order(sent).values():
        for before, behind in itertools.pairwise(numbers):
            assert how[behind].first_s == max(sent[behind].at_s, how[before].end_s)


def rate_of(flow: Flow[int], lane: Lane) -> float:
    """The rate at which a message passes a lane: it may leave the queue of the second one faster than it comes."""
    return flow.coming if lane is flow.path.lanes[0] else flow.rate


@given(meshes())
def test_bytes_are_conserved_and_no_lane_carries_more_than_it_may(sent):
    """What passes at once, and all that passes after it, is the message; each time is within rate and bucket."""
    carried = dict.fromkeys(range(len(sent)), 0.0)

    def watch(flows: Flows[int], since_s: float, until_s: float) -> None:
        passing = {flow for group in flows.heap if group[2].is_valid for flow in group[2].flows}
        for lane in {lane for flow in passing for lane in flow.path.lanes}:
            beyond = sum(rate_of(flow, lane) for flow in lane.flows) - lane.rate(since_s) * (1 + 1e-6)
            assert beyond <= 0.0 or beyond * (until_s - since_s) <= lane.tokens + 1e-3
            assert 0.0 <= lane.tokens <= BURST_MAX
            assert until_s <= lane.change_s(since_s)
        for flow in passing:
            carried[flow.subject] += flow.rate * (until_s - since_s)
            assert 0.0 <= flow.waiting <= flow.left

    passed(sent, watch=watch)
    for number, each in enumerate(sent):
        size = wire_bytes(each.size)
        assert size - BURST_MAX - 1e-3 <= carried[number] <= size * (1 + 1e-9) + 1e-3


@given(meshes())
def test_every_message_has_a_bottleneck_at_each_moment(sent):
    """A lane that is full, with acknowledgements, in which nothing is faster but what is before it in the queue.

    Or acknowledgements fill one, or all of it has come and waits in the queue of a lane that is full.
    """

    def watch(flows: Flows[int], since_s: float, _until_s: float) -> None:
        for group in [entry[2] for entry in flows.heap if entry[2].is_valid]:
            lanes = {lane for flow in group.flows for lane in flow.path.lanes}
            rates = {lane: lane.rate(since_s) for lane in lanes}
            places = {
                flow: flow.place() if flow.in_window or flow.comes_slowly(rates) else (math.inf,)
                for flow in group.flows
            }
            for flow in group.flows:
                full = [
                    lane for lane in flow.path.lanes
                    if lane.used >= rates[lane] * (1 - 1e-6)
                    and all(
                        rate_of(each, lane) <= rate_of(flow, lane) * (1 + 1e-6) or places[each] < places[flow]
                        for each in lane.flows
                    )
                ]  # fmt: skip
                held = min(lane.rate(since_s) for lane in flow.path.back) <= flow.rate * flow.path.ack_share * 1.000001
                assert full or held

    passed(sent, watch=watch)


def has_room(sending, receiving):
    """Whether the way back carries twice the acknowledgements of what fills the way there, if there is a limit."""
    there = [rate for rate in (sending.uplink_bit_s, receiving.downlink_bit_s) if rate is not None]
    back = [rate for rate in (receiving.uplink_bit_s, sending.downlink_bit_s) if rate is not None]
    return not there or not back or min(back) >= 2.0 * ack_share(MTU) * min(there)


@given(links(), links(), sizes, st.floats(0, 5))
def test_a_message_alone_takes_what_the_links_need(sending, receiving, size, at_s):
    """As the verdict counts it (transfer_time.py), but for bursts that are let through before it.

    One where acknowledgements nearly fill a way back that is much slower, and one at each change of rates.
    """
    found = one(course(Node(sending), Node(receiving)), at_s, size)
    schedules = LinkSchedule(sending), LinkSchedule(receiving)
    alone_s = transfer_s(*schedules, at_s, wire_bytes(size), acknowledged=True)
    bursts, change_s = 1, at_s
    while (change_s := min(schedule.next_change_s(change_s) for schedule in schedules)) < found.end_s:
        bursts += 1
    least_s = transfer_s(*schedules, at_s, max(0, wire_bytes(size) - bursts * BURST_MAX), acknowledged=True)
    most_s = transfer_s(*schedules, at_s, wire_bytes(size) + BURST_MAX, acknowledged=True)

    assert found.first_s == at_s
    if not sending.changes and not receiving.changes and size > 20_000 and has_room(sending, receiving):
        assert found.end_s - at_s == pytest.approx(alone_s, rel=0.002)
    assert least_s * 0.998 - 1e-6 <= found.end_s - at_s <= most_s * 1.002 + 1e-6 or size <= 20_000


@given(
    st.lists(st.tuples(st.integers(1, 20), st.integers(200_000, 1_000_000), st.floats(0, 2)), min_size=1, max_size=10),
    st.integers(1, 20),
)
def test_a_star_is_as_a_naive_simulation_of_it_has_it(senders, server_mbit):
    """Everybody to one server: rates from scratch at each event, all messages looked at; bursts apart."""
    server = limited(100, server_mbit)
    sent = [
        Sent(at_s, course(limited(mbit, 100), server, acknowledged=False, window=0.0), size)
        for mbit, size, at_s in senders
    ]
    found = [each.end_s for each in passed(sent)]

    now, left, ends = 0.0, [float(wire_bytes(size)) for _, size, _ in senders], [0.0] * len(senders)
    while any(left):
        there = [k for k, (_, _, at_s) in enumerate(senders) if left[k] and at_s <= now]
        lanes = {"server": server_mbit * MBIT / 8} | {k: senders[k][0] * MBIT / 8 for k in there}
        shares = dict(zip(there, fair_rates([(k, "server") for k in there], lanes), strict=True))
        coming = [at_s for _, _, at_s in senders if at_s > now]
        until_s = min([*coming, *(now + left[k] / share for k, share in shares.items())])
        for k, share in shares.items():
            left[k] = 0.0 if now + left[k] / share <= until_s + 1e-12 else left[k] - share * (until_s - now)
            ends[k] = until_s if not left[k] else 0.0
        now = until_s

    bursts_s = len(senders) * BURST_MAX * 8 / MBIT / min([server_mbit, *(mbit for mbit, _, _ in senders)])
    assert all(-bursts_s - 1e-6 <= a - b <= 1e-6 for a, b in zip(found, ends, strict=True))


def test_two_that_begin_together_end_together_and_one_that_comes_later_takes_its_share():
    """By hand, at 8 mbit down: a megabyte each; the third, half as large, comes when half of each is left."""
    server = limited(None, 8)
    ways = [course(Node(LinkPlan()), server, acknowledged=False, window=0.0) for _ in range(3)]
    for way in ways:
        way.lanes[-1].tokens = 0.0
    size = 1_000_000 * 1448 // 1514
    how = passed([Sent(0.0, ways[0], size), Sent(0.0, ways[1], size), Sent(1.0, ways[2], size // 2)])

    assert [each.end_s for each in how] == pytest.approx([2.5, 2.5, 2.5], rel=0.002)


def test_a_burst_of_one_does_not_block_another():
    """Ten models of one worker's connection before another's push: that shares the link with one of them at a time."""
    server = limited(None, 10)
    greedy, other = (course(Node(LinkPlan()), server, window=0.0) for _ in range(2))
    how = passed([*(Sent(0.0, greedy, 847_000) for _ in range(10)), Sent(0.01, other, 12_700)])

    assert how[-1].end_s - 0.01 == pytest.approx(wire_bytes(12_700) * 8 / 5e6, rel=0.01)
    assert how[-2].end_s == pytest.approx((10 * wire_bytes(847_000) + wire_bytes(12_700) - 1600) * 8 / 10e6, rel=1e-6)


def test_both_ends_of_a_message_count():
    """A fast receiver beside a slow one: it gets what that leaves of the server's uplink."""
    server = limited(10, None)
    slow, fast = course(server, limited(None, 2)), course(server, limited(None, 100))
    how = passed([Sent(0.0, slow, 500_000), Sent(0.0, fast, 1_000_000)])

    assert how[1].end_s == pytest.approx(wire_bytes(1_000_000) * 8 / 8e6, rel=0.01)
    assert how[0].end_s == pytest.approx(wire_bytes(500_000) * 8 / 2e6, rel=0.01)


def test_an_idle_downlink_passes_its_burst_behind_an_uplink_whose_bucket_another_has_emptied():
    """The server's is empty as it sends the second model; the slow receiver's is full."""
    server = limited(10, None)
    fast, slow = course(server, limited(None, 20), window=0.0), course(server, limited(None, 1), window=0.0)
    how = passed([Sent(0.0, fast, 50_000), Sent(0.0, slow, 20_000)])

    assert how[1].end_s == pytest.approx((wire_bytes(20_000) - burst_bytes(MBIT)) * 8 / 1e6, rel=0.01)


def test_what_does_not_meet_is_not_computed_together():
    """Workers of a server without a limit, or with one that is none for now: each is a group of its own."""
    server = Node(LinkPlan(changes=(LinkChange(at_s=100.0, downlink_bit_s=MBIT),)))
    found = []

    def watch(flows: Flows[int], _since_s: float, _until_s: float) -> None:
        found.append(sorted(len(group.flows) for _, _, group in flows.heap if group.is_valid))

    passed([Sent(0.0, course(limited(1, 1), server), 10_000) for _ in range(5)], watch=watch)
    assert [1] * 5 in found
    assert all(sizes == [1] * len(sizes) for sizes in found)


def test_a_lane_that_becomes_limited_is_shared_from_then_on():
    """Without a limit both take a second at their own; then they share 1 mbit."""
    server = limited(changes=(LinkChange(at_s=1.0, downlink_bit_s=MBIT),))
    size = (125_000 * 8 + 62_500 * 2) * 1448 // 1514
    ways = [course(limited(8, None), server, acknowledged=False) for _ in range(2)]
    how = passed([Sent(0.0, way, size) for way in ways])

    assert [each.end_s for each in how] == pytest.approx([3.0, 3.0], rel=0.02)


def test_a_fault_changes_what_is_on_its_way_from_then_on():
    """Half of it at 8 mbit, the rest at 1."""
    node = limited(8, None)

    def slower(flows: Flows[int], now: float) -> None:
        node.clock.effective.inject(now, Injection(node="-", action="link", change=LinkChange(uplink_bit_s=MBIT)))
        flows.change((node.up, node.down))

    size = 2_000_000 * 1448 // 1514
    (how,) = passed([Sent(0.0, course(node, Node(LinkPlan())), size)], [(1.0, slower)])

    assert how.end_s == pytest.approx(9.0, rel=0.002)


def test_what_stands_still_leaves_its_share_to_others():
    """Two share 8 mbit; one is cut from 0.5 to 1.5 and goes on where it was."""
    server = limited(None, 8)
    ways = [course(Node(LinkPlan()), server, acknowledged=False, window=0.0) for _ in range(2)]
    size = 1_000_000 * 1448 // 1514
    cut = (0.5, lambda flows, now: flows.leave(ways[0].flows[0], now))
    heal = (1.5, lambda flows, now: flows.join(ways[0].flows[0], now))
    how = passed([Sent(0.0, way, size) for way in ways], [cut, heal])

    assert [each.end_s for each in how] == pytest.approx([2.25, 1.25], rel=0.005)


def test_at_a_rate_of_nothing_a_message_waits_for_the_next():
    """A trace may have seconds in which nothing passes."""
    link = LinkPlan(
        uplink_bit_s=MBIT, changes=(LinkChange(at_s=0.5, uplink_bit_s=0), LinkChange(at_s=2.0, uplink_bit_s=MBIT))
    )
    found = one(course(Node(link), Node(LinkPlan())), 0.0, 125_000 * 1448 // 1514)

    assert found.end_s == pytest.approx(2.5, rel=0.01)


@given(st.lists(st.tuples(st.floats(0.1, 3), st.floats(0, 3), sizes), min_size=1, max_size=10), rates)
def test_what_comes_late_has_passed_in_idle_times_since_its_first_byte(messages, rate):
    """As a receiver has it: together no faster than the link, but for bursts, and never before it came."""
    node = Node(LinkPlan(downlink_bit_s=rate))
    sent = [Sent(first_s + took_s, Course((node.down,), ()), size, first_s) for took_s, first_s, size in messages]
    how = passed(sent)

    assert all(found.end_s >= each.at_s for each, found in zip(sent, how, strict=True))
    total = sum(wire_bytes(each.size) for each in sent) - 2 * BURST_MAX * len(sent)
    begin_s = min(each.since_s for each in sent)
    assert total <= rate / 8 * (max(found.end_s for found in how) - begin_s) * (1 + 1e-9)


def test_an_idle_time_is_used_once():
    """Two long messages cannot both have passed in it."""
    node = limited(None, 10)
    ways = [Course[int]((node.down,), ()) for _ in range(3)]
    size = 1_190_000
    long_s = (wire_bytes(size) - 1600) * 8 / 10e6
    how = passed(
        [
            Sent(1.0 + 0.9 * long_s, ways[0], 1000),
            Sent(1.0 + long_s, ways[1], size, 1.0),
            Sent(1.0 + long_s, ways[2], size, 1.0),
        ]
    )

    assert how[1].end_s == pytest.approx(1.0 + long_s, rel=0.002)
    assert how[2].end_s == pytest.approx(1.0 + 2 * long_s, rel=0.005)


def test_groups_that_are_gone_are_no_memory():
    """A slow message in whose time a thousand others pass: none of them is kept."""
    server = limited(None, 100)
    slow, fast = course(limited(0.1, None), server), course(Node(LinkPlan()), server)
    kept = []

    def watch(flows: Flows[int], _since_s: float, _until_s: float) -> None:
        kept.append(sum(len(group.flows) for _, _, group in flows.heap))

    passed([Sent(0.0, slow, 100_000), *(Sent(0.001 * k, fast, 10_000) for k in range(1000))], watch=watch)
    assert max(kept) <= 2


def test_nothing_is_due_where_nothing_passes():
    """Nor after all is through."""
    flows = Flows[int]()
    assert flows.next_s == math.inf
    assert flows.over(100.0) == []
    assert isinstance(one(course(limited(1, 1), limited(1, 1)), 0.0, 70), Passed)


def test_what_finds_room_in_the_queue_passes_in_order():
    """Five models that a server hands over one after another, in 100 ms: each is there before the next begins."""
    server = limited(4, None)
    how = passed([Sent(0.001 * k, course(server, Node(LinkPlan())), 8_000) for k in range(5)])

    took_s = wire_bytes(8_000) * 8 / 4e6
    burst_s = 1600 * 8 / 4e6
    assert [each.end_s for each in how] == pytest.approx([k * took_s - burst_s for k in range(1, 6)], abs=1e-6)


def test_of_messages_that_begin_together_first_batches_pass_first():
    """As ZeroMQ hands them over: 8 kB of each, then the rest of each."""
    server = limited(4, None)
    how = passed([Sent(0.0, course(server, Node(LinkPlan())), 16_000) for _ in range(3)])

    batch, rest = (8 * wire_bytes(size) / 4e6 for size in (8192, 16_000 - 8192))
    burst_s = 1600 * 8 / 4e6
    ends = [3 * batch + (k + 1) * rest - burst_s for k in range(3)]
    assert [each.end_s for each in how] == pytest.approx(ends, rel=0.01)


def test_a_new_connection_has_a_window_of_ten_segments():
    """The rest of both shares the link; when they have been acknowledged, the next pass in order as a whole."""
    server = limited(4, None)
    ways = [Course[int]((server.up,), ()) for _ in range(2)]
    how = passed([Sent(at_s, way, 30_000) for at_s in (0.0, 1.0) for way in ways])

    both_s = (2 * wire_bytes(30_000) - 1600) * 8 / 4e6
    assert [each.end_s for each in how[:2]] == pytest.approx([both_s, both_s], rel=0.03)
    assert how[3].end_s - how[2].end_s > 0.3 * both_s


def test_for_which_the_queue_has_no_room_shares_the_link():
    """100 kB wait for 4 mbit: two messages of 40 kB and half of a third; what is left passes at the same rate."""
    server = limited(4, None)
    how = passed([Sent(0.0001 * k, course(server, Node(LinkPlan())), 40_000) for k in range(5)])

    alone_s = wire_bytes(40_000) * 8 / 4e6
    ends = [each.end_s / alone_s for each in how]
    assert ends[:2] == pytest.approx([1.0, 2.0], abs=0.05)
    assert 3.5 < ends[2] < 4.5
    assert ends[3:] == pytest.approx([5.0, 5.0], rel=0.03)


def test_what_comes_slowly_to_a_link_is_mixed_with_what_others_send():
    """Two workers with 3 mbit up push to a server with 4 down: packets come by turns, and both end at a time."""
    server = limited(None, 4)
    how = passed([Sent(0.0, course(limited(3, None), server), 19_000) for _ in range(2)])

    burst_s = 1600 * 8 / 4e6
    assert abs(how[0].end_s - how[1].end_s) < 2 * burst_s < wire_bytes(19_000) * 8 / 4e6 / 4


def a_round(fast_mbit: float, slow_mbit: float = 10, server_mbit: float = 50, size: int = 846_760) -> list[float]:
    """When the pushes of two fast workers and of a slow one are there, which begin together."""
    server = limited(None, server_mbit)
    workers = [limited(mbit, None) for mbit in (fast_mbit, fast_mbit, slow_mbit)]
    return [each.end_s for each in passed([Sent(0.0, course(worker, server), size) for worker in workers])]


def test_who_is_ahead_in_a_queue_delays_the_end_of_what_comes_slowly_and_not_its_start():
    """A worker with 10 mbit sends beside two that are as fast as the server or faster: its own uplink tells its end."""
    slow_s = (wire_bytes(846_760) - burst_bytes(10 * MBIT)) * 8 / 10e6

    for fast_mbit in (40, 49, 50, 51, 100, 1000):
        assert a_round(fast_mbit)[2] == pytest.approx(slow_s, rel=0.003)


@given(st.floats(0.02, 0.33), st.floats(10, 100), sizes)
def test_no_cliff_where_a_fast_uplink_reaches_the_rate_of_the_server(share, server_mbit, size):
    """A push that its own uplink holds back ends as soon beside workers just faster than the server as just slower.

    And never before its own uplink lets it.
    """
    slow_mbit = share * server_mbit
    below, above = (a_round(server_mbit * part, slow_mbit, server_mbit, size)[2] for part in (0.999, 1.001))
    burst_s = 8 * BURST_MAX / (slow_mbit * MBIT)

    assert above == pytest.approx(below, rel=0.01, abs=burst_s)
    assert above >= 8 * wire_bytes(size) / (slow_mbit * MBIT) - burst_s


def test_what_waits_in_a_queue_passes_as_fast_as_the_link():
    """A slow push begins, and a fast one comes: that passes first, and then all of the slow one that came meanwhile."""
    server, slow, fast = limited(None, 10), limited(4, None), limited(100, None)
    how = passed([Sent(0.0, course(slow, server), 200_000), Sent(0.1, course(fast, server), 200_000)])
    alone_s, fast_s = 8 * wire_bytes(200_000) / 4e6, 8 * wire_bytes(200_000) / 10e6

    assert how[1].end_s - 0.1 == pytest.approx(fast_s, rel=0.02)
    assert how[0].end_s == pytest.approx(alone_s, rel=0.02)
