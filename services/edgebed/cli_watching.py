"""The commands that look at a run, also while it goes on elsewhere: its results, logs, events, and its live view."""

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from edgebed.cli_options import INTERRUPTED, Json, RunName, RunsDir
from edgebed.errors import InfrastructureError
from edgebed.observe.output import put, put_lines, put_rich, say

if TYPE_CHECKING:
    from edgebed.results import Run

Follow = Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run ends.")]


def logs(
    name: RunName,
    node: Annotated[str | None, typer.Argument(help="One node; all without it.", show_default=False)] = None,
    *,
    trial: Annotated[str | None, typer.Option(help="One trial; all without it.")] = None,
    follow: Follow = False,
    runs_dir: RunsDir = None,
) -> None:
    """Print the logs of a run's nodes, each line with the name of its node; to a file or pipe as the node wrote it."""
    from edgebed.observe.logs import log_lines
    from edgebed.results import load

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
        typer.Option("--trial", metavar="T", help="Of this trial. Repeatable.", show_default=False),
    ] = None,
    nodes: Annotated[
        list[str] | None,
        typer.Option("--node", metavar="N", help="Said by this node, or about it. Repeatable.", show_default=False),
    ] = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="K", help="Of this kind, e.g. fault. Repeatable.", show_default=False),
    ] = None,
    runs_dir: RunsDir = None,
) -> None:
    """Print what a run's journals say: seconds since the trial's launch, trial, node, what happened."""
    from edgebed.observe.events import Selection, event_lines
    from edgebed.results import load

    folder = load(name, runs_dir=runs_dir).folder
    selection = Selection(trials=trials or (), nodes=nodes or (), kinds=kinds or ())
    with _ending_quietly():
        put_lines(event_lines(folder, selection, json=json, follow=follow, pause=_flush_and_sleep))


def watch(name: RunName, *, json: Json = False, runs_dir: RunsDir = None) -> None:
    """Watch a run that was started elsewhere until it ends; then its results and its exit code, as of `run`.

    Ctrl-C ends the watching, not the run. Of a run that is over the results are shown at once.
    """
    from edgebed.observe.progress import Progress
    from edgebed.observe.watching import watch_run
    from edgebed.results import Run, load
    from edgebed.runtimes.signals import ending_by_signal

    folder = load(name, runs_dir=runs_dir).folder
    if folder.is_running():
        try:
            with ending_by_signal(), Progress() as progress:
                watch_run(folder, progress)
        except KeyboardInterrupt:
            say(f"no longer watching; run {folder.name} goes on: edgebed watch {folder.name}")
            raise typer.Exit(INTERRUPTED) from None
    leave_with(Run(folder), json=json)


def leave_with(result: "Run", *, json: bool) -> None:
    """Show what came of a run, and leave with its exit code."""
    try:
        show_results(result, json=json)
    except InfrastructureError as error:  # The verdict stands, and all results are in the run's folder.
        say(f"error: {error}; the results are in {result.path}")
    raise typer.Exit(result.exit_code)


def show_results(result: "Run", *, json: bool) -> None:
    """The results as a table and a chart, or as JSON."""
    if json:
        put(result.summary_json().decode().rstrip())
        return
    from edgebed.observe.terminal import print_results

    put_rich(lambda console: print_results(result, console))
    if result.can_be_resumed:
        say(f"edgebed resume {result.folder.name} goes on")


def _flush_and_sleep(seconds: float) -> None:
    """What has been printed is to be read before the next look."""
    sys.stdout.flush()
    time.sleep(seconds)


@contextlib.contextmanager
def _ending_quietly() -> Iterator[None]:
    """Ctrl-C is how one leaves what goes on."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
