"""The page of all runs in a folder: what, when, what came of each, its key figures, and the way to its report.

Made anew when a run is over, from what each run's folder has in a line (journal/overview.py).
"""

import contextlib
import datetime as dt
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from edgebed.core.console import say
from edgebed.core.errors import InfrastructureError
from edgebed.core.quantities import UNMEASURED, bytes_text, count_text, seconds_text
from edgebed.journal.outcome import tone_of
from edgebed.journal.overview import IN_PROGRESS, RunOverview, best_column, overview_of
from edgebed.journal.run_folder import list_runs, write_atomically
from edgebed.reports.run.report import write_report
from edgebed.reports.writing.html import to_html
from edgebed.reports.writing.page import Grid, Page, Paragraph, Part, Span, Text, legend
from edgebed.running.results import Run

INDEX = "index.html"


def write_report_and_index(run: Run) -> None:
    """Write the report of a run, and the page of all runs beside it anew; InfrastructureError as `write_report`."""
    write_report(run)
    write_index(run.path.parent.parent)


def write_index(root: Path) -> None:
    """Write the page of all runs into their folder; where that is impossible, say so: no run depends on it."""
    if not root.is_dir():
        return
    try:
        with _held(root):  # of two runs that end at once, the second to write has read both
            write_atomically(root / INDEX, to_html(index_page(root)).encode())
    except InfrastructureError as error:
        say(f"note: no page of all runs: {error}")


def index_page(root: Path) -> Page:
    """The page: the newest run first."""
    folders = {folder.name: folder for folder in list_runs(root)}
    runs = sorted(map(overview_of, folders.values()), key=lambda run: run.started, reverse=True)
    reports = {name for name, folder in folders.items() if folder.report.exists()}
    others = [path.name for path in sorted(root.glob("*.html")) if path.name != INDEX]
    links = [piece for name in others for piece in (", ", Span(name, file=name))][1:]
    best, bests = best_column(runs)
    head = (
        "run", "started (UTC)", "result", best, "up and down", "time", "runtime", "took", "size", "changed",
        "note", "trials", "question",
    )  # fmt: skip
    rows = [_row(run, told, has_report=run.name in reports) for run, told in zip(runs, bests, strict=True)]
    parts: list[Part] = [
        legend(
            "A click on a column's title sorts by it. Bytes are the payload in both directions; time is training; "
            "what changed was set by options; size is the room on the disk: edgebed rm and edgebed prune remove runs."
        ),
        Paragraph(("Pages of several runs: ", *links, ".") if links else ""),
        Grid(head, rows, is_sortable=True).without_empty_columns(),
    ]
    return Page(name="runs", heading=count_text(len(runs), "run"), parts=parts)


def _row(run: RunOverview, best: str, *, has_report: bool) -> tuple[Text, ...]:
    tone = "quiet" if run.result in IN_PROGRESS else tone_of(run.exit_code, run.result, run.conditions)
    return (
        Span(run.name, file=f"{run.name}/report.html" if has_report else f"{run.name}/"),
        _moment(run.started),
        Span(run.badge, tone),
        _best(run, best),
        _range([each.passed_bytes for each in run.figures], bytes_text),
        _range([each.time_s for each in run.figures], seconds_text),
        run.runtime,
        Span(seconds_text(run.wall_s), order=run.wall_s),
        Span(bytes_text(run.disk_bytes), order=run.disk_bytes),
        ", ".join(run.changed),
        run.note,
        ", ".join(run.trials),
        run.question,
    )


def _moment(started: str) -> Text:
    if not started:
        return UNMEASURED
    moment = dt.datetime.fromisoformat(started).astimezone(dt.UTC)
    return Span(f"{moment:%Y-%m-%d %H:%M}", order=moment.timestamp())


def _best(run: RunOverview, told: str) -> Text:
    """The best headline of all trials, with the trial where there are several."""
    if run.best is None:
        return UNMEASURED
    return Span(told + (f" ({run.best.trial})" if len(run.figures) > 1 else ""), order=run.rank)


def _range(values: Sequence[float | None], write: Callable[[float | None], str]) -> Text:
    """The least and the most of all trials."""
    known = [value for value in values if value is not None]
    if not known:
        return UNMEASURED
    ends = dict.fromkeys(map(write, (min(known), max(known))))
    return Span(" to ".join(ends), order=max(known))


@contextlib.contextmanager
def _held(root: Path) -> Iterator[None]:
    """Wait until nobody else writes the page; on a file system without locks nobody waits."""
    folder = os.open(root, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
