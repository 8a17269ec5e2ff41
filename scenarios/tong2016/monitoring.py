"""What section 6.6 says of the master: devices that go on from a backup, and what it costs to watch them often."""

from edgebed.studies.papers.measuring import ratio, updates_per_s
from edgebed.studies.papers.paper import Near, Row, Table

from .cells import NET
from .rows import over_row

METHODS = ("bp", "sg")
HALF_A_POINT = 0.5


def rolled_back_row(name: str) -> Row:
    """What a device that dies changes in the accuracy, where all devices go on from their backups."""
    return over_row(
        name, f"{name}-rolled-back", 10_000, Near(value=0.0, tolerance=HALF_A_POINT, published=False),
        what=f"{NET[name]}: lost by a device that dies and a roll-back",
    )  # fmt: skip


TABLE = Table(
    title="Section 6.6: a master that watches",
    seeds=5,

    rows={
        **{f"rolled-back-{name}": rolled_back_row(name) for name in METHODS},
        "watched-often": Row(
            what="Steps a second with a sign of life once in three seconds over those with 30 a second, in processes",
            cells=("bp-unpolled-timed", "bp-polled-timed"),
            measure=ratio(updates_per_s("bp-unpolled-timed"), updates_per_s("bp-polled-timed")), unit="x",
            note="30 a second is the most that `deadlines.check` allows.",
        ),
    },
)  # fmt: skip
