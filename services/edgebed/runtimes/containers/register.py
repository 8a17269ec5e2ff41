"""The controllers on this host that have containers, so that any command finds out that one was killed.

Each has a file with its name in $XDG_STATE_HOME/edgebed/controllers, from before it makes anything until all is gone.
That of a controller in a container goes with it: what it left is removed by the next one, or by `edgebed down`.
"""

import contextlib
import os
from pathlib import Path

from edgebed.core.process_names import is_running, own_process_name

SEPARATOR = "_"  # in a file's name, for the slashes of a process's


def note_containers() -> None:
    """Note that this process has containers; where that fails, the next run finds them all the same."""
    with contextlib.suppress(OSError):
        _folder().mkdir(parents=True, exist_ok=True)
        _own().touch()


def forget_containers() -> None:
    """Note that this process has none any more."""
    with contextlib.suppress(OSError):
        _own().unlink(missing_ok=True)


def are_left_behind() -> bool:
    """Whether a controller has ended without removing its containers."""
    return bool(_dead())


def forget_dead() -> None:
    """Note that what controllers had left is gone."""
    for place in _dead():
        place.unlink(missing_ok=True)


def _folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state"
    return Path(state) / "edgebed/controllers"


def _own() -> Path:
    return _folder() / own_process_name().replace("/", SEPARATOR)


def _dead() -> list[Path]:
    try:
        found = list(_folder().iterdir())
    except OSError:
        return []
    return [place for place in found if not is_running(place.name.replace(SEPARATOR, "/"))]
