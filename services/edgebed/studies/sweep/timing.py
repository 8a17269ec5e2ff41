"""How the runs of a sweep are timed: gradients and compressions are measured here before, or read from a file."""

from collections.abc import Callable
from pathlib import Path

from edgebed.studies.cells.cells import CellSpecs
from edgebed.studies.sweep.costs import Costs, read_costs, times_of, with_costs, write_costs
from edgebed.studies.sweep.points import Point, SweepPlan


def measured(
    points: SweepPlan, file: Path, tell: Callable[[str], None], *, keep: bool, measure: bool
) -> tuple[Costs, CellSpecs]:
    """Return the times of gradients and compressions, and recipes of the points with them.

    What `file` has is kept if `keep`; what is missing is measured if `measure`, and written to the file.
    """
    before = costs = read_costs(file) if keep else Costs()
    times: dict[Point, list[str]] = {}
    for point, trial in points.planned():
        if measure:
            costs = with_costs(trial, costs, tell)
        found = times_of(trial, costs)
        times[point] = [f"task.{key}={text}" for key, text in found.items() if not points.has_own(point, key)]
    if costs != before:
        write_costs(costs, file)
    return costs, points.recipes(times)
