"""The command `export`: export a run for other tools."""

import os
from pathlib import Path
from typing import Annotated

import typer

from edgebed.cli.options import RunName, RunsDir
from edgebed.core.console import put
from edgebed.core.errors import ScenarioError
from edgebed.exporting import Format

TRACKING_VARIABLE = "MLFLOW_TRACKING_URI"
FormatOption = Annotated[Format, typer.Option("--format", help="All but csv need an extra, e.g. edgebed[parquet].")]
Trials = Annotated[
    list[str] | None,
    typer.Option("--trial", metavar="NAME", help="This trial alone (default: all). Repeatable.", show_default=False),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        help="Output folder; an earlier export in it is replaced (default: exports/FORMAT in the run's folder).",
        show_default=False,
    ),
]
TrackingUri = Annotated[
    str | None,
    typer.Option(
        metavar="URI",
        help=f"Where MLflow's runs go, e.g. sqlite:///mlflow.db (default: ${TRACKING_VARIABLE}).",
        show_default=False,
    ),
]


def export(
    name: RunName,
    *,
    form: FormatOption = "csv",
    trials: Trials = None,
    output: Output = None,
    tracking_uri: TrackingUri = None,
    runs_dir: RunsDir = None,
) -> None:
    """Write a run for other tools: tables, curves or MLflow runs, including crashed and running ones."""
    from edgebed.exporting.formats import export_files, require_extra
    from edgebed.running.results import load

    if form == "mlflow" and output is not None:
        raise ScenarioError("--output: MLflow is written to a tracking store; name it with --tracking-uri")
    if form != "mlflow" and tracking_uri is not None:
        raise ScenarioError(f"--tracking-uri: {form} is written to a folder; name it with --output")
    result = load(name, runs_dir=runs_dir)
    chosen = result.chosen_trials(trials or (), "export")
    require_extra(form)
    if form != "mlflow":
        put(str(export_files(result, chosen, form, output)))
        return

    from edgebed.core.quantities import count_text
    from edgebed.exporting.tracking import export_runs

    uri = tracking_uri or os.environ.get(TRACKING_VARIABLE)
    if not uri:
        raise ScenarioError(
            f"--format mlflow: give --tracking-uri, e.g. sqlite:///mlflow.db, or set {TRACKING_VARIABLE}"
        )
    done = export_runs(result, chosen, uri)
    replaced = f"; {done.replaced} of an earlier export deleted" if done.replaced else ""
    put(f"{uri}: experiment {done.experiment}: {count_text(done.written, 'run')} written{replaced}")
