"""What figures 14 and 17 say of the first thousand steps, measured again in containers with capped processors."""

from dataclasses import replace

from edgebed.studies.papers.confirming import IN_CONTAINERS, both_ways, confirming_rows
from edgebed.studies.papers.measuring import accuracy_at, difference, ratio, updates_per_s
from edgebed.studies.papers.paper import AtLeast, Cell, Near, Row, Sign, Table

from .causes import LONGER_STEPS, why_at
from .measures import last_over_first

STEPS = 1000
SCALE = 0.1
WHAT = {
    "bp": "Back-propagation",
    "sg": "Synthetic gradients",
    "si": "Synthetic inputs and gradients",
}
PUBLISHED = {"bp": 50, "sg": 80, "si": 62}
"""Accuracies in per cent after so many steps."""
CELLS = both_ways(
    {name: Cell(scenario="figures-14-17.yaml", variant=name) for name in WHAT},
    "fleet.edge={count: 2, cpus: 0.3, memory: 500MB, uplink: 50mbit, downlink: 50mbit}",
    "evaluation.every=500 updates",
    scale=SCALE,
    seeds=5,
)
CELLS |= {name: replace(cell, seeds=20) for name, cell in CELLS.items() if name.startswith("bp-")}
"""As many seeds as by the whole length: accuracies differ by several points from one seed to another."""


def value_row(name: str, ending: str) -> Row:
    """The accuracy after a thousand steps."""
    cell = f"{name}{ending}"
    return Row(
        what=f"{WHAT[name]}: after {STEPS:,} steps", cells=(cell,), measure=accuracy_at(cell, STEPS), unit="%",
        claim=Near(value=PUBLISHED[name], tolerance=5.0), with_updates="steady",
        cause=why_at(name, STEPS),
    )  # fmt: skip


def faster_row(ending: str) -> Row:
    """How much more synthetic gradients have learnt by then."""
    sg, bp = f"sg{ending}", f"bp{ending}"
    return Row(
        what=f"Synthetic gradients over back-propagation, after {STEPS:,} steps", cells=(sg, bp),
        measure=difference(accuracy_at(sg, STEPS), accuracy_at(bp, STEPS)), unit="points",
        claim=Sign(sign=1, value=30), with_updates="steady", cause=LONGER_STEPS,
    )  # fmt: skip


SG, BP, SI = (f"{name}{IN_CONTAINERS}" for name in ("sg", "bp", "si"))

TABLE = Table(
    title="Figures 14 and 17 in containers",
    text="Two containers with 0.3 of a core, 500 MB and 50 mbit each way make the first thousand steps. Two points are "
    "what accuracies may differ by from virtual time, and five with synthetic inputs, where it depends on the devices' "
    "pace which values meet, stated before the runs. Steps a second and the work of the devices are measured here "
    "alone.",
    rows={
        **confirming_rows("bp-1000", lambda ending: value_row("bp", ending), 2.0),
        **confirming_rows("sg-1000", lambda ending: value_row("sg", ending), 2.0),
        **confirming_rows("faster-at-first", faster_row, 2.0),
        **confirming_rows("si-1000", lambda ending: value_row("si", ending), 5.0),
        "last-slower-in-containers": Row(
            what="Synthetic inputs and gradients: the last device's work in a step over the first's, in containers",
            cells=(SI,), measure=last_over_first(SI), unit="x", claim=AtLeast(value=1.0),
            note="The report found the last layer to be always slower, without a number.",
        ),
        **{
            f"rate-{cell}": Row(
                what=f"{WHAT[name]}: steps a second, over back-propagation's", cells=(cell, BP),
                measure=ratio(updates_per_s(cell), updates_per_s(BP)), unit="x", note="Not in the report.",
            )
            for name, cell in (("sg", SG), ("si", SI))
        },
    },
)  # fmt: skip
