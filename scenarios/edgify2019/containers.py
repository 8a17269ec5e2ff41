"""What compression costs and saves by large batch, measured again in containers with capped processors and links."""

from edgebed.studies.papers.confirming import both_ways, confirming_rows, times_note
from edgebed.studies.papers.measuring import difference, final_accuracy, of_summary, ratio, updates_per_s
from edgebed.studies.papers.paper import Cell, Row, Table

UPDATES = 800
"""200 rounds of four workers, half an epoch."""
SCALE = UPDATES / 156_250
BASELINE = "large-batch"
WHAT = {
    "large-batch-int8": "F2I of gradients",
    "large-batch-dgc": "DGC, 75 % of convolutions left out at first",
}
CELLS = both_ways(
    {name: Cell(scenario="accuracy.yaml", variant=name) for name in (BASELINE, *WHAT)},
    "fleet.edge={count: 4, cpus: 0.2, memory: 1GB, uplink: 10mbit, downlink: 20mbit}",
    "task.gradient_time=40ms",
    "evaluation.every=200 updates",
    scale=SCALE,
)


def keeps_row(name: str, ending: str) -> Row:
    """What compression changes in the accuracy."""
    cells = (f"{name}{ending}", f"{BASELINE}{ending}")
    measure = difference(final_accuracy(cells[0]), final_accuracy(cells[1]))
    return Row(what=f"Large batch: {WHAT[name]}, less none", cells=cells, measure=measure, unit="points")


def push_row(name: str, ending: str) -> Row:
    """How many times smaller a push is."""
    cells = (f"{name}{ending}", f"{BASELINE}{ending}")
    measure = ratio(of_summary(cells[1], "push_bytes_mean"), of_summary(cells[0], "push_bytes_mean"))
    return Row(what=f"{WHAT[name]}: how many times smaller a push is", cells=cells, measure=measure, unit="x")


def rate_row(name: str, ending: str) -> Row:
    """How many times as many rounds a second."""
    cells = (f"{name}{ending}", f"{BASELINE}{ending}")
    measure = ratio(updates_per_s(cells[0]), updates_per_s(cells[1]))
    what = f"{WHAT[name]}: rounds a second over those without"
    return Row(what=what, cells=cells, measure=measure, unit="x", note=times_note("40 ms"))


TABLE = Table(
    title="Large batch in containers",
    seeds=5,
    other_setting=True,
    rows={
        key: row
        for name in WHAT
        for key, row in (
            *confirming_rows(f"{name}-keeps", lambda ending, name=name: keeps_row(name, ending), 1.0).items(),  # type: ignore[misc]
            *confirming_rows(f"push-{name}", lambda ending, name=name: push_row(name, ending), 0.02).items(),  # type: ignore[misc]
            *confirming_rows(f"rate-{name}", lambda ending, name=name: rate_row(name, ending), 0.1).items(),  # type: ignore[misc]
        )
    },
)
