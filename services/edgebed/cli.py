"""The command line. Each command imports what it needs when it runs, so that `edgebed --help` is quick.

Exit codes: 0 all expectations met, 1 one is not or a trial diverged, 2 the user's mistake, 3 the infrastructure's or
edgebed's own, 130 interrupted; observe/outcome.py has which of several decides. With
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

from edgebed import (
    cli_agreeing,
    cli_by_hand,
    cli_comparing,
    cli_exporting,
    cli_profiling,
    cli_replaying,
    cli_reproducing,
    cli_sweeping,
    cli_watching,
)
from edgebed.cli_options import (
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
)  # fmt: skip
from edgebed.cli_watching import leave_with, show_results
from edgebed.errors import FULL, EdgebedError, ScenarioError
from edgebed.observe.output import discard_output, prepare_streams, put, put_json, put_rich, say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console


BROKEN_OFF = ("interrupted", "unfinished")
"""Results of runs that can be gone on with."""

app = typer.Typer(
    name="edgebed",
    help="Train a neural network across a fleet of emulated edge devices.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None if os.environ.get("NO_COLOR") else "rich",
)

link = typer.Typer(help="What the links of a run were, and whether they held; changing them.", no_args_is_help=True)
app.add_typer(link, name="link")


NAME_SHOWN = 60
"""Letters of a name that is too long."""


def main() -> None:
    """The entry point `edgebed`: errors of users and machines as one line each, bugs with their traceback."""
    prepare_streams()
    try:
        app(prog_name="edgebed")
    except EdgebedError as error:
        for problem in error.problems if isinstance(error, ScenarioError) else (str(error),):
            say(f"error: {problem}")
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # somebody gave it, whichever option it was
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
        from edgebed import __version__

        put(f"edgebed {__version__}")
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
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
    from edgebed.observe.progress import Progress
    from edgebed.running import run as run_scenario

    with Progress() as progress:
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
    """Go on with a run that was interrupted, has failed, or whose controller was killed, from its last checkpoint."""
    from edgebed.observe.progress import Progress
    from edgebed.resuming import resume as resume_run

    with Progress() as progress:
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

    What is valid can be planned: own models and data are imported, examples counted and cut. Nothing is downloaded.
    """
    from edgebed.scenario.checking import check

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
    from edgebed.emulation.means import check_means
    from edgebed.scenario.describe import as_dict, as_text, describe_plan
    from edgebed.scenario.link_doubts import check_links
    from edgebed.scenario.load import load_scenario
    from edgebed.scenario.memory import check_caps
    from edgebed.scenario.planning import plan_trials

    loaded = load_scenario(scenario, sets or ())
    with contextlib.redirect_stdout(sys.stderr):  # what a user's own model prints is not the plan
        planned = plan_trials(loaded)
    check_means([trial.plan for trial in planned], runtime, emulation)
    check_links(loaded, planned, runtime, emulation)
    if runtime == "docker" and not force:
        check_caps(loaded, planned)
    descriptions = [describe_plan(trial, runtime=runtime, emulation=emulation) for trial in planned]
    if json:
        put_json([as_dict(description) for description in descriptions])
    else:
        put("\n\n".join(as_text(description).rstrip() for description in descriptions))


@app.command("ls")
def list_all(*, json: Json = False, runs_dir: RunsDir = None) -> None:
    """List the runs there are."""
    from edgebed.observe.run_folder import list_runs, runs_root

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
            say(f"edgebed resume RUN goes on with one that is {' or '.join(BROKEN_OFF)}")


@app.command()
def show(name: RunName, *, json: Json = False, runs_dir: RunsDir = None) -> None:
    """Show the results of a run: table, chart, what came of it."""
    from edgebed.results import load

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
    """Make a run's report anew from its journals, also of a run that crashed; its charts for papers as well."""
    from edgebed.observe.report import charts_of_run, render, write_report
    from edgebed.observe.run_folder import write_atomically
    from edgebed.results import load

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
    """Show each link of a run: what was asked, what held it, what was measured."""
    from edgebed.observe.conditions_text import link_dicts
    from edgebed.observe.terminal import print_links
    from edgebed.results import load

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
    """Remove what killed controllers have left: containers, networks and cgroups whose controller is gone."""
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
    quick: Annotated[bool, typer.Option("--quick", help="Two rates, in minutes; the results are not kept.")] = False,
    json: Json = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the results as JSON here, not where `plan` looks for them."),
    ] = None,
) -> None:
    """Measure what this host can emulate: rates, small pushes, CPU caps, numbers of nodes; `plan` warns by it."""
    from edgebed.calibrating import FULL, QUICK, keep
    from edgebed.calibrating import calibrate as measure
    from edgebed.emulation.calibration import save
    from edgebed.observe.calibration_table import print_calibration, result_text

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
        say(f"kept in {keep(calibration)}")


@app.command()
def schema() -> None:
    """Print the JSON Schema of scenarios, for editors."""
    from edgebed.scenario.reference import json_schema

    put(json_schema().rstrip())


def _print_runs(rows: "Sequence[Mapping[str, str]]", console: "Console") -> None:
    """One line a run; in a file nothing is cut or left out."""
    from edgebed.observe.quantities import local_text
    from edgebed.observe.terminal import plain_table

    columns = {name: [row[name] for row in rows] for name in ("run", "started", "runtime", "trials")}
    columns["result"] = [row["badge"] for row in rows]
    columns["started"] = [local_text(moment) for moment in columns["started"]]
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = sum(max(map(len, (name, *cells))) + 2 for name, cells in columns.items())
    table = plain_table(columns, console.width, dispensable=("trials", "runtime", "started"), flexible="trials")
    console.print(table)


def _row(folder: Any) -> dict[str, str]:
    """One run in the list; from its summary alone, so that a long list is quick."""
    from edgebed.observe.outcome import outcome_of
    from edgebed.observe.reading import read_json
    from edgebed.observe.summary import RunSummary

    try:
        manifest = folder.read_manifest()
    except EdgebedError as error:  # the others are to be listed all the same
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
