"""The folder of an export: written beside its place and then moved there, file by file.

Exporting again replaces what an export left there. A folder that holds anything else is refused, so that nobody's files
are mixed with ours, or lost.
"""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from edgebed.core.errors import InfrastructureError, ScenarioError, unwritten

NAMED_MAX = 3
"""Number of foreign files that are named."""

IsOurs = Callable[[Path], bool]
"""A function: whether an export may have written a file, by its path inside the folder."""


def require_folder(output: Path, is_ours: IsOurs) -> None:
    """Check that an export can go to `output`; ScenarioError where it cannot."""
    if output.exists() and not output.is_dir():
        raise ScenarioError(f"--output: {output} is a file; give a folder")
    if not output.exists() and not output.parent.is_dir():
        raise ScenarioError(f"--output: there is no folder {output.parent}; make it first, or choose another")
    found = (str(path) for path in _files(output) if not is_ours(path))
    foreign = list(islice(found, NAMED_MAX + 1))  # It may be a whole home folder.
    if foreign:
        more = " and more" if len(foreign) > NAMED_MAX else ""
        raise ScenarioError(
            f"--output: {output} holds what no export of this format has written: {', '.join(foreign[:NAMED_MAX])}"
            f"{more}. Give a new folder, an empty one, or that of an earlier export."
        )


@contextlib.contextmanager
def replacing(output: Path) -> Iterator[Path]:
    """A new folder to write into; in the end its files replace those of `output`."""
    try:
        with tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.name}.") as staged:
            yield Path(staged)
            _put_in_place(Path(staged), output)
    except OSError as error:
        raise InfrastructureError(f"{output}: {unwritten(error, '--output')}") from error


def _put_in_place(staged: Path, output: Path) -> None:
    before, written = set(_files(output)), set(_files(staged))
    for path in written:
        (output / path).parent.mkdir(parents=True, exist_ok=True)
        (staged / path).replace(output / path)
    for path in before - written:
        (output / path).unlink()
        with contextlib.suppress(OSError):  # The folder still has another file.
            (output / path).parent.rmdir()


def _files(folder: Path, below: Path = Path()) -> Iterator[Path]:
    """Paths inside the folder of everything that is no folder; nothing where there is no such folder."""
    for path in sorted((folder / below).iterdir()) if folder.is_dir() else ():
        place = below / path.name
        if path.is_dir() and not path.is_symlink():
            yield from _files(folder, place)
        else:
            yield place
