"""The links of many nodes in one message: short where they share a trace, and all there."""

import msgspec

from edgebed.core.planned.link import LinkChange, LinkPlan
from edgebed.emulation.conditions import LinkSchedule
from edgebed.wire.messages import SharedLink
from edgebed.wire.shared_links import links_of, share

CHANGES = tuple(LinkChange(at_s=0.1 * k, uplink_bit_s=8000 + k) for k in range(10_000))
PLAYED = {f"edge-{k}": LinkPlan(changes=CHANGES, period_s=1000.0, offset_s=float(k)) for k in range(50)}


def test_nodes_that_play_one_trace_share_its_rows():
    """In a message, where they come once whatever the number of nodes, and in what is made of it."""
    one, fifty = (msgspec.json.encode(share(links)) for links in ({"edge-0": PLAYED["edge-0"]}, PLAYED))
    links = links_of(msgspec.json.decode(fifty, type=tuple[SharedLink, ...]))

    assert len(fifty) < len(one) + 50 * 20
    assert links == PLAYED
    assert len({id(LinkSchedule(link).conditions) for link in links.values()}) == 1
    assert LinkSchedule(links["edge-7"]).at(0.0) == LinkSchedule(links["edge-0"]).at(7.0)


def test_the_first_node_stays_the_first():
    """Of a trial's network it is the server."""
    links = {"server": LinkPlan(), "edge-0": LinkPlan(uplink_bit_s=8000), "edge-1": LinkPlan()}

    assert next(iter(links_of(share(links)))) == "server"
    assert links_of(share(links)) == links
