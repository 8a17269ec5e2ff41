"""The commands that run scenarios, or check them first."""

import contextlib
import sys
from pathlib import Path
from typing import Annotated

import typer

from edgebed.cli.look import leave_with
from edgebed.cli.options import (  # fmt: skip
    EmulationOption,
    Force,
    Hosts,
    Json,
    Port,
    Processes,
    RunName,
    RunsDir,
    RuntimeOption,
    ScenarioFile,
    Sets,
    Variants,
    Verbose,
    put_parts,
    require_place,
)
from edgebed.cli.problems import say_problems
from edgebed.core.console import put, put_json, say
from edgebed.core.errors import WITHOUT_LOG


def run(
    scenario: ScenarioFile,
    *,
    runtime: RuntimeOption = "process",
    emulation: EmulationOption = "auto",
    hosts: Hosts = None,
    sets: Sets = None,
    variants: Variants = None,
    force: Force = False,
    verbose: Verbose = False,
    json: Json = False,
    trace: Annotated[bool, typer.Option("--trace", help="Journal every message sent and received.")] = False,
    processes: Processes = None,
    port: Port = 0,
    note: Annotated[
        str,
        typer.Option(
            "--note", metavar="TEXT", help="What lists of runs are to say of this one, a line.", show_default=False
        ),
    ] = "",
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
            hosts=hosts,
            set=sets or (),
            variants=variants or (),
            force=force,
            trace=trace,
            processes=processes,
            runs_dir=runs_dir,
            port=port,
            progress=progress,
            note=note,
        )
    leave_with(result, json=json, verbose=verbose)


def resume(
    name: RunName,
    *,
    from_checkpoint: Annotated[
        bool,
        typer.Option(WITHOUT_LOG, help="Without the server's log: what came after the last checkpoint is lost."),
    ] = False,
    verbose: Verbose = False,
    json: Json = False,
    processes: Processes = None,
    port: Port = 0,
    runs_dir: RunsDir = None,
) -> None:
    """Resume a run that was interrupted, has failed, or whose controller was killed: from its server's log.

    Where there is no log, as in the simulation, it resumes from the last checkpoint.
    """
    from edgebed.journal.run_folder import find_resumable, runs_root

    find_resumable(runs_root(runs_dir), name)  # before anything that takes seconds is imported
    from edgebed.reports.live.progress import ProgressDisplay
    from edgebed.reports.reported import resume as resume_run

    with ProgressDisplay() as progress:
        result = resume_run(
            name, from_checkpoint=from_checkpoint, processes=processes, port=port, runs_dir=runs_dir, progress=progress
        )
    leave_with(result, json=json, verbose=verbose)


def validate(
    scenarios: Annotated[
        list[Path],
        typer.Argument(
            metavar="SCENARIO...", help="Files, or names of scenarios that come with edgebed.", show_default=False
        ),
    ],
    *,
    hosts: Hosts = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Check scenarios without running them; every problem with its line and what is allowed.

    Valid scenarios can be planned: own models and data are imported, examples counted and cut. Nothing is downloaded.
    """
    from edgebed.planning.checking import check

    checked = [check(path, sets or (), hosts) for path in scenarios]
    if json:
        put_json([each.as_dict() for each in checked])
    for each in checked:
        for warning in each.warnings:
            say(f"warning: {warning}")
        say_problems(each.located)
        if not json and not each.problems:
            put(each.text)
    raise typer.Exit(2 if any(each.problems for each in checked) else 0)


def plan(
    scenario: ScenarioFile,
    *,
    runtime: RuntimeOption = "process",
    emulation: EmulationOption = "auto",
    hosts: Hosts = None,
    sets: Sets = None,
    variants: Variants = None,
    force: Force = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Also write it here as a page: Markdown if the name ends in .md, else HTML.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show what a run would do: every node, its caps and its data, and the totals against this machine."""
    from edgebed.core.runtimes import TRAITS
    from edgebed.reports.plan.described import as_dict, descriptions_of
    from edgebed.reports.plan.page import page_of
    from edgebed.scenario.hosts import require_use
    from edgebed.scenario.load import load_scenario

    if output is not None:
        require_place("--output", output, "plan.html")
    with contextlib.redirect_stdout(sys.stderr):  # what a user's own code prints is not the plan
        loaded = load_scenario(scenario, sets or (), hosts=hosts).only(variants or ())
        require_use(hosts, runtime, loaded.trials.values())
        if TRAITS[runtime].has_containers:
            from edgebed.running.hosts import with_capacities  # loads the engine's client

            loaded = with_capacities(loaded)
        descriptions = descriptions_of(loaded, runtime, emulation, force=force)
    page = page_of(loaded.name, loaded.question, descriptions)
    if output is not None:
        from edgebed.journal.run_folder import write_atomically
        from edgebed.reports.writing.html import to_html
        from edgebed.reports.writing.markdown import to_markdown

        text = to_markdown(page) if output.suffix == ".md" else to_html(page)
        write_atomically(output, text.encode(), "--output")
    if json:
        put_json([as_dict(description) for description in descriptions])
    else:
        put_parts(page.brief)
        if output is not None:
            put(f"page: {output}")
