"""The commands on all runs there are: they are listed, noted and removed."""

import datetime as dt
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgebed.cli import completion
from edgebed.cli.options import Json, RunName, RunsDir, put_parts
from edgebed.core.console import put, put_json, say
from edgebed.core.errors import ScenarioError
from edgebed.core.quantities import bytes_text, count_text

if TYPE_CHECKING:
    from edgebed.journal.overview import RunOverview
    from edgebed.journal.run_folder import RunFolder
    from edgebed.reports.writing.page import Grid

BROKEN_OFF = ("interrupted", "unfinished")
"""Results of runs that can be resumed."""
NOTE_SHOWN = 40
"""Characters of a note in a list; the page of all runs and JSON have all of it."""
Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="WORD...",
        help="Runs alone with each of these words in name, note, options, trials, runtime, result or question.",
        show_default=False,
    ),
]
Results = Annotated[
    list[str] | None,
    typer.Option(
        "--result",
        metavar="RESULT",
        help="Runs alone with this result: met, not met, completed, diverged, interrupted, unfinished … Repeatable.",
        show_default=False,
    ),
]
Sort = Annotated[
    str,
    typer.Option(
        metavar="ORDER",
        help="Order: name, started (newest first), best (the best first), time (shortest first), size (largest first), "
        "or result.",
    ),
]
RunNames = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN...",
        help="Runs, as scenario/number or folders.",
        autocompletion=completion.runs,
        show_default=False,
    ),
]
NoteText = Annotated[str, typer.Argument(metavar="TEXT", help='The note, a line; "" takes it away.')]
ResumableToo = Annotated[
    bool, typer.Option("--force", help="Also remove runs that could be resumed; what they have is lost.")
]
Keep = Annotated[int | None, typer.Option(min=0, help="Keep the newest N runs of each scenario.", show_default=False)]
Older = Annotated[
    str | None,
    typer.Option(
        metavar="AGE", help="Runs alone that were begun as long ago, e.g. 12h, 30d or 8w.", show_default=False
    ),
]
AGES = {"h": dt.timedelta(hours=1), "d": dt.timedelta(days=1), "w": dt.timedelta(weeks=1)}
Yes = Annotated[bool, typer.Option("--yes", help="Remove them; without it they are listed alone.")]


def ls(
    words: Words = None, *, results: Results = None, sort: Sort = "name", json: Json = False, runs_dir: RunsDir = None
) -> None:
    """List runs: all, or those that are described; with what options changed, their notes and the room they take."""
    from edgebed.journal.overview import chosen_by, sorted_by
    from edgebed.journal.run_folder import list_runs

    root = _root(runs_dir)
    found = _overviews(list_runs(root))
    rows = sorted_by(chosen_by(found, words or (), results or ()), sort)
    if json:
        put_json([_row_dict(row) for row in rows])
    elif not rows:
        say(f"none of {count_text(len(found), 'run')} is so" if found else f"no runs in {root.absolute()}")
    else:
        put_parts([_runs_grid(rows)])
        if any(row.result in BROKEN_OFF for row in rows):
            say(f"edgebed resume RUN resumes one that is {' or '.join(BROKEN_OFF)}")


def note(name: RunName, text: NoteText, *, runs_dir: RunsDir = None) -> None:
    """Note on a run what it was for, in a line that `edgebed ls` and the page of all runs show."""
    from edgebed.journal.run_folder import RunFolder, checked_note, runs_root

    folder = RunFolder.find(runs_root(runs_dir), name)
    folder.set_note(checked_note(text, "TEXT"))
    _write_indexes([folder])


def rm(names: RunNames, *, force: ResumableToo = False, runs_dir: RunsDir = None) -> None:
    """Remove runs, each by its number; `latest` and the page of all runs follow.

    A run in progress stays, and with it all others that are named; so does one that could be resumed, unless --force is
    given.
    """
    from edgebed.journal.run_folder import runs_root
    from edgebed.running.removal import why_kept

    root = runs_root(runs_dir)
    folders = list({folder.path: folder for folder in (_numbered(root, name) for name in names)}.values())
    kept = {folder.name: why_kept(folder, resumable_too=force) for folder in folders}
    if any(kept.values()):
        hint = "" if force else "; --force removes runs that can be resumed, too"
        raise ScenarioError(*(f"run {run} {why}{hint if 'resume' in why else ''}" for run, why in kept.items() if why))
    _remove(folders, resumable_too=force)


def prune(
    words: Words = None,
    *,
    keep: Keep = None,
    older: Older = None,
    results: Results = None,
    force: ResumableToo = False,
    yes: Yes = False,
    runs_dir: RunsDir = None,
) -> None:
    """List the runs that all of this describes, and the room they take; with --yes, remove them.

    Runs in progress stay, and those that could be resumed unless --force is given.
    """
    from edgebed.journal.overview import chosen_by
    from edgebed.journal.run_folder import list_runs
    from edgebed.running.removal import why_kept

    if keep is None and older is None and not words and not results:
        raise ScenarioError("which runs? say it by --keep N, --older AGE, --result RESULT or words, e.g. --older 30d")
    folders = {folder.name: folder for folder in list_runs(_root(runs_dir))}
    rows = chosen_by(_overviews(folders.values()), words or (), results or ())
    newest = _newest(folders.values(), keep or 0)
    before = _before(older)
    rows = [row for row in rows if row.name not in newest and (before is None or _is_before(row, before))]
    kept = {row.name: why_kept(folders[row.name], resumable_too=force) for row in rows}
    for name, why in kept.items():
        if why:
            say(f"kept: {name} {why}")
    rows = [row for row in rows if not kept[row.name]]
    if not rows:
        say("nothing to remove")
    elif yes:
        _remove([folders[row.name] for row in rows], resumable_too=force)
    else:
        put_parts([_runs_grid(rows)])
        total = bytes_text(sum(row.disk_bytes for row in rows))
        say(f"{count_text(len(rows), 'run')}, {total}; nothing is removed yet: --yes removes them")


