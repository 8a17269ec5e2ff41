"""The commands that show a run, also one in progress elsewhere: its results, logs, events, and its live view."""

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from edgebed.cli.options import INTERRUPTED, Json, RunName, RunsDir
from edgebed.core.console import put, put_lines, put_rich, say
from edgebed.core.errors import InfrastructureError

if TYPE_CHECKING:
    from edgebed.running.results import Run

Follow = Annotated[bool, typer.Option("--follow", "-f", help="Follow the run until it ends.")]


def logs(
    name: RunName,
    node: Annotated[str | None, typer.Argument(help="Node (default: all).", show_default=False)] = None,
    *,
    trial: Annotated[str | None, typer.Option(help="Trial (default: all).")] = None,
    follow: Follow = False,
    runs_dir: RunsDir = None,
) -> None:
    """Print the logs of a run's nodes, each line with the name of its node; to a file or pipe as the node wrote it."""
    from edgebed.journal.logs import log_lines
    from edgebed.running.results import load

    folder = load(name, runs_dir=runs_dir).folder
    with _ending_quietly():
        put_lines(log_lines(folder, node=node, trial=trial, follow=follow, pause=_flush_and_sleep), as_is=True)


def events(
    name: RunName,
    *,
    follow: Follow = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line, as in events.jsonl.")] = False,
    trials: Annotated[
        list[str] | None,
        typer.Option("--trial", metavar="T", help="Only of this trial. Repeatable.", show_default=False),
    ] = None,
    nodes: Annotated[
        list[str] | None,
        typer.Option("--node", metavar="N", help="Only from or about this node. Repeatable.", show_default=False),
    ] = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="K", help="Only of this kind, e.g. fault. Repeatable.", show_default=False),
    ] = None,
    runs_dir: RunsDir = None,
) -> None:
    """Print what a run's journals say: seconds since the trial's launch, trial, node, what happened."""
    from edgebed.reports.live.events import EventFilter, event_lines
    from edgebed.running.results import load

    folder = load(name, runs_dir=runs_dir).folder
    selection = EventFilter(trials=trials or (), nodes=nodes or (), kinds=kinds or ())
    with _ending_quietly():
        put_lines(event_lines(folder, selection, json=json, follow=follow, pause=_flush_and_sleep))


def watch(name: RunName, *, json: Json = False, runs_dir: RunsDir = None) -> None:
    """Watch a run that was started elsewhere until it ends; then its results and its exit code, as of `run`.

    Ctrl-C ends the watching, not the run. The results of a finished run are shown at once.
    """
    from edgebed.reports.live.progress import ProgressDisplay
    from edgebed.reports.live.watching import watch_run
    from edgebed.running.results import Run, load
    from edgebed.runtimes.signals import ending_by_signal

    folder = load(name, runs_dir=runs_dir).folder
    if folder.is_running():
        try:
            with ending_by_signal(), ProgressDisplay() as progress:
                watch_run(folder, progress)
        except KeyboardInterrupt:
            say(f"no longer watching; run {folder.name} continues: edgebed watch {folder.name}")
            raise typer.Exit(INTERRUPTED) from None
    leave_with(Run(folder), json=json)


def leave_with(result: "Run", *, json: bool) -> None:
    """Show the results of a run, and exit with its exit code."""
    try:
        show_results(result, json=json)
    except InfrastructureError as error:  # The verdict stands, and all results are in the run's folder.
        say(f"error: {error}; the results are in {result.path}")
    raise typer.Exit(result.exit_code)


def show_results(result: "Run", *, json: bool) -> None:
    """Print the results as a table and a chart, or as JSON."""
    if json:
        put(result.summary_json().decode().rstrip())
        return
    from edgebed.reports.run.terminal import print_results

    put_rich(lambda console: print_results(result, console))
    if result.can_be_resumed:
        say(f"to resume: edgebed resume {result.folder.name}")


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
