"""The results of a calibration, for a terminal."""

from collections.abc import Iterator

from edgebed.core.errors import EdgebedError
from edgebed.core.quantities import UNMEASURED, bytes_text, local_text, number_text, percent_text
from edgebed.core.units import format_duration, format_rate
from edgebed.emulation.calibration import (
    PAYLOAD_SHARE,
    TOLERANCES,
    WHAT_HOLDS_IN,
    Beside,
    Bulk,
    Calibration,
    Cpu,
    PlaceMeasurements,
    Single,
    Together,
)
from edgebed.reports.writing.page import Grid, Paragraph, Part, Section, legend, shaded

Result = Bulk | Single | Cpu | Together | Beside


def calibration_parts(calibration: Calibration) -> Iterator[Part]:
    """For each place a table of its rates, one of its CPU caps, one of its nodes, and the conclusions."""
    for place, measured in calibration.places.items():
        grids = (rate_grid(measured), cpu_grid(measured), together_grid(measured))
        problems = shaded((f"not measured: {problem}" for problem in measured.problems), "unknown")
        title = f"{place}: {WHAT_HOLDS_IN[place]}, {local_text(measured.when)}"
        yield Section(title, [*grids, *map(Paragraph, findings(measured)), *map(Paragraph, problems)])
    yield legend(LEGEND)


LEGEND = (
    f"Goodput: payload of messages of 847 kB, against {percent_text(PAYLOAD_SHARE)} of the rate, which is what headers "
    "leave. A push after a rest: against (bytes on the wire - burst) / rate. See docs/calibration.md."
)


def rate_grid(measured: PlaceMeasurements) -> Grid:
    """A row for each rate: goodput up and down, and a small push; each with how far it is off."""
    bulk = {(each.rate_bit_s, each.direction): each for each in measured.bulk}
    single = {each.rate_bit_s: each for each in measured.single}

    def texts(rate: int) -> Iterator[str]:
        yield format_rate(rate)
        for each in (bulk.get((rate, "up")), bulk.get((rate, "down"))):
            yield from (number_text(each.goodput_bit_s / 1e6), off_text(each.deviation)) if each else 2 * [UNMEASURED]
        if push := single.get(rate):
            yield from (number_text(1000 * push.time_s), number_text(1000 * push.ideal_s), off_text(push.deviation))
        else:
            yield from 3 * [UNMEASURED]

    rates = sorted({rate for rate, _ in bulk} | {rate for rate in single if rate is not None})
    head = ("link", "up Mbit/s", "up off", "down Mbit/s", "down off", "push ms", "ideal ms", "push off")
    return Grid(head, [tuple(texts(rate)) for rate in rates])


def cpu_grid(measured: PlaceMeasurements) -> Grid:
    """A row for each CPU cap."""
    rows = [(number_text(each.asked), f"{each.got:.3f}", off_text(each.deviation)) for each in measured.cpu]
    return Grid(("CPU cap", "got", "off"), rows)


def together_grid(measured: PlaceMeasurements) -> Grid:
    """A row for each number of nodes."""
    rows = [
        (str(each.nodes), format_rate(each.rate_bit_s), off_text(each.held - 1.0), percent_text(each.host_busy),
         bytes_text(each.node_bytes))
        for each in measured.together
    ]  # fmt: skip
    return Grid(("nodes", "each", "off", "host CPU", "memory a node"), rows)


def findings(measured: PlaceMeasurements) -> Iterator[str]:
    """Conclusions from the tables, in sentences."""
    for tolerance in reversed(TOLERANCES):
        up, down = (measured.highest_bit_s(direction, tolerance) for direction in ("up", "down"))
        if measured.bulk:
            yield f"within {100 * tolerance:g} %: up to {_rate(up)} up and {_rate(down)} down"
    own = next((each for each in measured.single if each.rate_bit_s is None), None)
    if own:
        yield f"a push of {bytes_text(own.bytes)} without a limit takes {ms_text(own.time_s)}, the nodes' own time"
    together = measured.most_together()
    if together:
        total = format_rate(together.nodes * together.rate_bit_s)
        yield f"at once: {together.nodes} links of {format_rate(together.rate_bit_s)}, together {total}"
    if together and measured.most_nodes() > together.nodes:
        yield f"at once: up to {measured.most_nodes()} nodes with slower links"
    for each in measured.beside:
        yield f"a scenario for virtual time may state {result_text(each)}"


def result_text(result: Result | EdgebedError) -> str:
    """One result in a line, or why it is missing, while others are still being measured."""
    if isinstance(result, EdgebedError):
        return str(result)
    if isinstance(result, Bulk):
        rate = f"{format_rate(result.rate_bit_s)} {result.direction}"
        return f"{rate}: {mbit_text(result.goodput_bit_s)} of payload, {off_text(result.deviation)}"
    if isinstance(result, Single):
        rate = format_rate(result.rate_bit_s) if result.rate_bit_s else "no limit"
        off = f", {off_text(result.deviation)}" if result.rate_bit_s else ""
        return f"push of {bytes_text(result.bytes)} at {rate}: {ms_text(result.time_s)}{off}"
    if isinstance(result, Cpu):
        return f"CPU cap {number_text(result.asked)}: {result.got:.3f}, {off_text(result.deviation)}"
    if isinstance(result, Beside):
        restart = ", ".join(f"{node}: {format_duration(seconds)}" for node, seconds in result.restart_s.items())
        return f"task.exchange_time: {format_duration(result.exchange_s)}; restart_time: {{{restart}}}"
    rate = format_rate(result.rate_bit_s)
    return f"{result.nodes} links of {rate} at once: {off_text(result.held - 1.0)}"


def off_text(deviation: float) -> str:
    """A deviation as text: -0.3 %, +1.2 %."""
    return f"{100 * deviation:+.1f} %"


def mbit_text(rate_bit_s: float) -> str:
    """A measured rate, e.g. 9.56 Mbit/s."""
    return f"{number_text(rate_bit_s / 1e6)} Mbit/s"


def ms_text(time_s: float) -> str:
    """A short time, e.g. 9.61 ms."""
    return f"{number_text(1000 * time_s)} ms"


def _rate(rate_bit_s: int) -> str:
    return format_rate(rate_bit_s) if rate_bit_s else "no rate"
