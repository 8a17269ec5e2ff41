"""Section 4.3 of Chen et al. 2019: iterations a second in containers."""

from dataclasses import replace

from edgebed.studies.papers.measuring import of_summary, ratio, updates_per_s
from edgebed.studies.papers.paper import Claim, Row, Table

from .accuracy import accuracy_row, gap_row
from .caps import PUBLISHED
from .cells import DEPLOYED, OTHER_RATES, RATES


def rate_row(cell: str, what: str) -> Row:
    """A row for the iterations a second."""
    return Row(what=what, cells=(cell,), measure=updates_per_s(cell), unit="updates/s")


def times_row(cell: str, baseline: str, what: str, claim: Claim | None = None, note: str = "") -> Row:
    """A row for the iterations a second of one cell in units of another's."""
    measure = ratio(updates_per_s(cell), updates_per_s(baseline))
    return Row(what=what, cells=(cell, baseline), measure=measure, unit="x", claim=claim, note=note)


DEPLOYMENT = Table(
    title="Section 4.3: iterations a second in containers",
    seeds=5,
    other_setting=True,

    rows={
        **{f"rate-{cell}": rate_row(cell, what) for cell, what in RATES.items()},
        "faster-than-whole": replace(
            times_row(
                "sg", "whole", "Synthetic gradients on four devices over back-propagation on one without a cap",
                PUBLISHED, "The paper's 185 over 166.",
            ),
            beside="faster-than-whole-1",
        ),
        "faster-than-whole-capped": times_row(
            "sg", "whole-capped", "Synthetic gradients on four devices over back-propagation on one of them"
        ),
        "faster": times_row("sg", "bp", "Synthetic gradients over back-propagation on the same devices"),
        "bytes-over-bp": Row(
            what="Bytes between devices in a step: synthetic gradients over back-propagation on the same devices",
            cells=("sg", "bp"), measure=ratio(of_summary("sg", "bytes_per_step"), of_summary("bp", "bytes_per_step")),
            unit="x",
            note="By the paper's sections 2.1 and 3.2 the network has less to carry. Here a gradient comes down for "
            "each activation, since it is what the module is taught, as section 3.1 has it.",
        ),
    },
)  # fmt: skip

FASTER = {
    "faster-than-parts": ("sg", "bp-4-parts", "with four micro-batches"),
    "faster-store": ("sg-store", "bp-store", "through the store"),
    "faster-20mbit": ("sg-20mbit", "bp-20mbit", "on links of 20 mbit"),
    "faster-store-20mbit": ("sg-store-20mbit", "bp-store-20mbit", "through the store, on links of 20 mbit"),
    "faster-20mbit-int8": ("sg-20mbit-int8", "bp-20mbit-int8", "on links of 20 mbit, int8"),
}
"""Rows on rates: whose rate, in units of whose, and where."""

LINKS = Table(
    title="Section 4.3: slow links, a store, micro-batches",
    seeds=5,
    other_setting=True,
    rows={
        **{f"rate-{cell}": rate_row(cell, what) for cell, what in OTHER_RATES.items()},
        **{
            row: times_row(cell, baseline, f"Synthetic gradients over back-propagation {words}")
            for row, (cell, baseline, words) in FASTER.items()
        },
    },
)

IN_CONTAINERS = Table(
    title="Section 4.3: accuracy in containers",
    seeds=3,
    other_setting=True,
    rows={
        "deployed-accuracy": accuracy_row(DEPLOYED, "Four layers in containers: accuracy"),
        "deployed-loss": gap_row(
            DEPLOYED,
            "four-layers-sg",
            "Its accuracy over that of the same training in simulation",
            note="What it may cost that real devices are not in step.",
        ),
    },
)
