"""The declaration of Chen et al. 2019: it fits its scenario files, and what it says of sizes is so."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from chen2019.accuracy import HALF_A_POINT, TABLE_1
from chen2019.cells import (
    BP,
    CELLS,
    EARLY,
    EARLY_EVERY,
    MODELS,
    PRINTED,
    PRINTED_RATE,
    READINGS,
    SG,
    UPDATES,
)
from chen2019.measures import accuracy_within
from chen2019.paper import PAPER
from evaluated import evaluations

from edgebed.scenario.load import load_scenario
from edgebed.studies.cells.cells import CellRun, PaperCells

FOLDER = Path(__file__).parents[4] / "scenarios/chen2019"


@pytest.fixture(scope="module")
def cells() -> PaperCells:
    """Of the paper."""
    return PaperCells(PAPER)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name, cell in CELLS.items() if cell.scenario == "table-1.yaml" and cell.scale > EARLY / UPDATES]
)
def test_the_learning_rate_falls_where_the_paper_has_it(cells, name):
    """At 300,000 and 400,000 of 500,000 steps, whatever the size; the scenario's own is the paper's size."""
    scale = CELLS[name].scale
    plan = cells.plans([CellRun(name, scale, 1)])[CellRun(name, scale, 1)]
    shard = plan.node("edge-0").shard
    first, second = plan.node("edge-0").method.parts["optimizer"].settings["decay_at"]

    assert shard is not None
    assert shard.steps == round(UPDATES * scale)
    assert (first / shard.steps, second / shard.steps) == (0.6, 0.8)
    assert cells.scenario(name).trials[CELLS[name].variant].stop.updates == UPDATES


@pytest.mark.slow
@pytest.mark.parametrize("row", ["reaches-four-layers-sg", "reaches-eight-layers-sg", "depth-slows"])
def test_how_soon_is_evaluated_more_finely_than_what_it_is_to_tell(cells, row):
    """A factor of two between some hundred steps, in the beginning of the paper's own training."""
    for name in PAPER.rows[row].cells:
        run = CellRun(name, CELLS[name].scale, 1)
        node = cells.plans([run])[run].node("edge-0")

        assert cells.spec(run).updates == EARLY
        assert node.shard is not None
        assert node.shard.weights_every == EARLY_EVERY
        assert node.method.parts["optimizer"].settings["decay_at"] == [300_000, 400_000]


def test_an_accuracy_of_one_method_is_not_one_of_the_other():
    """With four layers table 1 has 0.7 points between them."""
    assert all(of_bp - of_sg > HALF_A_POINT for of_bp, of_sg in TABLE_1.values())


@pytest.mark.parametrize("reading", READINGS[1:], ids=[reading.name for reading in READINGS[1:]])
def test_a_reading_is_one_setting_for_all_models(reading):
    """Optimizer and mini-batches of both methods, and what modules are taught and learn by."""
    trials = load_scenario(FOLDER / "table-1.yaml").trials
    by_bp, by_sg = (
        [trials[CELLS[reading.cells.get(cell, cell)].variant] for cell in every_cell(method)] for method in (BP, SG)
    )

    assert len({(trial.task.batch_size, str(trial.method.parts["optimizer"])) for trial in by_bp + by_sg}) == 1
    assert len({str(trial.method.parts["learning"]) for trial in by_sg}) == 1
    assert len({str(trial.method.parts.get("module_optimizer")) for trial in by_sg}) == 1


def every_cell(method: str) -> list[str]:
    """The cells of a method as the paper is read first."""
    return [PRINTED[model] if method == SG else f"{model}-{method}" for model in MODELS]


def evaluated(rate, accuracies, every):
    """A trial with this learning rate and evaluations so many steps apart, as far as measures look at it."""
    count = len(accuracies)
    plan = SimpleNamespace(
        node=lambda _: SimpleNamespace(
            method=SimpleNamespace(parts={"optimizer": SimpleNamespace(settings={"learning_rate": rate})})
        )
    )
    measured = evaluations(np.arange(count) * every, accuracies, final=np.arange(count) == count - 1)
    return SimpleNamespace(plan=plan, evaluations=measured)


@pytest.mark.parametrize(
    ("cell", "steps", "accuracy"),
    [("slow", 150, 80.0), ("slow", 100_000, 95.0), ("fast", 20_000, 80.0), ("fast", 10_000, 10.0)],
)
def test_an_accuracy_within_steps_is_the_last_until_then(cell, steps, accuracy):
    """Steps are of the published length; a run that ended before gives its last."""
    trials = {"slow": evaluated(PRINTED_RATE, [0.1, 0.8, 0.95], 100), "fast": evaluated(0.01, [0.1, 0.8, 0.95], 50)}

    assert accuracy_within(cell, steps)(trials) == pytest.approx(accuracy)


def test_a_mistake_is_found():
    """A reading of a cell that no row has."""
    table = PAPER.tables[0]
    broken = replace(table, readings=(replace(READINGS[1], cells={"nowhere": "four-layers-sg"}),))

    assert any("nowhere" in mistake for mistake in replace(PAPER, tables=(broken, *PAPER.tables[1:])).mistakes)
