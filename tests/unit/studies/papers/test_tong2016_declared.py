"""The declaration of Tong et al. 2016: it fits its scenario files, and what it measures is there to be measured."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
from tong2016 import containers, on_training_images
from tong2016.paper import CELLS, CIFAR_BATCH, CURVES, EPOCHS, PAPER

from edgebed.journal.summary import TrialSummary
from edgebed.learning.data_sets.registry import DataSet
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
    assert trial.task.batch_size == BATCH == CIFAR_BATCH
    assert trial.stop.updates == 200 * -(-IMAGES // BATCH)
    assert CELLS["cifar-bp"].scale == EPOCHS / 200 == 2 * CELLS["cifar-direct-half"].scale


def test_points_of_curves_are_evaluated():
    """An accuracy after so many steps is one that was measured then, in the length of the report's own runs."""
    trial = load_scenario(FOLDER / "figures-14-17.yaml").trials["bp"]
    points = [updates for _, values in CURVES.values() for updates in values]
    assert all(updates % trial.evaluation.every.updates == 0 for updates in points)
    assert max(points) == trial.stop.updates


def test_time_is_measured_in_processes_and_evaluations_take_none_of_it():
    """So many steps, and one evaluation when they are done."""
    timed = {name: cell for name, cell in CELLS.items() if name.endswith("-timed")}
    assert {name for name, cell in CELLS.items() if cell.runtime == "process"} == set(timed)
    for cell in timed.values():
        steps = round(load_scenario(FOLDER / cell.scenario).trials[cell.variant].stop.updates * cell.scale)
        assert cell.sets(cell.scale) == (f"evaluation.every={steps} updates",)


def test_messages_of_our_own_protocol_confirm_nothing():
    """How many there are follows from it."""
    of_report = PAPER.rows.keys() - containers.TABLE.rows.keys()
    assert [name for name in of_report if PAPER.rows[name].claim and not PAPER.rows[name].counts] == ["messages-more"]


def test_measured_numbers_are_in_a_summary():
    """Those that rows take by name."""
    names = {field.name for field in msgspec.structs.fields(TrialSummary)}
    assert {
        "messages_per_step", "exchanged_bytes", "final_loss", "gradient_loss_early", "gradient_loss_late",
        "match_staleness_mean",
    } <= names  # fmt: skip


@pytest.mark.parametrize("name", ["bp", "direct"])
def test_a_cell_on_training_images_is_trained_as_the_other(name):
    """What it is evaluated on is all that differs."""
    trials = load_scenario(FOLDER / "figures-9-13.yaml").trials
    plain, other = trials[name], trials[f"{name}-training"]

    assert other.task.data == "on_training_images:cifar10"
    assert other.method == plain.method
    assert (other.stop, other.evaluation) == (plain.stop, plain.evaluation)
    assert CELLS[f"cifar-{name}-training"].scale == CELLS[f"cifar-{name}"].scale


def test_evaluated_images_are_training_images(monkeypatch):
    """The first of them; those to train on are left as they are."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 10, 30_000).astype(np.uint8)
    pixels = rng.integers(0, 256, (30_000, 1, 2, 2)).astype(np.uint8)
    whole = DataSet(
        name="cifar10", train_x=pixels[:20_000], train_y=labels[:20_000], test_x=pixels[20_000:],
        test_y=labels[20_000:], classes=10,
    )  # fmt: skip
    monkeypatch.setattr(on_training_images, "load_data", lambda _name, seed: whole)
    found = on_training_images.cifar10()

    assert found.train_x is whole.train_x
    np.testing.assert_array_equal(found.test_x, whole.train_x[:10_000])
    np.testing.assert_array_equal(found.test_y, whole.train_y[:10_000])
