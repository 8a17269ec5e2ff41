"""What the post says of networks: the slowest device sets the tone, and training resumes after a congestion."""

from edgebed.studies.papers.confirming import IN_CONTAINERS
from edgebed.studies.papers.measuring import difference, final_accuracy, ratio, updates_per_s
from edgebed.studies.papers.paper import Cell, Near, Row, Table

from . import containers

UPDATES = 200
"""50 rounds of four workers."""
CUT_S = 20
TOLERANCE = 0.1
"""The share by which rates may differ and count as equal."""
A_POINT = 1.0
DEVICE = "cpus: 0.2, memory: 1GB, downlink: 20mbit"
FAST, SLOW = f"{{count: %d, {DEVICE}, uplink: 10mbit}}", f"{{count: %d, {DEVICE}, uplink: 2mbit}}"
FLEETS = {
    "all-fast": (f"fleet.edge={FAST % 4}",),
    "one-slow": (f"fleet.edge={FAST % 3}", f"fleet.slow={SLOW % 1}"),
    "all-slow": (f"fleet.edge={SLOW % 4}",),
}
BASELINE = f"{containers.BASELINE}{IN_CONTAINERS}"
CONGESTED = f"{containers.BASELINE}-congested"


def in_containers(updates: int, *sets: str) -> Cell:
    """A cell of large batch in containers, evaluated at its end."""
    settings = (*sets, "task.gradient_time=40ms", f"evaluation.every={updates} updates")
    return Cell(
        scenario="accuracy.yaml",
        variant=containers.BASELINE,
        scale=updates / 156_250,
        runtime="docker",
        sets=lambda _: settings,
    )


CELLS = {
    **{fleet: in_containers(UPDATES, *sets) for fleet, sets in FLEETS.items()},
    CONGESTED: in_containers(
        containers.UPDATES,
        f"fleet.edge={FAST % 4}",
        f"faults=[{{cut: workers, at_update: {containers.UPDATES // 2}, for: {CUT_S}s}}]",
    ),
}


def rates_row(what: str, over: str, claim: Near | None = None) -> Row:
    """A row for the rounds a second of a fleet with one slow device, over those of another fleet."""
    measure = ratio(updates_per_s("one-slow"), updates_per_s(over))
    return Row(what=what, cells=("one-slow", over), measure=measure, unit="x", claim=claim)


TABLE = Table(
    title="The network, in containers",
    seeds=3,
    other_setting=True,
    rows={
        "slowest-sets-the-tone": rates_row(
            "Rounds a second with one slow device of four, over those with four",
            "all-slow",
            Near(value=1.0, tolerance=TOLERANCE, published=False),
        ),
        "slowest-over-fast": rates_row(
            "Rounds a second with one slow device of four, over those with none", "all-fast"
        ),
        "goes-on-after-congestion": Row(
            what="Large batch: lost by a congestion",
            cells=(BASELINE, CONGESTED),
            measure=difference(final_accuracy(BASELINE), final_accuracy(CONGESTED)),
            unit="points",
            with_updates="steady",
            claim=Near(value=0.0, tolerance=A_POINT, published=False),
        ),
    },
)
