"""The logs of a run's nodes as lines to print, each with the name of the node that wrote it."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from edgebed.errors import ScenarioError
from edgebed.observe.run_folder import RunFolder

FOLLOW_EVERY_S = 0.5
LISTED_MAX = 20
TAIL_BYTES = 16_384


def log_lines(
    folder: RunFolder,
    *,
    node: str | None = None,
    trial: str | None = None,
    follow: bool = False,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[str]:
    """Lines of the logs of `node` (all nodes if None) in `trial` (all if None), prefixed unless there is but one log.

    With `follow` it goes on with what is appended until the run has a summary. ScenarioError, listing what there is,
    when nothing matches.
    """
    _require_match(folder, node, trial)
    read: dict[Path, int] = {}
    while True:
        ended = folder.summary.exists()  # Looked at before the logs, so that the last lines are not missed.
        paths = _logs(folder, node, trial)
        for path in paths:
            prefix = "" if node and trial else f"{path.parent.parent.name}/{path.stem}: "
            for line in _new_lines(path, read, whole_only=follow and not ended):
                yield prefix + line
        if ended or not follow:
            return
        pause(FOLLOW_EVERY_S)


def last_lines(path: Path, count: int) -> list[str]:
    """The last lines of a log, read from its end; none where there is no log."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL_BYTES))
            return file.read().decode(errors="replace").splitlines()[-count:]
    except OSError:
        return []


def _logs(folder: RunFolder, node: str | None, trial: str | None) -> list[Path]:
    return [
        path
        for each in folder.trials()
        if trial in (None, each.name)
        for path in sorted(each.logs.glob("*.log"))
        if node in (None, path.stem)
    ]


def _require_match(folder: RunFolder, node: str | None, trial: str | None) -> None:
    trials = [each.name for each in folder.trials()]
    if trial is not None and trial not in trials:
        raise ScenarioError(f"{folder.path}: no trial '{trial}'; there are {', '.join(trials) or 'none yet'}.")
    logged = {path.stem for path in _logs(folder, None, trial)}
    if not logged and folder.read_manifest().get("runtime") == "simulation":
        raise ScenarioError(f"{folder.path}: a simulated run has no node logs; its events are in its events.jsonl.")
    planned = [each.node for part in folder.trials() if trial in (None, part.name) for each in part.read_plan().nodes]
    nodes = list(dict.fromkeys([*planned, *sorted(logged)]))
    if node is not None and node not in nodes:
        more = f" and {len(nodes) - LISTED_MAX} more" if len(nodes) > LISTED_MAX else ""
        there = ", ".join(nodes[:LISTED_MAX]) or "none yet"
        raise ScenarioError(f"{folder.path}: no node '{node}'; there are {there}{more}.")


def _new_lines(path: Path, read: dict[Path, int], *, whole_only: bool) -> Iterator[str]:
    """What was appended since the last call; a line still being written waits if `whole_only`."""
    with path.open("rb") as file:
        file.seek(read.get(path, 0))
        content = file.read()
    if whole_only:
        content = content[: content.rfind(b"\n") + 1]
    read[path] = read.get(path, 0) + len(content)
    yield from content.decode(errors="replace").splitlines()
