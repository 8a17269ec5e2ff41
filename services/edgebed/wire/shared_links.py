"""The links of many nodes, told briefly: those that play one trace from different places share its rows."""

from collections.abc import Iterable, Mapping

import msgspec

from edgebed.scenario.plan import Link
from edgebed.wire.messages import SharedLink


def share(links: Mapping[str, Link]) -> tuple[SharedLink, ...]:
    """Each link once, with the nodes that have it; the first node's comes first."""
    shared: dict[Link, list[tuple[str, float]]] = {}
    for node, link in links.items():
        shared.setdefault(msgspec.structs.replace(link, offset_s=0.0), []).append((node, link.offset_s))
    return tuple(SharedLink(link=link, offsets=tuple(offsets)) for link, offsets in shared.items())


def links_of(shared: Iterable[SharedLink]) -> dict[str, Link]:
    """Each node's link with its own offset."""
    return {
        node: msgspec.structs.replace(each.link, offset_s=offset_s)
        for each in shared
        for node, offset_s in each.offsets
    }
