"""What validates edgebed: `scripts/validate ranks`, or `python -m validation ranks` where edgebed is installed.

Exit codes: 0 virtual time ranks as live, and all means are equivalent; 1 it does not, or that is not shown; 2 and 3 as
those of `edgebed`.
"""

from pathlib import Path
from typing import Annotated

import typer

from edgebed.cli.help import HELP_OPTIONS, Command, Group
from edgebed.cli.main import main
from edgebed.cli.options import (
    Dask,
    EmulationOption,
    Figures,
    Jobs,
    Json,
    Processes,
    RunsDir,
    end_interrupted,
    end_with,
    make_figures,
    put_study,
    require_figures,
    run_options_of,
    spreading,
)
from edgebed.core.errors import ScenarioError
from edgebed.core.runtimes import Runtime
from edgebed.core.units import parse_percentage
from edgebed.reports.studies.study import SEEDS
from validation.ranking.draws import Drawing
from validation.ranking.preregistration import TIME_MARGIN
from validation.ranking.study import DRAWN, rank

app = typer.Typer(
    name="scripts/validate",
    cls=Group,
    context_settings=HELP_OPTIONS,
    help="Show how far edgebed itself can be trusted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
SHARE = f"{100 * TIME_MARGIN:g}%"


@app.callback()
def validate() -> None:
    """Show how far edgebed itself can be trusted."""


@app.command(cls=Command)
def ranks(
    *,
    scenarios: Annotated[int, typer.Option(help="Number of scenarios.")] = DRAWN,
    seed: Annotated[int, typer.Option(help="Seed of the drawing.")] = 1,
    drawing: Annotated[
        Drawing,
        typer.Option(
            help="What is drawn, usual scenarios or such at the edges, where virtual time has most to get wrong."
        ),
    ] = "usual",
    seeds: Annotated[int, typer.Option(help="Run with seeds 1 to this number.")] = SEEDS,
    runtime: Annotated[Runtime, typer.Option(help="Runtime of the live runs.")] = "process",
    emulation: EmulationOption = "auto",
    margin: Annotated[
        str,
        typer.Option(metavar="SHARE", help="Within which times count as the same, stated before the first run."),
    ] = SHARE,
    resume: Annotated[
        bool, typer.Option("--resume", help="Reuse what the same study has run, and run the rest.")
    ] = False,
    no_run: Annotated[bool, typer.Option("--no-run", help="Run nothing, evaluate what there is.")] = False,
    json: Json = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Folder of the page (default: rankings/ in that of all runs).", show_default=False
        ),
    ] = None,
    figures: Figures = None,
    processes: Processes = None,
    jobs: Jobs = 1,
    dask: Dask = None,
    runs_dir: RunsDir = None,
) -> None:
    """Draw scenarios, and say whether virtual time ranks methods as live runs do; with a page of charts."""
    require_figures(figures)
    share = _share(margin)
    run_options = run_options_of(resume=resume, no_run=no_run, processes=processes, runs_dir=runs_dir)
    try:
        with spreading(jobs, dask, runs=run_options.run) as executor:
            study = rank(
                scenarios=scenarios, seed=seed, drawing=drawing, seeds=seeds, runtime=runtime, emulation=emulation,
                margin=share, output=output, executor=executor, run_options=run_options,
            )  # fmt: skip
    except KeyboardInterrupt:
        end_interrupted()
    make_figures(figures, study.view)
    found = {"ranking": study.result, "failed": study.problems, "page": str(study.page)}
    put_study(study.view, study.page, found if json else None)
    end_with(study.problems)
    raise typer.Exit(0 if study.result.agrees else 1)


def _share(text: str) -> float:
    try:
        return parse_percentage(text.replace(" ", ""))
    except ValueError as error:
        raise ScenarioError(f"--margin: {error}; give a share, e.g. {SHARE}") from error


if __name__ == "__main__":
    main(app)
