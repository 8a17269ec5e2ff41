"""Links of many nodes in brief: nodes that play one trace from different places share its rows."""

from collections.abc import Iterable, Mapping

import msgspec

from edgebed.core.planned.link import LinkPlan
from edgebed.wire.messages import SharedLink


def share(links: Mapping[str, LinkPlan]) -> tuple[SharedLink, ...]:
    """Return each link once, with the nodes that have it; the first node's comes first."""
    shared: dict[LinkPlan, list[tuple[str, float]]] = {}
    for node, link in links.items():
        shared.setdefault(msgspec.structs.replace(link, offset_s=0.0), []).append((node, link.offset_s))
    return tuple(SharedLink(link=link, offsets=tuple(offsets)) for link, offsets in shared.items())


def links_of(shared: Iterable[SharedLink]) -> dict[str, LinkPlan]:
    """Return each node's link with its own offset."""
    return {
        node: msgspec.structs.replace(each.link, offset_s=offset_s)
        for each in shared
        for node, offset_s in each.offsets
    }
