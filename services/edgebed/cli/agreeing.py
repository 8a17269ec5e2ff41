"""The command `agree`: whether the simulation, processes and containers do the same.

Exit codes: 0 all runtimes agree, 1 one differs or seeds are too few to decide, 2 the user's mistake, 3 the
infrastructure's, 130 interrupted.
"""

from pathlib import Path
from typing import Annotated

import typer

from edgebed.cli.options import (
    EmulationOption,
    Figures,
    Force,
    Json,
    Processes,
    RunsDir,
    Sets,
    make_figures,
    page_place,
    put_parts,
    require_figures,
    require_place,
)
from edgebed.core.console import put, put_json
from edgebed.core.errors import ScenarioError
from edgebed.core.runtimes import RUNTIMES, Runtime

SEEDS = 3
PAGE = "agreement.html"

Names = Annotated[
    list[str],
    typer.Argument(metavar="SCENARIO", help="A scenario's YAML file; with --from, RUN RUN ...", show_default=False),
]
RuntimesOption = Annotated[
    str | None,
    typer.Option(
        metavar="A,B[,C]",
        help="simulation, process, docker: two or all, the one that the others are compared with first (default: "
        "simulation,process; with --from, all that the runs are of).",
        show_default=False,
    ),
]
Seeds = Annotated[
    int | None,
    typer.Option(
        help=f"Run with seeds 1 to this number, three at least to state agreement (default: {SEEDS}).",
        show_default=False,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help=f"Write the page here (default: {PAGE} in the folder of all runs).", show_default=False
    ),
]
Finished = Annotated[bool, typer.Option("--from", help="Compare these finished runs; run nothing.")]


def agree(
    names: Names,
    *,
    runtimes: RuntimesOption = None,
    seeds: Seeds = None,
    finished: Finished = False,
    emulation: EmulationOption = "auto",
    sets: Sets = None,
    force: Force = False,
    json: Json = False,
    output: Output = None,
    figures: Figures = None,
    processes: Processes = None,
    runs_dir: RunsDir = None,
) -> None:
    """Run a scenario in several runtimes with several seeds, and say whether they agree; with a page of charts."""
    from edgebed.journal.run_folder import write_atomically
    from edgebed.reports.run.report import write_report
    from edgebed.reports.studies.study import agreed
    from edgebed.reports.writing.html import to_html
    from edgebed.studies.agreement import agreeing

    wanted = None if runtimes is None else [_runtime(name.strip()) for name in runtimes.split(",")]
    if output is not None:
        require_place("--output", output, PAGE)
    require_figures(figures)
    if finished:
        from edgebed.running.results import load

        if sets or seeds is not None:
            raise ScenarioError("--from: --set and --seeds have no effect on finished runs; leave them out")
        runs = [load(name, runs_dir=runs_dir) for name in names]
    else:
        from edgebed.reports.live.progress import ProgressDisplay

        if len(names) > 1:
            raise ScenarioError(f"agree: {len(names)} scenarios; give one, or finished runs with --from")
        with ProgressDisplay() as progress:
            runs = agreeing.run_all(
                write_report,
                names[0],
                runtimes=wanted or agreeing.ORDER[:2],
                seeds=SEEDS if seeds is None else seeds,
                set=sets or (),
                emulation=emulation,
                processes=processes,
                force=force,
                runs_dir=runs_dir,
                progress=progress,
            )
    study = agreed(runs, wanted)
    if output is None and not json:
        output = page_place(PAGE, runs_dir)
    if output is not None:
        write_atomically(output, to_html(study.view).encode(), "--output")
    make_figures(figures, study.view)
    if json:
        put_json(study.result)
    else:
        put_parts(study.view.brief)
        put(f"page: {output}")
    raise typer.Exit(0 if study.result.verdict == "agrees" else 1)


def _runtime(name: str) -> Runtime:
    for runtime in RUNTIMES:
        if name == runtime:
            return runtime
    raise ScenarioError(f"--runtimes: {name!r} is none of {', '.join(RUNTIMES)}; give e.g. simulation,process")
