"""The commands that judge several runs together: comparison, agreement of runtimes, sweeps, papers.

Exit codes of `agree`: 0 all runtimes agree, 1 one differs or seeds are too few to decide.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgebed.cli import completion
from edgebed.cli.options import (  # fmt: skip
    Dask,
    EmulationOption,
    Figures,
    Force,
    Jobs,
    Json,
    Processes,
    RunsDir,
    ScenarioFile,
    Sets,
    end_interrupted,
    end_with,
    make_figures,
    page_place,
    put_parts,
    put_study,
    require_figures,
    require_place,
    run_options_of,
    spreading,
)
from edgebed.core.console import put, put_json, say
from edgebed.core.errors import ScenarioError
from edgebed.core.runtimes import RUNTIMES, Runtime

if TYPE_CHECKING:
    from edgebed.reports.studies.study import RunOptions
    from edgebed.reports.writing.page import Page
    from edgebed.studies.cells.cells import Size

SEEDS = 3
AGREEMENT = "agreement.html"

Names = Annotated[
    list[str],
    typer.Argument(
        metavar="SCENARIO",
        help="A scenario, as for `run`; with --from, the runs to compare.",
        show_default=False,
    ),
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
AgreementOutput = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help=f"Write the page here (default: {AGREEMENT} in the folder of all runs).",
        show_default=False,
    ),
]
Finished = Annotated[bool, typer.Option("--from", help="Compare these finished runs; run nothing.")]
STANDARD_OUTPUT = "-"
COMPARISON = "comparison.html"

RunNames = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN...",
        help="Folders, scenarios (their latest runs), scenario/number, or 'latest'.",
        show_default=False,
        autocompletion=completion.runs,
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        metavar="ARM", help="Arm that the others are compared with (default: the first trial).", show_default=False
    ),
]
To = Annotated[
    str | None,
    typer.Option(
        metavar="[MEASURE=]VALUE",
        help="Count updates, time and bytes to this value of the headline, e.g. 97%, or of another measure of the "
        "task, e.g. f1_macro=0.7 (default: the scenarios', else the best round one all reach).",
        show_default=False,
    ),
]
Window = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Evaluations in the moving average (default: the scenarios', else 3).",
        show_default=False,
    ),
]
Anyway = Annotated[bool, typer.Option("--force", help="Compare arms with different data sets or models, too.")]
Csv = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Write one line a trial here; '-': on standard output.", show_default=False),
]
ComparisonOutput = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help=f"Write the page here (default: {COMPARISON} in the folder of all runs).",
        show_default=False,
    ),
]


def compare(
    runs: RunNames,
    *,
    baseline: Baseline = None,
    to: To = None,
    window: Window = None,
    force: Anyway = False,
    json: Json = False,
    csv: Csv = None,
    output: ComparisonOutput = None,
    figures: Figures = None,
    runs_dir: RunsDir = None,
) -> None:
    """Compare runs: what changed, what was measured, and time, bytes and updates to reach a value of it, seed by seed.

    Trials that differ in nothing but the seed are one arm; a page with charts is written as well.
    """
    from edgebed.journal.run_folder import write_atomically
    from edgebed.reports.studies.comparison_tables import csv_text
    from edgebed.reports.studies.study import compared
    from edgebed.running.results import load

    measure, _, value = (to or "").rpartition("=")
    is_printed = csv == STANDARD_OUTPUT
    if json and is_printed:
        raise ScenarioError("--json, --csv -: standard output is for one of them; give --csv a file")
    spreadsheet = None if csv is None or is_printed else Path(csv)
    for option, place, example in (("--output", output, COMPARISON), ("--csv", spreadsheet, "comparison.csv")):
        if place is not None:
            require_place(option, place, example)
    require_figures(figures)

    opened = [load(name, runs_dir=runs_dir) for name in runs]
    study = compared(opened, baseline=baseline, to=_value(value), measure=measure or None, window=window, force=force)
    if spreadsheet is not None:
        write_atomically(spreadsheet, csv_text(study.result).encode(), "--csv")
    if output is None and not json and not is_printed:
        output = page_place(COMPARISON, runs_dir)
    _write(study.view, output, figures)
    if is_printed:
        put(csv_text(study.result).rstrip("\n"))
    else:
        put_study(study.view, output, study.result if json else None)


def _value(text: str) -> float | None:
    """A number from `97%` or `0.97`; None for no text."""
    from edgebed.core.units import parse_percentage

    if not text:
        return None
    try:
        return parse_percentage(text.replace(" ", "")) if "%" in text else float(text)
    except ValueError:
        raise ScenarioError(f"--to: {text!r} is no value of a measure; give e.g. 97%, 0.97 or f1_macro=0.7") from None


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
    output: AgreementOutput = None,
    figures: Figures = None,
    processes: Processes = None,
    jobs: Jobs = 1,
    dask: Dask = None,
    runs_dir: RunsDir = None,
) -> None:
    """Run a scenario in several runtimes with several seeds, and say whether they agree; with a page of charts."""
    from edgebed.reports.run.runs_index import write_report_and_index
    from edgebed.reports.studies.study import agreed
    from edgebed.studies.agreement import run_agreement

    wanted = None if runtimes is None else [_runtime(name.strip()) for name in runtimes.split(",")]
    if output is not None:
        require_place("--output", output, AGREEMENT)
    require_figures(figures)
    if finished:
        from edgebed.running.results import load

        if sets or seeds is not None or jobs > 1 or dask is not None:
            raise ScenarioError(
                "--from: --set, --seeds, --jobs and --dask have no effect on finished runs; leave them out"
            )
        runs = [load(name, runs_dir=runs_dir) for name in names]
    else:
        from edgebed.reports.live.progress import ProgressDisplay

        if len(names) > 1:
            raise ScenarioError(f"agree: {len(names)} scenarios; give one, or finished runs with --from")
        with ProgressDisplay() as progress, spreading(jobs, dask) as executor:
            runs = run_agreement.run_all(
                write_report_and_index,
                names[0],
                runtimes=wanted or run_agreement.ORDER[:2],
                seeds=SEEDS if seeds is None else seeds,
                set=sets or (),
                emulation=emulation,
                processes=processes,
                force=force,
                runs_dir=runs_dir,
                progress=progress,
                executor=executor,
                tell=say,
            )
    study = agreed(runs, wanted)
    if output is None and not json:
        output = page_place(AGREEMENT, runs_dir)
    _write(study.view, output, figures)
    put_study(study.view, output, study.result if json else None)
    raise typer.Exit(0 if study.result.verdict == "agrees" else 1)


def _runtime(name: str) -> Runtime:
    for runtime in RUNTIMES:
        if name == runtime:
            return runtime
    raise ScenarioError(f"--runtimes: {name!r} is none of {', '.join(RUNTIMES)}; give e.g. simulation,process")


def sweep(
    scenario: ScenarioFile,
    *,
    runtime: Annotated[
        Runtime | None, typer.Option(help="Of programs, process (default) or docker; methods are simulated.")
    ] = None,
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
    jobs: Jobs = 1,
    dask: Dask = None,
    runs_dir: RunsDir = None,
) -> None:
    """Run every method at every point of a scenario's sweep, in simulation: time, bytes, CPU time, who wins where.

    Where nodes run a program of your own, its variants are run for real, one after the other.
    """
    from edgebed.reports.studies.study import sweep as run_sweep

    require_figures(figures)
    run_options = run_options_of(resume=resume, no_run=no_run, processes=processes, runs_dir=runs_dir)
    try:
        with spreading(jobs, dask, runs=not no_run) as executor:
            study = run_sweep(
                scenario, set=sets or (), runtime=runtime, output=output, executor=executor, run_options=run_options
            )
    except KeyboardInterrupt:
        end_interrupted()
    make_figures(figures, study.view)
    found = {"sweep": study.result, "failed": study.problems, "page": str(study.page)}
    put_study(study.view, study.page, found if json else None)
    end_with(study.problems)


def reproduce(
    paper: Annotated[
        str | None,
        typer.Argument(
            help="A paper, e.g. hardy2017, or package.module:NAME (default: list all; with --budget or --no-run: all).",
            show_default=False,
        ),
    ] = None,
    *,
    rows: Annotated[
        list[str] | None,
        typer.Option("--row", metavar="ROW", help="This row alone. Repeatable.", show_default=False),
    ] = None,
    scale: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE", help="Share of the paper's updates (default: each cell's own).", show_default=False
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Number of seeds (default: each cell's own).", show_default=False)
    ] = None,
    first_seed: Annotated[
        int,
        typer.Option(min=1, metavar="SEED", help="The first of the seeds, to see whether findings hold with others."),
    ] = 1,
    resume: Annotated[
        bool, typer.Option("--resume", help="Reuse what has been run, and resume what broke off.")
    ] = False,
    no_run: Annotated[bool, typer.Option("--no-run", help="Run nothing: evaluate existing runs.")] = False,
    list_rows: Annotated[
        bool,
        typer.Option("--list", help="List what can be reproduced, with --budget the missing runs; run nothing."),
    ] = False,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Make the missing runs that decide most rows in this time, e.g. 3h, of the paper or of all papers.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Folder of the page (default: reproductions/ in the runs' folder)."
        ),
    ] = None,
    figures: Figures = None,
    json: Json = False,
    processes: Processes = None,
    jobs: Jobs = 1,
    dask: Dask = None,
    runs_dir: RunsDir = None,
) -> None:
    """Reproduce a paper's tables, in simulation: each row with the paper's number, the measured one and a finding.

    Rows that measure time run live. A page has the tables and charts.
    """
    from edgebed.studies.cells.cells import check_rows, size_of
    from edgebed.studies.papers.registry import find_paper

    size = size_of(scale, seeds, first_seed)
    budget_s = None if budget is None else _duration(budget, no_run=no_run)
    if budget_s is None and (list_rows or (paper is None and not no_run)):
        _list(paper, rows or (), size, json=json)
        return
    from edgebed.reports.studies.study import reproduce as run_paper
    from edgebed.reports.studies.study import reproduce_all, reproduce_within

    run_options = run_options_of(resume=resume, no_run=no_run, processes=processes, runs_dir=runs_dir)
    if list_rows:
        assert budget_s is not None
        _list_missing(paper, rows or (), size, budget_s, jobs, output, run_options, json=json)
        return
    papers = _papers(paper, rows or ())
    chosen = {name: check_rows(find_paper(name), rows or ()) for name in papers}
    require_figures(figures if len(papers) == 1 else None)
    given: dict[str, Any] = {
        "rows": rows or (), "scale": scale, "seeds": seeds, "first_seed": first_seed, "output": output,
        "run_options": run_options,
    }  # fmt: skip
    try:
        with spreading(jobs, dask, runs=not no_run) as executor:
            if paper is None:
                studies = reproduce_all(budget_s=budget_s, jobs=jobs, executor=executor, **given)
            elif budget_s is None:
                studies = [run_paper(paper, executor=executor, **given)]
            else:
                studies = reproduce_within(budget_s, papers, jobs=jobs, executor=executor, **given)
    except KeyboardInterrupt:
        end_interrupted()
    found = []
    for name, study in zip(papers, studies, strict=True):
        make_figures(figures, study.view)
        found.append(
            {"reproduction": study.result, "rows": chosen[name], "failed": study.problems, "page": str(study.page)}
        )
        if not json:
            put_study(study.view, study.page, None)
    if json:
        put_json(found if paper is None else found[0])
    end_with([problem for study in studies for problem in study.problems])


def _duration(text: str, *, no_run: bool) -> float:
    """Seconds of a budget; ScenarioError where it is none, or where nothing is to be run."""
    from edgebed.core.units import parse_duration

    if no_run:
        raise ScenarioError("--budget, --no-run: a budget is for runs; leave out one or the other")
    try:
        return parse_duration(text)
    except ValueError as error:
        raise ScenarioError(f"--budget: {error}") from error


def _papers(paper: str | None, rows: Sequence[str]) -> list[str]:
    """The paper that is named, or all."""
    from edgebed.studies.papers.registry import papers

    if paper is None and rows:
        raise ScenarioError(f"--row {rows[0]}: of which paper? Name it, e.g. hardy2017")
    return list(papers()) if paper is None else [paper]


def _list_missing(
    paper: str | None,
    rows: Sequence[str],
    size: "Size",
    budget_s: float,
    jobs: int,
    output: Path | None,
    run_options: "RunOptions",
    *,
    json: bool,
) -> None:
    """Print the runs that the rows lack, with cost and worth."""
    from edgebed.reports.studies.paper_list import missing_list
    from edgebed.reports.studies.study import missing_runs

    missing = missing_runs(_papers(paper, rows), rows=rows, size=size, output=output, run_options=run_options)
    if json:
        put_json([each._asdict() | {"run": each.run._asdict()} for each in missing])
        return
    put_parts(missing_list(missing, budget_s, jobs))


def _list(paper: str | None, rows: Sequence[str], size: "Size", *, json: bool) -> None:
    """Print every table, row and cell of a paper or of all papers; of a paper these rows alone, if any is named."""
    from edgebed.reports.studies.paper_list import paper_dict, paper_list
    from edgebed.studies.cells.cells import PaperCells, check_rows
    from edgebed.studies.papers.registry import find_paper

    declared = map(find_paper, _papers(paper, rows))
    papers = [each.only(check_rows(each, rows)) for each in declared]
    if json:
        put_json([paper_dict(each, PaperCells(each), size) for each in papers])
        return
    put_parts(part for each in papers for part in paper_list(each, PaperCells(each), size))


def _write(view: "Page", output: Path | None, figures: Path | None) -> None:
    """Write a page of several runs as HTML, and its charts, each if a place is named."""
    from edgebed.journal.run_folder import write_atomically
    from edgebed.reports.writing.html import to_html

    if output is not None:
        write_atomically(output, to_html(view).encode(), "--output")
    make_figures(figures, view)
