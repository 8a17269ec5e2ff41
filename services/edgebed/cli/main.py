"""The command line. Each command imports what it needs when it runs, so that `edgebed --help` is quick.

Exit codes: 0 all expectations met, 1 one is not or a trial diverged, 2 the user's mistake, 3 the infrastructure's or
edgebed's own, 130 interrupted; journal/outcome.py says which of several decides. With
`--json` standard output carries JSON alone; progress and errors go to standard error.
"""

import contextlib
import errno
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from edgebed.cli import agreeing as cli_agreeing
from edgebed.cli import comparing as cli_comparing
from edgebed.cli import exporting as cli_exporting
from edgebed.cli import operating as cli_by_hand
from edgebed.cli import profiling as cli_profiling
from edgebed.cli import replaying as cli_replaying
from edgebed.cli import reproducing as cli_reproducing
from edgebed.cli import sweeping as cli_sweeping
from edgebed.cli import watching as cli_watching
from edgebed.cli.options import (  # fmt: skip
    EmulationOption,
    Figures,
    Force,
    Json,
    Port,
    Processes,
    RunName,
    RunsDir,
    RuntimeOption,
    ScenarioFile,
    Sets,
    Variants,
    make_figures,
    require_figures,
    require_place,
)
from edgebed.cli.watching import leave_with, show_results
from edgebed.core.console import discard_output, prepare_streams, put, put_json, put_rich, say
from edgebed.core.errors import FULL, EdgebedError, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console


BROKEN_OFF = ("interrupted", "unfinished")
"""Results of runs that can be resumed."""

app = typer.Typer(
    name="edgebed",
    help="Train a neural network across a fleet of emulated edge devices.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None if os.environ.get("NO_COLOR") else "rich",
)

link = typer.Typer(help="Show or change links: as asked, as held and as measured.", no_args_is_help=True)
app.add_typer(link, name="link")


NAME_SHOWN = 60
"""Characters that are shown of a name that is too long."""


def main() -> None:
    """Run the command line: errors of users and machines become one line each, bugs show their traceback."""
    prepare_streams()
    try:
        app(prog_name="edgebed")
    except EdgebedError as error:
        for problem in error.problems if isinstance(error, ScenarioError) else (str(error),):
            say(f"error: {problem}")
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # a name that the user gave
            say(f"error: {str(error.filename)[:NAME_SHOWN]}…: {error.strerror}; give a shorter one")
            sys.exit(2)
        if error.errno not in FULL:
            traceback.print_exc()
        say(f"error: {error.strerror}")
        discard_output()
        sys.exit(3)
    except Exception:  # noqa: BLE001 - a bug: the traceback is what helps, and exit code 1 means something else.
        traceback.print_exc()
        sys.exit(3)


def _version(asked: bool) -> None:
    if asked:
        from edgebed.core.package import VERSION

        put(f"edgebed {VERSION}")
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Train a neural network across a fleet of emulated edge devices."""


@app.command()
def run(
    scenario: ScenarioFile,
    *,
    runtime: RuntimeOption = "process",
    emulation: EmulationOption = "auto",
    sets: Sets = None,
    variants: Variants = None,
    force: Force = False,
    json: Json = False,
    trace: Annotated[bool, typer.Option("--trace", help="Journal every message sent and received.")] = False,
    processes: Processes = None,
    port: Port = 0,
    runs_dir: RunsDir = None,
) -> None:
    """Run a scenario: all its trials, then a table, a chart and a report."""
    from edgebed.reports.live.progress import ProgressDisplay
    from edgebed.reports.reported import run as run_scenario

    with ProgressDisplay() as progress:
        result = run_scenario(
            scenario,
            runtime=runtime,
            emulation=emulation,
            set=sets or (),
            variants=variants or (),
            force=force,
            trace=trace,
            processes=processes,
            runs_dir=runs_dir,
            port=port,
            progress=progress,
        )
    leave_with(result, json=json)


@app.command()
def resume(
    name: RunName, *, json: Json = False, processes: Processes = None, port: Port = 0, runs_dir: RunsDir = None
) -> None:
    """Resume a run that was interrupted, has failed, or whose controller was killed, from its last checkpoint."""
    from edgebed.reports.live.progress import ProgressDisplay
    from edgebed.reports.reported import resume as resume_run

    with ProgressDisplay() as progress:
        result = resume_run(name, processes=processes, port=port, runs_dir=runs_dir, progress=progress)
    leave_with(result, json=json)


app.command()(cli_comparing.compare)
app.command()(cli_exporting.export)
app.command()(cli_agreeing.agree)
app.command()(cli_reproducing.reproduce)
app.command()(cli_sweeping.sweep)
app.command()(cli_profiling.profile)
app.command()(cli_replaying.replay)


@app.command()
def validate(
    scenarios: Annotated[list[Path], typer.Argument(help="Scenario files.", show_default=False)],
    *,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Check scenarios without running them; every problem with its line and what is allowed.

    Valid scenarios can be planned: own models and data are imported, examples counted and cut. Nothing is downloaded.
    """
    from edgebed.planning.checking import check

    checked = [check(path, sets or ()) for path in scenarios]
    if json:
        put_json(checked)
    for each in checked:
        for warning in each.warnings:
            say(f"warning: {warning}")
        for problem in each.problems:
            say(f"error: {problem}")
        if not json and not each.problems:
            put(each.text)
    raise typer.Exit(2 if any(each.problems for each in checked) else 0)


