"""The declaration of Tao, Li 2018: it fits its scenario file, and its measures of losses are what they say."""

import re
from pathlib import Path

import numpy as np
import pytest
from evaluated import evaluations
from tao2018.cells import BY_UPDATES, CELLS, READINGS, SCALE, UPDATES
from tao2018.measures import PARAMETERS, unsteadiness
from tao2018.paper import ABSTRACT, TABLE_2, TEN_EPOCHS
from tasks import one_array

from edgebed.algorithms.registry import configure
from edgebed.algorithms.schedule import Schedule
from edgebed.learning.models import registry as models
from edgebed.scenario.load import load_scenario
from edgebed.scenario.schema import TrialSection
from edgebed.studies.papers.measuring import mean_loss
from edgebed.studies.trial_result import FinishedTrial

FOLDER = Path(__file__).parents[4] / "scenarios/tao2018"
IMAGES = 60_000
IN_ALL = {"": 200_000, "-of-64": 150_000, "-short": 100_000}
"""Ending of a cell's name -> iterations in the paper."""


def evaluated(*losses: float) -> dict[str, FinishedTrial]:
    """A cell's trial with these losses; measures of losses read nothing else."""
    count = np.arange(len(losses))
    measured = evaluations(count, 0.0 * count, losses)
    return {"cell": FinishedTrial(plan=None, summary=None, evaluations=measured)}  # type: ignore[arg-type]


def test_each_cell_is_a_share_of_the_iterations_of_the_paper() -> None:
    """Of four updates each."""
    for name, trial in load_scenario(FOLDER / "tables.yaml").trials.items():
        base = re.sub("(-signed)?(-tuned|-by-updates|-letter)?$", "", name)
        iterations = next(count for ending, count in reversed(IN_ALL.items()) if base.endswith(ending))
        assert trial.stop.updates == trial.num_workers * iterations
        assert CELLS[name].scale == SCALE


@pytest.mark.parametrize("cell", [name for name in load_scenario(FOLDER / "tables.yaml").trials if "esgd" in name])
def test_a_cell_drops_the_share_that_it_is_called_by(cell: str) -> None:
    """A quarter, half, three quarters or seven eighths of the entries."""
    trial = load_scenario(FOLDER / "tables.yaml").trials[cell]
    dropped = 1 - trial.method.parts["compression"].settings.get("fraction", 0.5)
    assert {"25": 0.25, "50": 0.5, "75": 0.75, "87": 0.875}[cell.split("-")[1]] == dropped


@pytest.mark.parametrize("cell", BY_UPDATES)
def test_a_learning_rate_by_updates_is_that_of_mini_batches_of_128(cell: str) -> None:
    """Within 12 %, after each of the updates that are run."""
    trials = load_scenario(FOLDER / "tables.yaml").trials
    ours, theirs = (trials[name] for name in (f"{cell}-by-updates", "std"))

    def rate(trial: TrialSection, update: int) -> float:
        return Schedule(configure("aggregation", trial.method.parts["aggregation"])).rate(
            update * trial.task.batch_size / IMAGES
        )

    assert ours.task.batch_size < theirs.task.batch_size
    assert all(
        0.88 < rate(ours, update) / rate(theirs, update) < 1.12 for update in range(1, round(UPDATES * SCALE), 37)
    )


def test_a_reading_changes_what_it_is_called_by_in_every_method_alike() -> None:
    """Against the first reading, variant by variant: no more, no less."""
    trials = load_scenario(FOLDER / "tables.yaml").trials
    changed = {
        "magnitudes": {"compression": {"threshold"}},
        "constant rate": {"aggregation": {"schedule"}},
        "to the letter": {"compression": {"again", "step"}},
    }
    for reading in READINGS:
        for own, other in reading.cells.items() if reading.name in changed else ():
            before, after = (trials[cell] for cell in (own, other))
            assert (before.task, before.stop) == (after.task, after.stop)
            for part, settings in changed[reading.name].items():
                mine, theirs = (configure(part, trial.method.parts[part]) for trial in (before, after))
                assert {name for name in vars(mine) if getattr(mine, name) != getattr(theirs, name)} == settings
    assert {reading.name for reading in READINGS} == {"as printed", "rate by updates", *changed}


def test_ten_epochs_are_so_many_updates() -> None:
    """An epoch is 469, the last with images of the next; and they are run."""
    trial = load_scenario(FOLDER / "tables.yaml").trials["std"]
    assert 10 * -(-IMAGES // trial.task.batch_size) == TEN_EPOCHS
    assert TEN_EPOCHS < UPDATES * SCALE


def test_the_abstract_contradicts_table_2() -> None:
    """With seven eighths dropped by seven points."""
    assert TABLE_2["esgd-87"] - ABSTRACT["esgd-87"] == pytest.approx(6.96)
    assert sum(tensor.size for tensor in models.layout("cnn", one_array((1, 28, 28)), 10)) == PARAMETERS


def test_the_loss_of_the_initial_weights_is_not_in_the_mean() -> None:
    """It is nobody's training."""
    assert mean_loss("cell")(evaluated(2.3, 0.5, 0.3)) == pytest.approx(0.4)
    assert mean_loss("cell")(evaluated(2.3)) is None


def test_a_steady_fall_is_not_unsteady() -> None:
    """However steep it is, and however steep the first half was; an up and down is as unsteady as it is large."""
    assert unsteadiness("cell")(evaluated(9.0, 2.0, 4.0, 3.0, 2.0, 1.0)) == pytest.approx(0.0)
    assert unsteadiness("cell")(evaluated(9.0, 2.0, 8.0, 1.0, 1.0, 1.1, 1.0, 1.1, 1.0)) == pytest.approx(0.1)
    assert unsteadiness("cell")(evaluated(9.0, 2.0, 1.0, 1.0)) is None
