"""The logs of a run's nodes as lines to print, each with the name of the node that wrote it."""

import time
from collections.abc import Iterator
from pathlib import Path

from edgebed.core.errors import ScenarioError
from edgebed.core.reading import open_file
from edgebed.core.runtimes import is_virtual
from edgebed.journal.following import GrowingFile, Pause, looks, planned_nodes, require_known, trial_names
from edgebed.journal.run_folder import RunFolder

TAIL_BYTES = 16_384


def log_lines(
    folder: RunFolder,
    *,
    node: str | None = None,
    trial: str | None = None,
    follow: bool = False,
    pause: Pause = time.sleep,
) -> Iterator[str]:
    """Lines of the logs of `node` (all nodes if None) in `trial` (all if None), prefixed unless there is but one log.

    With `follow` it also yields what is appended until the run ends. ScenarioError, listing what there is, when
    nothing matches.
    """
    _require_match(folder, node, trial)
    files: dict[Path, GrowingFile] = {}
    for is_last in looks(folder, follow=follow, pause=pause):
        for path in _logs(folder, node, trial):
            prefix = "" if node and trial else f"{path.parent.parent.name}/{path.stem}: "
            for line in files.setdefault(path, GrowingFile(path)).new_lines(whole_only=not is_last):
                for text in line.decode(errors="replace").splitlines() or [""]:
                    yield prefix + text


def last_lines(path: Path, count: int) -> list[str]:
    """The last lines of a log, read from its end; none where there is no log."""
    try:
        with open_file(path) as file:
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
    trials = [] if trial is None else [trial]
    require_known(folder, "trial", trials, trial_names(folder))
    logged = {path.stem for path in _logs(folder, None, trial)}
    if not logged and is_virtual(folder.read_manifest().get("runtime")):
        raise ScenarioError(f"{folder.path}: a simulated run has no node logs; `edgebed events` shows what happened.")
    nodes = list(dict.fromkeys([*planned_nodes(folder, trials), *sorted(logged)]))
    require_known(folder, "node", [] if node is None else [node], nodes)