@app.command()
def plan(
    scenario: ScenarioFile,
    *,
    runtime: RuntimeOption = "process",
    emulation: EmulationOption = "auto",
    sets: Sets = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Show what a run would do: every node, its caps and its data, and the totals against this machine."""
    from edgebed.core.runtimes import TRAITS
    from edgebed.emulation.means import check_mechanisms
    from edgebed.planning.describe import as_dict, as_text, describe_plan
    from edgebed.planning.link_warnings import check_links
    from edgebed.planning.memory import check_caps
    from edgebed.planning.planning import plan_trials
    from edgebed.scenario.load import load_scenario

    with contextlib.redirect_stdout(sys.stderr):  # what a user's own code prints is not the plan
        loaded = load_scenario(scenario, sets or ())
        planned = plan_trials(loaded)
        check_mechanisms([trial.plan for trial in planned], runtime, emulation)
        check_links(loaded, planned, runtime, emulation)
        if TRAITS[runtime].has_containers and not force:
            check_caps(loaded, planned)
        descriptions = [describe_plan(trial, runtime=runtime, emulation=emulation) for trial in planned]
    if json:
        put_json([as_dict(description) for description in descriptions])
    else:
        put("\n\n".join(as_text(description).rstrip() for description in descriptions))


@app.command("ls")
def list_all(*, json: Json = False, runs_dir: RunsDir = None) -> None:
    """List all runs."""
    from edgebed.journal.run_folder import list_runs, runs_root

    root = runs_root(runs_dir)
    if runs_dir is not None and not root.is_dir():
        if root.exists():
            raise ScenarioError(f"--runs-dir: {root.absolute()} is a file; give a folder")
        raise ScenarioError(f"--runs-dir: the folder {root.absolute()} does not exist")
    rows = [_row(folder) for folder in list_runs(root)]
    if json:
        put_json(rows)
    elif not rows:
        say(f"no runs in {root.absolute()}")
    else:
        put_rich(lambda console: _print_runs(rows, console))
        if any(row["result"] in BROKEN_OFF for row in rows):
            say(f"edgebed resume RUN resumes one that is {' or '.join(BROKEN_OFF)}")


@app.command()
def show(name: RunName, *, json: Json = False, runs_dir: RunsDir = None) -> None:
    """Show the results of a run: table, chart, outcome."""
    from edgebed.running.results import load

    show_results(load(name, runs_dir=runs_dir), json=json)


@app.command()
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
    from edgebed.reports.run.report import charts_of_run, render, write_report
    from edgebed.running.results import load

    require_figures(figures)
    result = load(name, runs_dir=runs_dir)
    if output is None:
        write_report(result)
    else:
        require_place("--output", output)
        write_atomically(output, render(result).encode(), "--output")
    put(str(output or result.folder.report))
    make_figures(figures, lambda: charts_of_run(result))


@link.command("show")
def show_links(name: RunName, *, json: Json = False, runs_dir: RunsDir = None) -> None:
    """Show each link of a run as asked, as held and as measured."""
    from edgebed.reports.run.conditions_text import link_dicts
    from edgebed.reports.run.terminal import print_links
    from edgebed.running.results import load

    result = load(name, runs_dir=runs_dir)
    if json:
        put_json(link_dicts(result))
    else:
        put_rich(lambda console: print_links(result, console))


link.command("set")(cli_by_hand.set_link)
for act in (
    cli_by_hand.kill,
    cli_by_hand.freeze,
    cli_by_hand.thaw,
    cli_by_hand.restart,
    cli_by_hand.cut,
    cli_by_hand.heal,
    cli_by_hand.cpus,
    cli_by_hand.rollback,
):
    app.command()(act)


app.command()(cli_watching.logs)
app.command()(cli_watching.events)
app.command()(cli_watching.watch)


@app.command()
def down() -> None:
    """Remove leftovers of killed controllers: containers, networks and cgroups whose controller is gone."""
    from edgebed.emulation import cgroups
    from edgebed.runtimes.containers import engine, leftovers

    removed = cgroups.remove_leftovers(put)
    if engine.is_there():
        removed += leftovers.remove_leftovers(put)
    else:
        put(f"containers were not looked for: there is no {engine.SOCKET}, and DOCKER_HOST is not set")
    if not removed:
        put("nothing to remove")


@app.command()
def calibrate(
    *,
    runtime: Annotated[
        Literal["docker", "process"] | None,
        typer.Option(help="Measure this runtime alone (default: all that this host has).", show_default=False),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Two rates, in minutes; the results are not stored.")] = False,
    json: Json = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the results as JSON here, not where `plan` looks for them."),
    ] = None,
) -> None:
    """Measure what this host can emulate: rates, small pushes, CPU caps, numbers of nodes; for `plan`'s warnings."""
    from edgebed.emulation.calibration import save
    from edgebed.reports.studies.calibration_table import print_calibration, result_text
    from edgebed.studies.host.calibrating import FULL, QUICK, keep
    from edgebed.studies.host.calibrating import calibrate as measure

    if output is not None:
        require_place("--output", output)
    calibration = measure(
        runtime, QUICK if quick else FULL, say, lambda place, result: say(f"{place}: {result_text(result)}")
    )
    if json:
        put_json(calibration)
    else:
        put_rich(lambda console: print_calibration(calibration, console))
    if output is not None:
        save(calibration, output)
    elif not quick:
        say(f"stored in {keep(calibration)}")


@app.command()
def schema() -> None:
    """Print the JSON Schema of scenarios, for editors."""
    from edgebed.scenario.reference import json_schema

    put(json_schema().rstrip())


def _print_runs(rows: "Sequence[Mapping[str, str]]", console: "Console") -> None:
    """Print one line a run; in a file nothing is cut or left out."""
    from edgebed.core.quantities import local_text
    from edgebed.reports.run.terminal import plain_table

    columns = {name: [row[name] for row in rows] for name in ("run", "started", "runtime", "trials")}
    columns["result"] = [row["badge"] for row in rows]
    columns["started"] = [local_text(moment) for moment in columns["started"]]
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = sum(max(map(len, (name, *cells))) + 2 for name, cells in columns.items())
    table = plain_table(columns, console.width, dispensable=("trials", "runtime", "started"), flexible="trials")
    console.print(table)


def _row(folder: Any) -> dict[str, str]:
    """A run as a row of the list; from its summary alone, so that a long list is quick."""
    from edgebed.core.reading import read_json
    from edgebed.journal.outcome import outcome_of
    from edgebed.journal.summary import RunSummary

    try:
        manifest = folder.read_manifest()
    except EdgebedError as error:  # the others are listed all the same
        say(f"error: {error}")
        empty = dict.fromkeys(("started", "runtime", "trials", "conditions"), "")
        return {"run": folder.name, **empty, "result": "damaged", "badge": "damaged"}
    try:
        summary = read_json(folder.summary, RunSummary, "a summary")
        outcome = outcome_of(summary.trials, summary.not_begun)  # an older edgebed has written none
        result, conditions, badge = outcome.result, outcome.conditions, outcome.badge
    except EdgebedError:
        result = badge = "running" if folder.is_running() else "unfinished"
        conditions = ""
    return {
        "run": folder.name,
        "started": manifest.get("started", ""),
        "runtime": manifest.get("runtime", ""),
        "trials": ", ".join(manifest.get("trials", ())),
        "result": result,
        "conditions": conditions,
        "badge": badge,
    }
