"""The command `compare`: compare finished runs."""

from pathlib import Path
from typing import Annotated

import typer

from edgebed.cli.options import (
    Figures,
    Json,
    RunsDir,
    make_figures,
    page_place,
    put_parts,
    require_figures,
    require_place,
)
from edgebed.core.console import put, put_json
from edgebed.core.errors import ScenarioError

STANDARD_OUTPUT = "-"
PAGE = "comparison.html"

RunNames = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN...",
        help="Folders, scenarios (their latest runs), scenario/number, or 'latest'.",
        show_default=False,
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
        metavar="ACCURACY",
        help="Count updates, time and bytes to this accuracy, e.g. 97% (default: the highest round one all reach).",
        show_default=False,
    ),
]
Window = Annotated[int, typer.Option(metavar="N", help="Evaluations in the moving average of the accuracy.")]
Force = Annotated[bool, typer.Option("--force", help="Compare arms with different data sets or models, too.")]
Csv = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Write one line a trial here; '-': on standard output.", show_default=False),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help=f"Write the page here (default: {PAGE} in the folder of all runs).", show_default=False
    ),
]


def compare(
    runs: RunNames,
    *,
    baseline: Baseline = None,
    to: To = None,
    window: Window = 1,
    force: Force = False,
    json: Json = False,
    csv: Csv = None,
    output: Output = None,
    figures: Figures = None,
    runs_dir: RunsDir = None,
) -> None:
    """Compare runs: what changed, accuracy, and time, bytes and updates to reach an accuracy, seed by seed.

    Trials that differ in nothing but the seed are one arm; a page with charts is written as well.
    """
    from edgebed.journal.run_folder import write_atomically
    from edgebed.reports.studies.comparison_tables import csv_text
    from edgebed.reports.studies.study import compared
    from edgebed.reports.writing.html import to_html
    from edgebed.running.results import load

    accuracy = None if to is None else _accuracy(to)
    is_printed = csv == STANDARD_OUTPUT
    if json and is_printed:
        raise ScenarioError("--json, --csv -: standard output is for one of them; give --csv a file")
    spreadsheet = None if csv is None or is_printed else Path(csv)
    for option, place, example in (("--output", output, PAGE), ("--csv", spreadsheet, "comparison.csv")):
        if place is not None:
            require_place(option, place, example)
    require_figures(figures)

    opened = [load(name, runs_dir=runs_dir) for name in runs]
    study = compared(opened, baseline=baseline, to=accuracy, window=window, force=force)
    if spreadsheet is not None:
        write_atomically(spreadsheet, csv_text(study.result).encode(), "--csv")
    if output is None and not json and not is_printed:
        output = page_place(PAGE, runs_dir)
    if output is not None:
        write_atomically(output, to_html(study.view).encode(), "--output")
    make_figures(figures, study.view)
    if json:
        put_json(study.result)
    elif is_printed:
        put(csv_text(study.result).rstrip("\n"))
    else:
        put_parts(study.view.brief)
        put(f"page: {output}")


def _accuracy(text: str) -> float:
    """An accuracy above 0 from `97%` or `0.97`."""
    from edgebed.core.units import parse_percentage

    try:
        accuracy = parse_percentage(text.replace(" ", "")) if "%" in text else float(text)
    except ValueError:
        accuracy = 0.0
    if not 0.0 < accuracy <= 1.0:
        raise ScenarioError(f"--to: {text!r} is not an accuracy; give one above 0% and up to 100%, e.g. 97% or 0.97")
    return accuracy
