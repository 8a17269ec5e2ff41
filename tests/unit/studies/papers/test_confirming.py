"""Rows in containers, beside the same in virtual time: which cells they need, and what they are compared with."""

from collections.abc import Mapping

import pytest

from edgebed.studies.cells.cells import CellRun, PaperCells
from edgebed.studies.papers.confirming import IN_CONTAINERS, IN_VIRTUAL_TIME, both_ways, confirming_rows
from edgebed.studies.papers.paper import Cell, Near, Paper, Row, Unit
from edgebed.studies.papers.registry import find_paper, papers


def test_cells_are_run_in_both_with_what_their_scale_and_the_fleet_ask_for() -> None:
    """What does not scale by itself is set by the smaller scale."""
    cell = Cell(scenario="digits.yaml", variant="asgd", sets=lambda scale: (f"a={scale}",))

    cells = both_ways({"asgd": cell}, "fleet.edge.cpus=0.4", scale=0.1)

    assert {name: each.runtime for name, each in cells.items()} == {
        f"asgd{IN_CONTAINERS}": "docker",
        f"asgd{IN_VIRTUAL_TIME}": "simulation",
    }
    for each in cells.values():
        assert each.sets(each.scale) == ("a=0.1", "fleet.edge.cpus=0.4")
        assert (each.scenario, each.variant, each.scale) == ("digits.yaml", "asgd", 0.1)


@pytest.mark.parametrize(("unit", "over", "same"), [("points", 1.0, 0.0), ("%", 1.0, 0.0), ("x", 1.5, 1.0)])
def test_what_a_row_has_over_virtual_time_is_a_difference_of_points_and_else_a_ratio(
    unit: Unit, over: float, same: float
) -> None:
    """It is compared with what this project expects, which confirms nothing of the paper."""
    values: Mapping[str, float] = {IN_CONTAINERS: 3.0, IN_VIRTUAL_TIME: 2.0}

    def row(ending: str) -> Row:
        return Row(what="It", cells=(f"asgd{ending}",), measure=lambda _: values[ending], unit=unit)

    rows = confirming_rows("it", row, 0.1)

    live, compared = rows[f"it{IN_CONTAINERS}"], rows["it-over-virtual"]
    assert (live.what, live.cells, live.measure({})) == ("It, in containers", (f"asgd{IN_CONTAINERS}",), 3.0)
    assert compared.measure({}) == over
    assert compared.claim == Near(value=same, tolerance=0.1, published=False)
    assert compared.cells == (f"asgd{IN_CONTAINERS}", f"asgd{IN_VIRTUAL_TIME}")
    assert not compared.counts


@pytest.mark.parametrize("paper", [*map(find_paper, papers())], ids=lambda paper: paper.name)
def test_each_paper_has_three_rows_in_containers_whose_processors_and_links_are_limited(paper: Paper) -> None:
    """Those on time have five seeds."""
    live = {name: cell for name, cell in paper.cells.items() if cell.runtime == "docker"}
    of_containers = {name: row for name, row in paper.rows.items() if row.cells and live.keys() >= set(row.cells)}
    assert len(of_containers) >= 3
    assert all(paper.seeds[name] == 5 for name, row in of_containers.items() if row.unit == "updates/s")
    cells = PaperCells(paper)
    for name, cell in live.items():
        if name.endswith(IN_CONTAINERS):
            fleet = cells.spec(CellRun(name, cell.scale, 1)).settings["fleet"]
            assert all(each["cpus"] < 1 and each["uplink"] and each["downlink"] for each in fleet.values())
