"""Rows of a paper that are measured again in containers, with capped processors and shaped links, at a smaller size.

Each is run in virtual time as well, at the same size and with the same caps and links: what the two differ by is what
virtual time, in which most rows are measured, leaves out.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from edgebed.core.runtimes import Runtime
from edgebed.studies.papers.measuring import difference, ratio
from edgebed.studies.papers.paper import Cell, Near, Row

IN_CONTAINERS = "-in-containers"
IN_VIRTUAL_TIME = "-in-virtual-time"
RUNTIMES: Mapping[str, Runtime] = {IN_CONTAINERS: "docker", IN_VIRTUAL_TIME: "simulation"}


def both_ways(cells: Mapping[str, Cell], *sets: str, scale: float) -> dict[str, Cell]:
    """The cells at this scale with these overrides, in containers and in virtual time, by name and ending."""

    def smaller(cell: Cell) -> Cell:
        return replace(cell, scale=scale, sets=lambda share: (*cell.sets(share), *sets))

    return {
        f"{name}{ending}": replace(smaller(cell), runtime=runtime)
        for name, cell in cells.items()
        for ending, runtime in RUNTIMES.items()
    }


def confirming_rows(key: str, row: Callable[[str], Row], tolerance: float) -> dict[str, Row]:
    """A row in containers, and what it has over the same in virtual time, which should be nothing.

    `row` makes the row from the ending of its cells' names. The tolerance of the comparison is in points for accuracies
    and their differences, and else a share of the value.
    """
    live, virtual = row(IN_CONTAINERS), row(IN_VIRTUAL_TIME)
    in_points = live.unit in {"%", "points"}
    compare, same = (difference, 0.0) if in_points else (ratio, 1.0)
    over = Row(
        what=f"{live.what}: over that in virtual time",
        cells=(*live.cells, *virtual.cells),
        measure=compare(live.measure, virtual.measure),
        unit="points" if in_points else "x",
        claim=Near(value=same, tolerance=tolerance, published=False),
        with_updates="steady",
        note=live.note,
    )
    return {f"{key}{IN_CONTAINERS}": replace(live, what=f"{live.what}, in containers"), f"{key}-over-virtual": over}


def times_note(gradient: str) -> str:
    """Why rates in containers and in virtual time differ; `gradient` is what virtual time takes for one, e.g. 25 ms."""
    return (
        f"In virtual time a gradient takes {gradient} of a core and compression nothing, as the settings say; in "
        "containers they take what this machine takes."
    )
