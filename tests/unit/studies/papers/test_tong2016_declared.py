"""The declaration of Tong et al. 2016: it fits its scenario files, and what it measures is there to be measured."""

from pathlib import Path

import numpy as np
import pytest
from learning_curves import learned
from tong2016 import direct, on_training_images
from tong2016.cells import CELLS, EARLY_READINGS, INPUT_READINGS, READINGS
from tong2016.measures import falls_over_rises
from tong2016.paper import CURVES, EARLY, LATER

from edgebed.core.measures.trial import all_measures
from edgebed.learning.data_sets.data_set import DataSet
from edgebed.learning.objectives.classification import Classification
from edgebed.scenario.load import load_scenario
from edgebed.scenario.schema import TrialSection
from edgebed.studies.papers.paper import Reading

FOLDER = Path(__file__).parents[4] / "scenarios/tong2016"
IMAGES, BATCH = 50_000, 128


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
        losses = [each.task.objective.settings["loss"] for each in (printed, other)]
        assert losses == ["squared-softmax", "cross-entropy"]
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


def test_measured_numbers_are_in_a_summary():
    """Those that rows take by name."""
    assert {
        "messages_per_step", "exchanged_bytes", "final_loss", "gradient_loss_early", "gradient_loss_late",
        "match_staleness_mean",
    } <= all_measures(Classification.measures).keys()  # fmt: skip


@pytest.mark.parametrize("name", ["bp", "direct", "bp-keep", "direct-keep"])
def test_a_cell_on_training_images_is_trained_as_the_other(name):
    """What it is evaluated on is all that differs."""
    trials = load_scenario(FOLDER / "figures-9-13.yaml").trials
    plain, other = trials[name], trials[f"{name}-training"]

    assert other.task.data.name == "on_training_images:cifar10"
    assert other.method == plain.method
    assert (other.stop, other.evaluation) == (plain.stop, plain.evaluation)
    assert CELLS[f"cifar-{name}-training"].scale == CELLS[f"cifar-{name}"].scale


def test_evaluated_images_are_training_images(monkeypatch):
    """The first of them; those to train on are left as they are."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 10, 30_000).astype(np.uint8)
    pixels = rng.integers(0, 256, (30_000, 1, 2, 2)).astype(np.uint8)
    whole = DataSet(train=(pixels[:20_000], labels[:20_000]), test=(pixels[20_000:], labels[20_000:]), outputs=10)
    monkeypatch.setattr(on_training_images, "load_data", lambda _name, seed: whole)
    found = on_training_images.cifar10()

    assert found.train is whole.train
    np.testing.assert_array_equal(found.test.inputs[""], whole.train.inputs[""][:10_000])
    np.testing.assert_array_equal(found.test.targets[""], whole.train.targets[""][:10_000])
