"""What figures 14 and 17 say of the first thousand steps, measured again in containers with capped processors."""

from dataclasses import replace

from edgebed.studies.papers.confirming import IN_CONTAINERS, both_ways, confirming_rows
from edgebed.studies.papers.measuring import accuracy_at, difference, ratio, updates_per_s
from edgebed.studies.papers.paper import AtLeast, Cell, Near, Row, Sign, Table

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
TWO_POINTS = 2.0
"""Points by which accuracies may differ between runtimes."""
FIVE_POINTS = 5.0
CELLS = both_ways(
    {name: Cell(scenario="figures-14-17.yaml", variant=name) for name in WHAT},
    "fleet.edge={count: 2, cpus: 0.3, memory: 500MB, uplink: 50mbit, downlink: 50mbit}",
    "evaluation.every=500 updates",
    scale=SCALE,
)


def value_row(name: str, ending: str) -> Row:
    """The accuracy after a thousand steps."""
    cell = f"{name}{ending}"
    return Row(
        what=f"{WHAT[name]}: after {STEPS:,} steps", cells=(cell,), measure=accuracy_at(cell, STEPS), unit="%",
        claim=Near(value=PUBLISHED[name], tolerance=FIVE_POINTS), with_updates="steady",
    )  # fmt: skip


def faster_row(ending: str) -> Row:
    """How much more synthetic gradients have learnt by then."""
    sg, bp = f"sg{ending}", f"bp{ending}"
    return Row(
        what=f"Synthetic gradients over back-propagation, after {STEPS:,} steps", cells=(sg, bp),
        measure=difference(accuracy_at(sg, STEPS), accuracy_at(bp, STEPS)), unit="points",
        claim=Sign(sign=1, value=30), with_updates="steady",
    )  # fmt: skip


def again(rows: dict[str, Row]) -> dict[str, Row]:
    """Rows in containers beside those of the same name in virtual time, whose claims they measure again."""
    return {
        name: replace(row, beside=name.removesuffix(IN_CONTAINERS)) if name.endswith(IN_CONTAINERS) else row
        for name, row in rows.items()
    }


SG, BP, SI = (f"{name}{IN_CONTAINERS}" for name in ("sg", "bp", "si"))


def rate_row(name: str, cell: str) -> Row:
    """A row for how many steps a second a method makes, over back-propagation's."""
    measure = ratio(updates_per_s(cell), updates_per_s(BP))
    return Row(
        what=f"{WHAT[name]}: steps a second, over back-propagation's", cells=(cell, BP), measure=measure, unit="x"
    )


TABLE = Table(
    title="Figures 14 and 17 in containers",
    seeds=5,

    rows={
        **again({
            **confirming_rows("bp-1000", lambda ending: value_row("bp", ending), TWO_POINTS),
            **confirming_rows("sg-1000", lambda ending: value_row("sg", ending), TWO_POINTS),
            **confirming_rows("faster-at-first", faster_row, TWO_POINTS),
            **confirming_rows("si-1000", lambda ending: value_row("si", ending), FIVE_POINTS),
        }),
        "last-slower-in-containers": Row(
            what="Synthetic inputs and gradients: the last device's work in a step over the first's, in containers",
            cells=(SI,), measure=last_over_first(SI), unit="x", claim=AtLeast(value=1.0), beside="last-slower",
        ),
        f"rate-{SG}": replace(
            rate_row("sg", SG),
            claim=AtLeast(value=1.0),
            note="Section 8.3.3: synthetic gradients could accelerate training by removing locks. The report compares "
            "no times.",
        ),
        f"rate-{SI}": rate_row("si", SI),
    },
)  # fmt: skip
