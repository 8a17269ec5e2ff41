"""The command `sweep`: which method wins on which link, by the section `sweep` of a scenario."""

from pathlib import Path
from typing import Annotated

import typer

from edgebed.cli.options import (
    Figures,
    Json,
    Processes,
    RunsDir,
    ScenarioFile,
    Sets,
    end_interrupted,
    end_with,
    make_figures,
    put_parts,
    require_figures,
)
from edgebed.core.console import put, put_json, say


def sweep(
    scenario: ScenarioFile,
    *,
    sets: Sets = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Reuse what has been measured and run, and resume what broke off.")
    ] = False,
    no_run: Annotated[bool, typer.Option("--no-run", help="Run nothing: evaluate existing runs.")] = False,
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
    from edgebed.reports.live.progress import ProgressDisplay
    from edgebed.reports.studies.study import Means
    from edgebed.reports.studies.study import sweep as run_sweep

    require_figures(figures)
    means = Means(
        resume=resume, run=not no_run, processes=processes, runs_dir=runs_dir, display=ProgressDisplay(), tell=say
    )
    try:
        study = run_sweep(scenario, set=sets or (), output=output, means=means)
    except KeyboardInterrupt:
        end_interrupted()
    make_figures(figures, study.view)
    if json:
        put_json({"sweep": study.result, "failed": study.problems, "page": str(study.page)})
    else:
        put_parts(study.view.brief)
        put(f"page: {study.page}")
    end_with(study.problems)
