"""What section 6.6 says of the master: devices that go on from a backup, and what it costs to watch them often."""

from edgebed.studies.papers.measuring import accuracy_at, difference, ratio, updates_per_s
from edgebed.studies.papers.paper import Near, Row, Table

STEPS = 10_000
HALF_A_POINT = 0.5
WHAT = {"bp": "Back-propagation", "sg": "Synthetic gradients"}


def rolled_back_row(name: str) -> Row:
    """What a device that dies changes in the accuracy, where all devices go on from their backups."""
    dies = f"{name}-rolled-back"
    return Row(
        what=f"{WHAT[name]}: lost by a device that dies and a roll-back, after {STEPS:,} steps", cells=(name, dies),
        measure=difference(accuracy_at(name, STEPS), accuracy_at(dies, STEPS)), unit="points", with_updates="steady",
        claim=Near(value=0.0, tolerance=HALF_A_POINT, published=False),
    )  # fmt: skip


TABLE = Table(
    title="Section 6.6: a master that watches",
    seeds=5,
    text="By the report devices are rolled back to a backup after one of them has failed, and to ask them for their "
    "state too often *dramatically diminishes performance*; it has no number for either. Here a backup is made every "
    "500 steps, the second device dies in step 3,200, and both devices go on from their newest backups. Devices are "
    "not asked, but say by themselves that they are alive, in processes of one machine 30 times a second or once in "
    "three.",
    rows={
        **{f"rolled-back-{name}": rolled_back_row(name) for name in WHAT},
        "watched-often": Row(
            what="Steps a second with a sign of life once in three seconds over those with 30 a second, in processes",
            cells=("bp-unpolled-timed", "bp-polled-timed"),
            measure=ratio(updates_per_s("bp-unpolled-timed"), updates_per_s("bp-polled-timed")), unit="x",
            note="30 a second is the most that `deadlines.check` allows.",
        ),
    },
)  # fmt: skip
