"""The logs of a run's nodes as lines to print, each with the name of the node that wrote it."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from edgebed.errors import ScenarioError
from edgebed.observe.run_folder import RunFolder

FOLLOW_EVERY_S = 0.5


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
    nodes = sorted({path.stem for path in _logs(folder, None, trial)})
    if node is not None and node not in nodes:
        raise ScenarioError(f"{folder.path}: no log of a node '{node}'; there are {', '.join(nodes) or 'none yet'}.")


def _new_lines(path: Path, read: dict[Path, int], *, whole_only: bool) -> Iterator[str]:
    """What was appended since the last call; a line still being written waits if `whole_only`."""
    with path.open("rb") as file:
        file.seek(read.get(path, 0))
        content = file.read()
    if whole_only:
        content = content[: content.rfind(b"\n") + 1]
    read[path] = read.get(path, 0) + len(content)
    yield from content.decode(errors="replace").splitlines()
