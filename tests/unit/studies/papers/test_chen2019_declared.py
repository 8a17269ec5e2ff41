"""The declaration of Chen et al. 2019: it fits its scenario files, and what it says of sizes is so."""

from pathlib import Path

import pytest
from chen2019.cells import CELLS, EARLY, EARLY_EVERY, RATES, UPDATES
from chen2019.paper import PAPER, TABLE_1

from edgebed.scenario.load import load_scenario
from edgebed.studies.cells.cells import CellRun, PaperCells

FOLDER = Path(__file__).parents[4] / "scenarios/chen2019"
FILES = ("table-1.yaml", "section-4-3.yaml")


@pytest.fixture(scope="module")
def cells() -> PaperCells:
    """Of the paper."""
    return PaperCells(PAPER)


def test_the_paper_has_no_mistakes():
    """Every row has its cells, every cell is in a row, no two rows have one name, nor two of a table one label."""
    assert PAPER.mistakes == ()
    for table in PAPER.tables:
        labels = [row.what for row in table.rows.values()]
        assert len(set(labels)) == len(labels)


def test_each_variant_is_a_cell_and_each_cell_a_variant():
    """So a scenario file holds nothing that the paper's page does not show."""
    variants = {(name, variant) for name in FILES for variant in load_scenario(FOLDER / name).trials}
    assert {(cell.scenario, cell.variant) for cell in CELLS.values()} == variants


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


def test_rates_are_measured_in_containers():
    """In virtual time they would be what the scenario says of the devices."""
    assert {CELLS[name].runtime for name in RATES} == {"docker"}


def test_the_published_gaps_are_those_of_the_table():
    """Table 1: less than a point with four layers, 6.8 with eight, some 15 with VGG16."""
    gaps = {model: PAPER.rows[f"{model}-gap"].claim.value for model in TABLE_1}
    assert gaps == {"four-layers": 0.7, "eight-layers": 6.8, "vgg16": 14.9}