def _root(runs_dir: Path | None) -> Path:
    """The folder of runs; ScenarioError where one was named that is none."""
    from edgebed.journal.run_folder import runs_root

    root = runs_root(runs_dir)
    if runs_dir is not None and not root.is_dir():
        if root.exists():
            raise ScenarioError(f"--runs-dir: {root.absolute()} is a file; give a folder")
        raise ScenarioError(f"--runs-dir: the folder {root.absolute()} does not exist")
    return root


def _overviews(folders: "Iterable[RunFolder]") -> "list[RunOverview]":
    """A line of each; what is wrong with one is said, and the others have theirs all the same."""
    from edgebed.journal.overview import overview_of

    rows = [overview_of(folder) for folder in folders]
    for row in rows:
        if row.problem:
            say(f"error: {row.problem}")
    return rows


def _numbered(root: Path, name: str) -> "RunFolder":
    """The run of this name; ScenarioError where the name could mean another one tomorrow."""
    from edgebed.journal.run_folder import RunFolder

    folder = RunFolder.find(root, name)
    number = Path(name).name
    if not (number.isdecimal() and int(number) == int(folder.path.name)):
        raise ScenarioError(f"'{name}' means {folder.name} just now; remove it by its number: edgebed rm {folder.name}")
    return folder


def _newest(folders: "Iterable[RunFolder]", count: int) -> set[str]:
    """Names of the newest runs of each scenario; folders are by scenario and number."""
    names: dict[Path, list[str]] = {}
    for folder in folders:
        names.setdefault(folder.path.parent, []).append(folder.name)
    return {name for each in names.values() for name in each[-count:] if count}


def _before(older: str | None) -> dt.datetime | None:
    """The moment before which runs have to have begun; ScenarioError where the option is no age."""
    if older is None:
        return None
    age = re.fullmatch(r"(\d{1,5})([hdw])", older, re.ASCII)
    if age is None:
        why = "counts minutes" if re.fullmatch(r"\d+m", older, re.ASCII) else "is no age"
        raise ScenarioError(f"--older: {older!r} {why}; give hours, days or weeks, e.g. 12h, 30d or 8w")
    return dt.datetime.now(dt.UTC) - int(age[1]) * AGES[age[2]]


def _is_before(row: "RunOverview", moment: dt.datetime) -> bool:
    """Whether a run began before a moment; one that does not say when did not."""
    return bool(row.started) and dt.datetime.fromisoformat(row.started) < moment


def _remove(folders: "Sequence[RunFolder]", *, resumable_too: bool) -> None:
    """Remove runs, and say of each what became of it."""
    from edgebed.running.removal import remove_run

    try:
        for folder in folders:
            room, has_volume = folder.disk_bytes(), _has_volume(folder)
            remove_run(folder, resumable_too=resumable_too)
            put(f"removed {folder.name}, {bytes_text(room)}")
            if has_volume:
                say(f"the log of a server of {folder.name} is left on its container engine; edgebed down removes it")
    finally:
        _write_indexes(folders)


def _has_volume(folder: "RunFolder") -> bool:
    """Whether the log of a server of the run lies in a volume of an engine."""
    logs = [path for path in folder.path.glob("*/server-log") if path.is_dir()]
    if not logs:
        return False
    from edgebed.runtimes.containers.server_volume import recorded  # loads the engine's client

    return any(map(recorded, logs))


def _write_indexes(folders: "Sequence[RunFolder]") -> None:
    """Write the pages of all runs anew that list these."""
    from edgebed.reports.run.runs_index import write_index

    for root in dict.fromkeys(folder.path.parent.parent for folder in folders):
        write_index(root)


def _runs_grid(rows: "Sequence[RunOverview]") -> "Grid":
    """One line a run."""
    from edgebed.core.quantities import local_text
    from edgebed.journal.overview import best_column
    from edgebed.reports.writing.page import Grid

    best, bests = best_column(rows)
    head = ("run", "started", "runtime", "trials", "changed", "note", best, "size", "result")
    cells = [
        (
            row.name, local_text(row.started), row.runtime, ", ".join(row.trials), ", ".join(row.changed),
            _short(row.note), told, bytes_text(row.disk_bytes), row.badge,
        )
        for row, told in zip(rows, bests, strict=True)
    ]  # fmt: skip
    given_up = ("size", "trials", "runtime", "started", best)
    cut = "changed" if any(row.changed for row in rows) else "trials"
    return Grid(head, cells, dispensable=given_up, flexible=cut).without_empty_columns()


def _short(note: str) -> str:
    return note if len(note) <= NOTE_SHOWN else f"{note[: NOTE_SHOWN - 1]}…"


def _row_dict(row: "RunOverview") -> dict[str, object]:
    """A run of the list for programs."""
    told = {"started": row.started, "runtime": row.runtime, "trials": ", ".join(row.trials), "result": row.result}
    figures = {name: getattr(row.best, name) if row.best else {} for name in ("best", "final")}
    figures |= {"disk_bytes": row.disk_bytes}
    own = {"changed": list(row.changed), "note": row.note}
    return {"run": row.name, **told, "conditions": row.conditions, "badge": row.badge, **own, **figures}
