"""The declaration of Tong et al. 2016: it fits its scenario files, and what it measures is there to be measured."""

from pathlib import Path

import numpy as np
import pytest
from learning_curves import learned
from tong2016 import containers, direct, monitoring, on_training_images
from tong2016.cells import CELLS, EARLY_READINGS, INPUT_READINGS, READINGS
from tong2016.measures import falls_over_rises
from tong2016.paper import CURVES, EARLY, LATER, PAPER

from edgebed.core.measures.trial import MEASURES
from edgebed.learning.data_sets.registry import DataSet
from edgebed.scenario.load import load_scenario
from edgebed.scenario.schema import TrialSection
from edgebed.studies.papers.paper import Reading

FOLDER = Path(__file__).parents[4] / "scenarios/tong2016"
FILES = ("figures-9-13.yaml", "figures-14-17.yaml", "figures-15-16.yaml")
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
    assert trial.task.batch_size == BATCH == direct.BATCH
    assert trial.stop.updates == 200 * -(-IMAGES // BATCH)
    assert CELLS["cifar-bp-keep"].scale == CELLS["cifar-bp"].scale == direct.EPOCHS / 200


def declared(cell: str) -> TrialSection:
    """What a cell is set to."""
    return load_scenario(FOLDER / CELLS[cell].scenario).trials[CELLS[cell].variant]


def test_points_of_curves_are_evaluated():
    """An accuracy after so many steps is one that was measured then, in the length of the report's own runs."""
    trial = declared("bp")
    points = [updates for _, values in CURVES.values() for updates in values] + [*EARLY, *LATER]
    assert all(updates % trial.evaluation.every.updates == 0 for updates in points)
    assert max(points) == trial.stop.updates


def test_a_curve_counts_once_by_its_last_step():
    """Its other points stand beside that, and so does what goes on when the other curve has ended."""
    curves = {cell: max(points) for cell, (_, points) in CURVES.items()} | {"sg-early": max(EARLY)}
    for cell, last in curves.items():
        rows = {name: row for name, row in PAPER.rows.items() if name.rpartition("-")[0] == cell and row.unit == "%"}
        assert [name for name, row in rows.items() if row.is_primary] == [f"{cell}-{last}"]
        assert {row.beside for row in rows.values()} == {"", f"{cell}-{last}"}


def test_each_claim_is_counted_once():
    """By these rows; all others with a claim stand beside one of them, or beside a point of its curve."""
    curves = [f"{cell}-{max(points)}" for cell, (_, points) in CURVES.items()]
    of_images = [f"cifar-{name}{images}{what}" for name in ("bp", "direct") for images in ("", "-training")
                 for what in ("", "-loss")]  # fmt: skip
    words = {
        "faster-at-first", "better-in-the-end", "less-steady", "inputs-weaken", "blocked-is-better", "trick-costs",
        "cifar-gain", "cifar-faster", "cifar-gradient-loss", "cifar-slower", "last-slower", "rate-sg-in-containers",
    }  # fmt: skip
    primary = {name for name, row in PAPER.rows.items() if row.is_primary}
    assert primary == {*curves, f"sg-early-{max(EARLY)}", *of_images, *words}
    beside = {row.beside for row in PAPER.rows.values() if row.beside}
    assert all(name in primary or PAPER.rows[name].beside in primary for name in beside)


def test_numbers_of_seeds_are_stated_by_table():
    """Ten of runs of a minute, three of CIFAR-10 and of what is measured live, five in containers."""
    stated = {table.title: table.seeds for table in PAPER.tables}
    assert stated[direct.TABLE.title] == 3
    assert stated[containers.TABLE.title] == 5
    assert {seeds for title, seeds in stated.items() if title.startswith(("Figures 14 to 16", "Figure 17:"))} == {10}
    assert stated[monitoring.TABLE.title] == 5
    timed = [
        name
        for name in PAPER.rows.keys() - monitoring.TABLE.rows.keys()
        if PAPER.rows[name].cells[0].endswith("-timed")
    ]
    assert {PAPER.seeds[name] for name in timed} == {3}


def switched(reading: Reading) -> dict[str, tuple[TrialSection, TrialSection]]:
    """What the cells of a reading are set to, and those in whose place they are."""
    return {cell: (declared(cell), declared(other)) for cell, other in reading.cells.items()}


def rate_of(trial: TrialSection) -> float:
    """The learning rate of the layers."""
    return trial.method.parts["optimizer"].settings["learning_rate"]


def same_but(trial: TrialSection, other: TrialSection, *parts: str) -> bool:
    """Whether two trials have the same method but for the learning rates of these parts, and the rest in common."""
    of_trial, of_other = trial.method.parts, other.method.parts
    rate = {"learning_rate": 0.0}
    return (
        (trial.task, trial.fleet, trial.sharding, trial.stop) == (other.task, other.fleet, other.sharding, other.stop)
        and {kind: part for kind, part in of_trial.items() if kind not in parts}
        == {kind: part for kind, part in of_other.items() if kind not in parts}
        and all(
            part in of_trial and of_trial[part].settings | rate == of_other[part].settings | rate
            for part in parts
            if part in of_other
        )
    )


@pytest.mark.parametrize(
    ("readings", "name", "times"),
    [
        (READINGS, "longer steps", 10), (INPUT_READINGS, "longer steps", 10), (READINGS, "one rate of 0.1", 10),
        (EARLY_READINGS, "one rate of 0.1", 10), (READINGS, "summed loss", 100), (INPUT_READINGS, "summed loss", 100),
    ],
)  # fmt: skip
def test_a_reading_of_the_rates_changes_them_by_one_factor_and_nothing_else(readings, name, times):
    """That of all cells that it has."""
    (reading,) = (each for each in readings if each.name == name)
    for printed, other in switched(reading).values():
        assert rate_of(other) == pytest.approx(times * rate_of(printed))
        assert same_but(printed, other, "optimizer")


@pytest.mark.parametrize("readings", [READINGS, INPUT_READINGS])
def test_the_reading_of_the_loss_changes_the_loss_alone(readings):
    """The rates are those as printed."""
    (reading,) = (each for each in readings if each.name == "cross-entropy")
    for printed, other in switched(reading).values():
        assert (printed.task.loss, other.task.loss) == ("squared", "cross-entropy")
        assert same_but(printed, other.model_copy(update={"task": printed.task}))


def test_the_reading_of_dropout_changes_the_model_alone():
    """By both methods, on test images and on training images."""
    printed_first, usual = direct.READINGS
    assert not printed_first.cells
    assert set(usual.cells) == {cell for cell in direct.CELLS if "-keep" in cell}
    for printed, other in switched(usual).values():
        assert (printed.task.model, other.task.model) == ("cifar-cnn-keep", "cifar-cnn")
        task = other.task.model_copy(update={"model": printed.task.model})
        assert same_but(printed, other.model_copy(update={"task": task}))


def test_readings_of_one_table_have_all_cells_of_its_first():
    """But where a reading says that it leaves back-propagation as printed, or the rate is its already."""
    for readings, cells in ((READINGS, {"sg", "bp", "bp-ten-times"}), (INPUT_READINGS, {"sg", "si", "si-blocked"})):
        missing = {reading.name: cells - set(reading.cells) for reading in readings[1:]}
        assert {name: left for name, left in missing.items() if left} == (
            {"longer steps": {"bp", "bp-ten-times"}, "one rate of 0.1": {"bp-ten-times"}}
            if readings is READINGS
            else {}
        )


@pytest.mark.parametrize("ending", ["", "-ten-times"])
def test_a_fixed_module_predicts_inputs_and_is_not_taught(ending):
    """All else learns as with synthetic inputs; behind a fixed first layer nothing is predicted."""
    taught, fixed = declared(f"si{ending}"), declared(f"si-fixed-inputs{ending}")
    parts = dict(fixed.method.parts)
    assert parts.pop("input_optimizer").settings["learning_rate"] == 0
    assert parts == taught.method.parts
    whole, encoder = declared("bp-ten-times" if ending else "bp"), declared(f"random-encoder{ending}")
    assert encoder.method == whole.method
    assert encoder.sharding.frozen == ["edge-0"]


def test_falls_are_set_against_rises():
    """A rise without a fall has none; a curve that ends where it began has as many."""

    def of(*accuracies):
        return falls_over_rises("a")({"a": learned(range(len(accuracies)), accuracies)})

    assert of(0.1, 0.2, 0.2, 0.5) == 0
    assert of(0.1, 0.5, 0.3, 0.5) == pytest.approx(0.2 / 0.6)
    assert of(0.1, 0.3, 0.1) == pytest.approx(1)
    assert of(0.3, 0.1) is None


def test_time_is_measured_in_processes_and_evaluations_take_none_of_it():
    """So many steps, and one evaluation when they are done."""
    timed = {name: cell for name, cell in CELLS.items() if name.endswith("-timed")}
    assert {name for name, cell in CELLS.items() if cell.runtime == "process"} == set(timed)
    for cell in timed.values():
        steps = round(load_scenario(FOLDER / cell.scenario).trials[cell.variant].stop.updates * cell.scale)
        assert cell.sets(cell.scale) == (f"evaluation.every={steps} updates",)


def test_messages_of_our_own_protocol_confirm_nothing():
    """How many there are follows from it."""
    of_report = PAPER.rows.keys() - containers.TABLE.rows.keys() - monitoring.TABLE.rows.keys()
    assert [name for name in of_report if PAPER.rows[name].claim and not PAPER.rows[name].counts] == ["messages-more"]


def test_the_report_has_no_number_for_what_its_master_does():
    """What is measured of it confirms nothing."""
    assert not any(row.counts for row in monitoring.TABLE.rows.values() if row.claim)


def test_measured_numbers_are_in_a_summary():
    """Those that rows take by name."""
    assert {
        "messages_per_step", "exchanged_bytes", "final_loss", "gradient_loss_early", "gradient_loss_late",
        "match_staleness_mean",
    } <= MEASURES.keys()  # fmt: skip


@pytest.mark.parametrize("name", ["bp", "direct", "bp-keep", "direct-keep"])
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
