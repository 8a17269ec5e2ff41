"""What was found on hosts, for a terminal."""

from collections.abc import Iterator, Sequence

from edgebed.core.quantities import UNMEASURED, bytes_text, number_text
from edgebed.reports.writing.page import Grid, Notes, Part, Span, Text, legend
from edgebed.runtimes.containers.hosts.check import HostCheck

HEAD = (
    "host", "engine", "API", "machine", "cgroup", "cores", "memory", "netem", "images", "swarm", "round trip",
    "clock", "MTU",
)  # fmt: skip
DISPENSABLE = ("API", "cgroup", "machine", "cores", "memory")
LEGEND = (
    "Round trip: the least of several, to the first host, through the swarm's network. Clock: the monotonic clock's "
    "offset from the first host's; a run follows it and needs no clock to be set. MTU: of the swarm's network."
)


def hosts_parts(checks: Sequence[HostCheck]) -> Iterator[Part]:
    """A row for each host, and what is wrong."""
    yield Grid(HEAD, [_row(check, checks[0]) for check in checks], DISPENSABLE)
    yield Notes([Span(f"{check.host}: {problem}", "bad") for check in checks for problem in check.problems])
    yield legend(LEGEND)


def _row(check: HostCheck, first: HostCheck) -> list[Text]:
    way = check.way
    return [
        check.host,
        check.version or UNMEASURED,
        check.api or UNMEASURED,
        check.architecture or UNMEASURED,
        f"v{check.cgroup}" if check.cgroup else UNMEASURED,
        UNMEASURED if check.cores is None else str(check.cores),
        UNMEASURED if check.memory_bytes is None else bytes_text(check.memory_bytes),
        UNMEASURED if check.netem is None else "yes" if check.netem else "no",
        _images_text(check, first),
        check.swarm or UNMEASURED,
        UNMEASURED if way is None else f"{number_text(1000 * way.round_trip_s)} ms",
        UNMEASURED if way is None else f"{way.offset_s:+.4f} s ±{number_text(500 * way.round_trip_s)} ms",
        UNMEASURED if way is None else str(way.mtu),
    ]


def _images_text(check: HostCheck, first: HostCheck) -> Text:
    if not check.images:
        return UNMEASURED
    if missing := sum(not found for found in check.images.values()):
        return Span(f"{missing} missing", "bad")
    others = sum(found != first.images.get(name) for name, found in check.images.items())
    if others and check.architecture == first.architecture:
        return Span(f"{others} differ", "bad")
    return Span("there", "good")
