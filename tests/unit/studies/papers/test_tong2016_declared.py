"""The declaration of Tong et al. 2016: it fits its scenario files, and what it measures is there to be measured."""

from pathlib import Path

import msgspec
from tong2016.paper import CELLS, CURVES, EPOCHS, PAPER

from edgebed.journal.summary import TrialSummary
from edgebed.scenario.load import load_scenario

FOLDER = Path(__file__).parents[4] / "scenarios/tong2016"
FILES = ("figures-9-13.yaml", "figures-14-17.yaml")
IMAGES, BATCH = 50_000, 128


def test_the_report_has_no_mistakes():
    """Every row has its cells, every cell is in a row, no two rows have one name, nor two of a table one label."""
    assert PAPER.mistakes == ()
    for table in PAPER.tables:
        labels = [row.what for row in table.rows.values()]
        assert len(set(labels)) == len(labels)


def test_scenario_files_hold_the_cells_and_nothing_else():
    """So a scenario file holds nothing that the page does not show."""
    variants = {(name, variant) for name in FILES for variant in load_scenario(FOLDER / name).trials}
    assert {(cell.scenario, cell.variant) for cell in CELLS.values()} == variants


def test_epochs_are_so_many_mini_batches():
    """200 of CIFAR-10 are 78,200 mini-batches, 391 each, the last of them with images of the next epoch."""
    trial = load_scenario(FOLDER / "figures-9-13.yaml").trials["bp"]
    assert trial.task.batch_size == BATCH
    assert trial.stop.updates == 200 * -(-IMAGES // BATCH)
    assert CELLS["cifar-bp"].scale == EPOCHS / 200


def test_points_of_curves_are_evaluated():
    """An accuracy after so many steps is one that was measured then, in the length of the report's own runs."""
    trial = load_scenario(FOLDER / "figures-14-17.yaml").trials["bp"]
    points = [updates for _, values in CURVES.values() for updates in values]
    assert all(updates % trial.evaluation.every.updates == 0 for updates in points)
    assert max(points) == trial.stop.updates


def test_messages_of_our_own_protocol_confirm_nothing():
    """How many there are follows from it."""
    assert [name for name, row in PAPER.rows.items() if row.claim and not row.counts] == ["messages-more"]


def test_measured_numbers_are_in_a_summary():
    """Those that rows take by name."""
    names = {field.name for field in msgspec.structs.fields(TrialSummary)}
    assert {
        "messages_per_step", "exchanged_bytes", "final_loss", "gradient_loss_early", "gradient_loss_late",
        "match_staleness_mean",
    } <= names  # fmt: skip
