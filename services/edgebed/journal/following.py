"""Following a run while it is in progress: what is new in its files, whoever writes them.

No message is sent to a reader: it looks at the files and at the lock that the controller holds, which ends with the
controller however it ends. So a reader in another process or container sees the same, and none waits for the dead.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from edgebed.core.errors import EdgebedError, ScenarioError
from edgebed.core.quantities import first_text
from edgebed.core.reading import open_file
from edgebed.journal.run_folder import RunFolder

LOOK_EVERY_S = 0.5
LISTED_MAX = 20

Pause = Callable[[float], None]
"""A function that waits for a number of seconds."""


def looks(
    folder: RunFolder, *, follow: bool = True, pause: Pause = time.sleep, every_s: float = LOOK_EVERY_S
) -> Iterator[bool]:
    """Yield whenever it is time to look, with whether it is the last time. Without `follow` the first is the last.

    Whether the run is in progress is checked before each look, so that nothing that was written until its end is
    missed.
    """
    while True:
        is_last = not follow or not folder.is_running()
        yield is_last
        if is_last:
            return
        pause(every_s)


class GrowingFile:
    """A file of lines that somebody else appends to, or will make."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read = 0

    def new_lines(self, *, whole_only: bool) -> Iterator[bytes]:
        """What was appended since the last call, without ends of lines.

        With `whole_only` a line that is still being written waits.
        """
        try:
            file = open_file(self.path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise EdgebedError(f"{self.path}: cannot be read: {error.strerror}") from error
        with file:
            file.seek(self._read)
            for line in file:
                if whole_only and not line.endswith(b"\n"):
                    return
                self._read += len(line)
                yield line.removesuffix(b"\n")


def trial_names(folder: RunFolder) -> list[str]:
    """The names of a run's trials, with those that have not begun."""
    return list(dict.fromkeys([*folder.read_manifest().get("trials", ()), *(each.name for each in folder.trials())]))


def planned_nodes(folder: RunFolder, trials: Sequence[str] = ()) -> list[str]:
    """The names of the nodes in the trials that have begun, of all trials if none is named."""
    begun = [each for each in folder.trials() if not trials or each.name in trials]
    return list(dict.fromkeys(node.node for trial in begun for node in trial.read_any_plan().nodes))


def require_known(
    folder: RunFolder, noun: str, asked: Sequence[str], known: Sequence[str], listed_max: int = LISTED_MAX
) -> None:
    """ScenarioError, listing what there is, where something is asked for that the run has not."""
    for name in asked:
        if name not in known:
            there = first_text(known, listed_max) or "none yet"
            raise ScenarioError(f"{folder.path}: no {noun} '{name}'; there are {there}.")
