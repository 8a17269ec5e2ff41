"""The command `sweep`: which method wins on which link, by the section `sweep` of a scenario."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgebed.cli_options import (
    Figures,
    Json,
    Processes,
    RunsDir,
    ScenarioFile,
    Sets,
    end_interrupted,
    end_with,
    make_figures,
    require_figures,
)
from edgebed.errors import ScenarioError
from edgebed.observe.output import put, put_json, put_rich, say

if TYPE_CHECKING:
    from edgebed.comparing.cells import Recipes
    from edgebed.comparing.costs import Costs
    from edgebed.comparing.points import Point, Points


def sweep(
    scenario: ScenarioFile,
    *,
    sets: Sets = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep what has been measured and run, and go on with what broke off.")
    ] = False,
    no_run: Annotated[bool, typer.Option("--no-run", help="Run nothing: say what the runs there are say.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Folder of the page (default: sweeps/ in the runs folder)."),
    ] = None,
    figures: Figures = None,
    json: Json = False,
    processes: Processes = None,
    runs_dir: RunsDir = None,
) -> None:
    """Run every method at every point of a scenario's sweep, in simulation: time, bytes, CPU time, who wins where."""
    from edgebed.comparing.costs import FILE as COSTS_FILE
    from edgebed.comparing.keeping import FILE, Kept
    from edgebed.comparing.markdown import make_folder
    from edgebed.comparing.points import read_points, sweep_command
    from edgebed.comparing.running_cells import CellRunner
    from edgebed.comparing.sweep_charts import charts_of_sweep
    from edgebed.comparing.sweep_page import sweep_page
    from edgebed.comparing.sweep_text import print_sweep
    from edgebed.comparing.swept import evaluate_sweep
    from edgebed.observe.progress import Progress
    from edgebed.observe.run_folder import runs_root

    points = read_points(scenario, sets or ())
    if output is not None and output.exists() and not output.is_dir():
        raise ScenarioError(f"--output: {output} is not a folder; the page and its charts need one")
    require_figures(figures)
    root = runs_root(runs_dir)
    folder = output or root / "sweeps"
    charts = make_folder(folder, points.scenario.name)  # before hours of training, not after
    failed = {}
    try:
        costs, cells = _measured(points, charts / COSTS_FILE, keep=resume or no_run, measure=not no_run)
        kept = Kept(cells, charts / FILE)
        if not no_run:
            with Progress() as progress:
                runner = CellRunner(
                    cells=cells, root=root, kept=kept, resume=resume, processes=processes, progress=progress, tell=say
                )
                runner.run(points.runs)
                failed = runner.failed
    except KeyboardInterrupt:
        end_interrupted()
    result = evaluate_sweep(points, cells, root, kept, costs, say)
    kept.keep_only(points.runs)
    kept.write()
    drawn = charts_of_sweep(result)
    page = sweep_page(result, sweep_command(points, sets or ()), drawn).write(drawn, folder)
    make_figures(figures, lambda: drawn)
    problems = [f"{run.cell}, seed {run.seed}: {reason}" for run, reason in failed.items()]
    if json:
        put_json({"sweep": result, "failed": problems, "page": str(page)})
    else:
        put_rich(lambda console: print_sweep(result, console))
        put(f"page: {page}")
    end_with(problems)


def _measured(points: "Points", file: Path, *, keep: bool, measure: bool) -> "tuple[Costs, Recipes]":
    """What gradients and compressions take, of this machine or as in the file; and how to run the points with that."""
    from edgebed.comparing.costs import Costs, read_costs, times_of, with_costs, write_costs

    before = costs = read_costs(file) if keep else Costs()
    times: dict[Point, list[str]] = {}
    for point, trial in points.planned():
        if measure:
            costs = with_costs(trial, costs, say)
        found = times_of(trial, costs)
        times[point] = [f"task.{key}={text}" for key, text in found.items() if not points.has_own(point, key)]
    if costs != before:
        write_costs(costs, file)
    return costs, points.recipes(times)
