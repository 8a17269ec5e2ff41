"""The controllers on this host that have containers, so that any command finds out that one was killed.

Each has a file with its name in $XDG_STATE_HOME/edgebed/controllers, from before it makes anything until all is gone;
in it, as JSON, are the engines that it uses, so that what it leaves is found on all its hosts. That of a controller in
a container goes with it: what it left is removed by the next one, or by `edgebed down`.
"""

import contextlib
import json
import os
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgebed.core.process_names import is_running, own_process_name

if TYPE_CHECKING:
    from edgebed.core.planned.hosts import EngineAddress

SEPARATOR = "_"  # in a file's name, for the slashes of a process's
AGAIN_S = 600.0  # a host that does not answer costs each try ten seconds
ENGINES, LATER = "engines", "later_s"
"""Keys in a file: addresses of engines, and the monotonic time until which nobody needs to look again."""


def note_containers(engines: "Sequence[EngineAddress]" = ()) -> None:
    """Note that this process has containers, on these engines or on the user's own alone.

    Where that fails, the next run finds them all the same, on the engines that it uses.
    """
    with contextlib.suppress(OSError):
        _folder().mkdir(parents=True, exist_ok=True)
        _write(_own(), {ENGINES: [(engine.host, engine.engine, engine.tls) for engine in engines]})


def forget_containers() -> None:
    """Note that this process has none any more."""
    with contextlib.suppress(OSError):
        _own().unlink(missing_ok=True)


def are_left_behind() -> bool:
    """Whether a controller has ended without removing its containers; not soon after a host of it did not answer."""
    return any(_is_due(_read(place)) for place in _dead())


def engines_left_behind() -> "tuple[EngineAddress, ...]":
    """The engines, beside the user's own, that such controllers used."""
    return tuple(dict.fromkeys(engine for place in _dead() for engine in _engines(_read(place))))


def forget_dead(lost: "Collection[EngineAddress | None]" = ()) -> None:
    """Note that what controllers had left is gone; on the `lost` engines it is not, and is looked for later."""
    for place in _dead():
        noted = _read(place)
        with contextlib.suppress(OSError):
            if set(lost).isdisjoint(_engines(noted)):
                place.unlink(missing_ok=True)
            else:
                _write(place, noted | {LATER: time.monotonic() + AGAIN_S})


def _is_due(noted: dict[str, Any]) -> bool:
    """Whether to look for what a controller left; a time that is too late is of an earlier start of this machine."""
    return not 0.0 < noted.get(LATER, 0.0) - time.monotonic() <= AGAIN_S


def _engines(noted: dict[str, Any]) -> "list[EngineAddress]":
    from edgebed.core.planned.hosts import EngineAddress

    return [EngineAddress(*each) for each in noted.get(ENGINES, ())]


def _read(place: Path) -> dict[str, Any]:
    """What a file notes; nothing where it is damaged."""
    try:
        noted = json.loads(place.read_bytes())
    except (OSError, ValueError):
        return {}
    return noted if isinstance(noted, dict) else {}


def _write(place: Path, noted: dict[str, Any]) -> None:
    place.write_text(json.dumps(noted), encoding="utf-8")


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
