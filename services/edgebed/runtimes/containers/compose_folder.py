"""A folder in which `docker compose up` works, for whoever has edgebed installed and no checkout of it.

It has what comes with the code, by the paths of the repository, and the code itself in `services/edgebed`: the images
are built from the code that is installed, since nodes of other code than their controller's are refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from edgebed.core.errors import InfrastructureError, ScenarioError, unwritten
from edgebed.core.package import PACKAGE, SHIPPED, VERSION, code_files, shipped_files
from edgebed.core.quantities import first_text

CODE = Path("services/edgebed")
NAMES_MAX = 8
"""Files that a message names; of more it says how many."""


@dataclass(frozen=True)
class Written:
    """What was done to a folder."""

    files: tuple[Path, ...]
    """Files that were made or replaced, relative to the folder."""
    removed: tuple[Path, ...]
    """Modules of another version that were taken away."""


def write_compose_folder(folder: Path, *, force: bool = False) -> Written:
    """Write what `docker compose up` needs into a folder, made where it is missing; files that are right stay.

    Raises ScenarioError, before anything is written, for files that differ from edgebed's, unless `force` replaces
    them, and InfrastructureError where the folder cannot be written to.
    """
    sources = compose_files()
    try:
        stale = _stale(folder, sources)
        new = tuple(path for path in sources if not (folder / path).exists())
        other = tuple(path for path in sources if path not in new and not _is_same(sources[path], folder / path))
        if (other or stale) and not force:
            raise ScenarioError(
                f"{folder}: {_names((*other, *stale))} there and not edgebed {VERSION}'s; choose another folder, or "
                "have them replaced: --force"
            )
        for path in (*new, *other):
            _copy(sources[path], folder / path)
        for path in stale:
            (folder / path).unlink()
    except OSError as error:
        place = error.filename or folder
        raise InfrastructureError(f"{place} {unwritten(error, 'edgebed compose FOLDER')}") from None
    return Written(tuple(sorted((*new, *other))), stale)


def compose_files() -> dict[Path, Path]:
    """Return the file to copy from by path in the folder."""
    shipped = {path: SHIPPED / path for path in shipped_files()}
    return shipped | {CODE / path: PACKAGE / path for path in code_files()}


def _stale(folder: Path, sources: Mapping[Path, Path]) -> tuple[Path, ...]:
    """Return the modules in the folder that this version does not have: images would be of other code with them."""
    found = (path.relative_to(folder) for path in sorted((folder / CODE).rglob("*.py")))
    return tuple(path for path in found if path not in sources)


def _is_same(source: Path, place: Path) -> bool:
    return place.is_file() and place.read_bytes() == source.read_bytes()


def _copy(source: Path, place: Path) -> None:
    """Copy a file, and whether it can be run."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(source.read_bytes())
    place.chmod(0o755 if source.stat().st_mode & 0o100 else 0o644)


def _names(paths: tuple[Path, ...]) -> str:
    return f"{first_text(list(map(str, paths)), NAMES_MAX)} {'is' if len(paths) == 1 else 'are'}"
