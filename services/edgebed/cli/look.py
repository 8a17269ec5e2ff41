"""The commands that show a run, also one in progress elsewhere, and those that hand it on to other tools."""

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgebed.cli import completion
from edgebed.cli.options import (  # fmt: skip
    INTERRUPTED,
    Figures,
    Json,
    RunName,
    RunsDir,
    Verbose,
    make_figures,
    put_parts,
    require_figures,
    require_place,
)
from edgebed.core.console import put, put_json, put_lines, say
from edgebed.core.errors import InfrastructureError, ScenarioError
from edgebed.exporting import Format

if TYPE_CHECKING:
    from edgebed.journal.run_folder import RunFolder
    from edgebed.running.replay import Replayed
    from edgebed.running.results import Run

TRACKING_VARIABLE = "MLFLOW_TRACKING_URI"
FormatOption = Annotated[
    Format,
    typer.Option("--format", help="What to write; all but csv need edgebed's extra of the same name."),
]
Trials = Annotated[
    list[str] | None,
    typer.Option(
        "--trial",
        metavar="NAME",
        help="This trial alone (default: all). Repeatable.",
        show_default=False,
        autocompletion=completion.trials,
    ),
]
ExportOutput = Annotated[
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
GRAFANA = "http://127.0.0.1:3000"
"""Address of Grafana in docker-compose.yml."""
MARGIN_S = 10.0
"""Seconds shown before and after a run."""

Step = Annotated[str, typer.Option(metavar="DURATION", help="Time between two samples; dashboards need at most 15s.")]
Now = Annotated[
    bool,
    typer.Option("--now", help="Pretend that it has just ended, for a Prometheus that drops data older than a week."),
]
SamplesOutput = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="Write the samples as OpenMetrics to this file, and load nothing.", show_default=False
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(
        help="Folder of the data of a Prometheus on this machine; needs prometheus and promtool.", show_default=False
    ),
]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Follow the run until it ends.")]


def show(name: RunName, *, verbose: Verbose = False, json: Json = False, runs_dir: RunsDir = None) -> None:
    """Show the results of a run: table, chart, outcome."""
    from edgebed.running.results import load

    show_results(load(name, runs_dir=runs_dir), json=json, verbose=verbose)


def report(
    name: RunName,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write here instead of into the run's folder.")
    ] = None,
    figures: Figures = None,
    runs_dir: RunsDir = None,
) -> None:
    """Write a run's report anew from its journals, including crashed runs; its charts for papers as well."""
    from edgebed.journal.run_folder import write_atomically
    from edgebed.reports.run.report import report_page
    from edgebed.reports.writing.html import to_html
    from edgebed.running.results import load

    require_figures(figures)
    result = load(name, runs_dir=runs_dir)
    page = report_page(result)
    if output is None:
        write_atomically(result.folder.report, to_html(page).encode())
    else:
        require_place("--output", output)
        write_atomically(output, to_html(page).encode(), "--output")
    put(str(output or result.folder.report))
    make_figures(figures, page)


def show_links(name: RunName, *, json: Json = False, runs_dir: RunsDir = None) -> None:
    """Show each link of a run as asked, as held and as measured."""
    from edgebed.reports.run.brief import links_brief
    from edgebed.reports.run.conditions_text import link_dicts
    from edgebed.running.results import load

    result = load(name, runs_dir=runs_dir)
    if json:
        put_json(link_dicts(result))
    else:
        put_parts(links_brief(result))


def logs(
    name: RunName,
    node: Annotated[
        str | None, typer.Argument(help="Node (default: all).", show_default=False, autocompletion=completion.nodes)
    ] = None,
    *,
    trial: Annotated[
        str | None, typer.Option(metavar="NAME", help="Trial (default: all).", autocompletion=completion.trials)
    ] = None,
    follow: Follow = False,
    runs_dir: RunsDir = None,
) -> None:
    """Print the logs of a run's nodes, each line with the name of its node; to a file or pipe as the node wrote it."""
    from edgebed.journal.logs import log_lines

    folder = _found(name, runs_dir)
    with _ending_quietly():
        put_lines(log_lines(folder, node=node, trial=trial, follow=follow, pause=_flush_and_sleep), as_is=True)


def events(
    name: RunName,
    *,
    follow: Follow = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line, as in events.jsonl.")] = False,
    trials: Annotated[
        list[str] | None,
        typer.Option(
            "--trial",
            metavar="NAME",
            help="Only of this trial. Repeatable.",
            show_default=False,
            autocompletion=completion.trials,
        ),
    ] = None,
    nodes: Annotated[
        list[str] | None,
        typer.Option(
            "--node",
            metavar="NODE",
            help="Only from or about this node. Repeatable.",
            show_default=False,
            autocompletion=completion.nodes,
        ),
    ] = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="KIND", help="Only of this kind, e.g. fault. Repeatable.", show_default=False),
    ] = None,
    command: Annotated[
        str,
        typer.Option(
            "--run",
            metavar="COMMAND",
            help="Run this command for each of them, with the event as JSON on its standard input.",
            show_default=False,
        ),
    ] = "",
    runs_dir: RunsDir = None,
) -> None:
    """Print what a run's journals say: seconds since the trial's launch, trial, node, what happened."""
    from edgebed.cli.hook import runner_of
    from edgebed.reports.live.events import EventFilter, event_lines

    folder = _found(name, runs_dir)
    selection = EventFilter(trials=trials or (), nodes=nodes or (), kinds=kinds or ())
    with _ending_quietly():
        tell = runner_of(command, say)
        put_lines(event_lines(folder, selection, json=json, follow=follow, pause=_flush_and_sleep, tell=tell))


