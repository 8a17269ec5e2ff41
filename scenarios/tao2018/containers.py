"""What tables 1 and 2 say, measured again in containers with capped processors and shaped links."""

from edgebed.studies.papers.confirming import both_ways, confirming_rows, times_note
from edgebed.studies.papers.measuring import accuracy, difference, ratio, updates_per_s
from edgebed.studies.papers.paper import Cell, Row, Table

from .measures import sent_share

SCALE = 0.001
"""Share of the updates: 200 iterations of 200,000."""
CELLS = both_ways(
    {name: Cell(scenario="tables.yaml", variant=name) for name in ("std", "esgd-50", "threshold-tuned")},
    "fleet.edge={count: 4, cpus: 0.2, memory: 500MB, uplink: 50mbit, downlink: 100mbit}",
    "evaluation.every=100 updates",
    scale=SCALE,
)


def over_row(better: str, worse: str, what: str, ending: str) -> Row:
    """How many points one cell is better than another."""
    cells = (f"{better}{ending}", f"{worse}{ending}")
    measure = difference(accuracy(cells[0]), accuracy(cells[1]))
    return Row(what=what, cells=cells, measure=measure, unit="points")


def std_row(ending: str) -> Row:
    """What half of the gradient costs."""
    return over_row("std", "esgd-50", "Standard SGD over eSGD, 50 % dropped", ending)


def threshold_row(ending: str) -> Row:
    """What eSGD gains over a threshold that drops half."""
    what = "eSGD, 50 % dropped, over thresholdSGD, tuned to drop half"
    return over_row("esgd-50", "threshold-tuned", what, ending)


def sent_row(ending: str) -> Row:
    """The share of the entries that thresholdSGD sends."""
    cell = f"threshold-tuned{ending}"
    return Row(
        what="Share of the entries sent: thresholdSGD, tuned to drop half", cells=(cell,),
        measure=sent_share(cell), unit="%",
    )  # fmt: skip


def rate_row(ending: str) -> Row:
    """How many times as many iterations a second half of the gradient makes."""
    std, esgd = f"std{ending}", f"esgd-50{ending}"
    return Row(
        what="Iterations a second: eSGD, 50 % dropped, over standard SGD", cells=(esgd, std),
        measure=ratio(updates_per_s(esgd), updates_per_s(std)), unit="x", note=times_note("25 ms"),
    )  # fmt: skip


TABLE = Table(
    title="Tables 1 and 2 in containers",
    seeds=5,
    other_setting=True,
    rows={
        **confirming_rows("std-over-esgd", std_row, 1.0),
        **confirming_rows("esgd-over-tuned-threshold", threshold_row, 1.0),
        **confirming_rows("sent-threshold-tuned", sent_row, 1.0),
        **confirming_rows("rate-esgd-over-std", rate_row, 0.1),
    },
)
