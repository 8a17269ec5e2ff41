"""`edgebed agree --ranks`: its options, and what becomes of them.

Exit codes: 0 virtual time ranks as live, and all means are equivalent; 1 it does not, or that is not shown; 2 and 3 as
everywhere.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from edgebed.cli.options import end_interrupted, end_with, make_figures, put_study, require_figures, spreading
from edgebed.core.console import say
from edgebed.core.errors import ScenarioError
from edgebed.core.runtimes import Emulation, Runtime
from edgebed.studies.ranking.drawing_kinds import Drawing

RanksOption = Annotated[
    bool,
    typer.Option("--ranks", help="Draw scenarios, and say whether virtual time ranks methods as live runs do."),
]
Scenarios = Annotated[
    int | None, typer.Option(help="With --ranks: number of scenarios (default: 20).", show_default=False)
]
DrawingSeed = Annotated[
    int | None, typer.Option("--seed", help="With --ranks: seed of the drawing (default: 1).", show_default=False)
]
DrawingKind = Annotated[
    Drawing | None,
    typer.Option(
        "--drawing",
        help="With --ranks: what is drawn, usual scenarios or such at the edges, where virtual time has most to get "
        "wrong (default: usual).",
        show_default=False,
    ),
]
LiveRuntime = Annotated[
    Runtime | None,
    typer.Option("--runtime", help="With --ranks: runtime of the live runs (default: process).", show_default=False),
]
Margin = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE",
        help="With --ranks: margin within which times count as the same, stated before the first run (default: 5%).",
        show_default=False,
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="With --ranks: reuse what the same study has run, and run the rest.")
]
NoRun = Annotated[bool, typer.Option("--no-run", help="With --ranks: run nothing, evaluate what there is.")]


class RanksOptions(NamedTuple):
    """The options that need --ranks, as given."""

    scenarios: int | None
    seed: int | None
    drawing: Drawing | None
    runtime: Runtime | None
    margin: str | None
    resume: bool
    no_run: bool

    def refuse_alone(self) -> None:
        """ScenarioError where one is given without --ranks."""
        given = [f"--{name.replace('_', '-')}" for name, value in self._asdict().items() if value not in (None, False)]
        if given:
            raise ScenarioError(f"{', '.join(given)}: of no effect without --ranks; add it, or leave them out")


def refuse(
    names: Sequence[str] | None, *, runtimes: str | None, finished: bool, sets: Sequence[str] | None, force: bool
) -> None:
    """ScenarioError for what has no effect with --ranks."""
    if names:
        raise ScenarioError(f"agree --ranks: {names[0]}: scenarios are drawn; leave it out")
    given = {"--runtimes": runtimes, "--from": finished, "--set": sets, "--force": force}
    if words := [option for option, value in given.items() if value]:
        raise ScenarioError(f"{', '.join(words)}: of no effect with --ranks; leave out one or the other")


def agree_ranks(
    given: RanksOptions,
    *,
    seeds: int | None,
    emulation: Emulation,
    output: Path | None,
    figures: Path | None,
    json: bool,
    processes: int | None,
    jobs: int,
    dask: str | None,
    runs_dir: Path | None,
) -> None:
    """Make the study, show it, and leave with its exit code."""
    from edgebed.reports.live.progress import ProgressDisplay
    from edgebed.reports.studies.study import DRAWN, SEEDS, Means, rank
    from edgebed.studies.ranking.stated import TIME_MARGIN

    require_figures(figures)
    margin = TIME_MARGIN if given.margin is None else _share(given.margin)
    means = Means(
        resume=given.resume,
        run=not given.no_run,
        processes=processes,
        runs_dir=runs_dir,
        display=ProgressDisplay(),
        tell=say,
    )
    try:
        with spreading(jobs, dask, runs=means.run) as executor:
            study = rank(
                scenarios=DRAWN if given.scenarios is None else given.scenarios,
                seed=1 if given.seed is None else given.seed,
                drawing=given.drawing or "usual",
                seeds=SEEDS if seeds is None else seeds,
                runtime=given.runtime or "process",
                emulation=emulation,
                margin=margin,
                output=output,
                executor=executor,
                means=means,
            )
    except KeyboardInterrupt:
        end_interrupted()
    make_figures(figures, study.view)
    found = {"ranking": study.result, "failed": study.problems, "page": str(study.page)}
    put_study(study.view, study.page, found if json else None)
    end_with(study.problems)
    raise typer.Exit(0 if study.result.agrees else 1)


def _share(text: str) -> float:
    from edgebed.core.units import parse_percentage

    try:
        return parse_percentage(text.replace(" ", ""))
    except ValueError as error:
        raise ScenarioError(f"--margin: {error}; give a share, e.g. 5%") from error