def watch(name: RunName, *, verbose: Verbose = False, json: Json = False, runs_dir: RunsDir = None) -> None:
    """Watch a run that was started elsewhere until it ends; then show its results, and exit as `run` does.

    Ctrl-C ends the watching, not the run. The results of a finished run are shown at once.
    """
    from edgebed.reports.live.progress import ProgressDisplay
    from edgebed.reports.live.watching import watch_run
    from edgebed.running.results import Run
    from edgebed.runtimes.signals import ending_by_signal

    folder = _found(name, runs_dir)
    if folder.is_running():
        try:
            with ending_by_signal(), ProgressDisplay() as progress:
                watch_run(folder, progress)
        except KeyboardInterrupt:
            say(f"no longer watching; run {folder.name} continues: edgebed watch {folder.name}")
            raise typer.Exit(INTERRUPTED) from None
    leave_with(Run(folder), json=json, verbose=verbose)


def leave_with(result: "Run", *, json: bool, verbose: bool) -> None:
    """Show the results of a run, and exit with its exit code."""
    try:
        show_results(result, json=json, verbose=verbose)
    except InfrastructureError as error:  # The verdict stands, and all results are in the run's folder.
        say(f"error: {error}; the results are in {result.path}")
    raise typer.Exit(result.exit_code)


def show_results(result: "Run", *, json: bool, verbose: bool) -> None:
    """Print the results as a table and a chart, if verbose with every remark; or as JSON."""
    if json:
        put(result.summary_json().decode().rstrip())
        return
    from edgebed.reports.run.brief import results_brief

    put_parts(results_brief(result, verbose=verbose))
    if result.can_be_resumed:
        say(f"to resume: {result.resume_command}")


def _found(name: str, runs_dir: Path | None) -> "RunFolder":
    """The folder of the run that is meant; its results are not read."""
    from edgebed.journal.run_folder import RunFolder, runs_root

    return RunFolder.find(runs_root(runs_dir), name)


def _flush_and_sleep(seconds: float) -> None:
    """Sleep until the next look, after printed output has been flushed."""
    sys.stdout.flush()
    time.sleep(seconds)


@contextlib.contextmanager
def _ending_quietly() -> Iterator[None]:
    """Let Ctrl-C end the command without an error."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def export(
    name: RunName,
    *,
    form: FormatOption = "csv",
    trials: Trials = None,
    output: ExportOutput = None,
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


def replay(
    name: RunName,
    *,
    trials: Trials = None,
    step: Step = "5s",
    now: Now = False,
    output: SamplesOutput = None,
    data: Data = None,
    runs_dir: RunsDir = None,
) -> None:
    """Load a finished or simulated run into Prometheus with its own times, so that Grafana shows it."""
    from edgebed.core.units import parse_duration
    from edgebed.journal.run_folder import writing
    from edgebed.running.replay import into_folder, into_service, read_again
    from edgebed.running.results import load

    try:
        step_s = parse_duration(step)
    except ValueError as error:
        raise ScenarioError(f"--step: {error}") from error
    if not step_s > 0.0:
        raise ScenarioError(f"--step: {step} is not above 0; 5s is how often a live run is looked at")
    if output is not None and data is not None:
        raise ScenarioError("--output and --data: give one of them")
    if output is not None:
        require_place("--output", output, "run.om")
    if data is not None and not data.is_dir():
        raise ScenarioError(f"--data: there is no folder {data}; it is Prometheus' --storage.tsdb.path")
    run = load(name, runs_dir=runs_dir)
    found = read_again(run, trials or (), step_s, now_s=time.time() if now else None)
    if output is not None:
        with writing(output, "--output") as stream, TextIOWrapper(stream, encoding="utf-8") as file:
            found.store.write(file)
        put(f"{output}: {found.store.samples:,} samples")
        return
    if data is not None:
        into_folder(found.store, data)
    else:
        into_service(found.store)
    say(f"{found.store.samples:,} samples loaded; Prometheus shows them within a minute")
    put(_link(run.folder.name, found))


def _link(run: str, found: "Replayed") -> str:
    """The address at which Grafana shows the run."""
    begin_ms, end_ms = round(1000 * (found.begin_s - MARGIN_S)), round(1000 * (found.end_s + MARGIN_S))
    return f"{GRAFANA}/d/edgebed-run-overview?var-run={run}&from={begin_ms}&to={end_ms}"
