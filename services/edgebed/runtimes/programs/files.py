"""The folder of the user's that each node has, copied before anything starts."""

import shutil
from collections.abc import Callable, Collection
from pathlib import Path

from edgebed.core.errors import InfrastructureError


def left_out(own: Collection[Path]) -> Callable[[str, list[str]], list[str]]:
    """What says which names in a folder of the user's no node has: caches, and those of edgebed's `own` folders."""
    return lambda folder, names: [
        name for name in names if name == "__pycache__" or Path(folder, name).resolve() in own
    ]


def copy_files(source: str, copy: Path) -> Path:
    """Copy a folder, but for the folder of runs that the copy is in, if it has that; return the copy.

    InfrastructureError where it cannot be copied.
    """
    ignored = left_out({*copy.parent.resolve().parents, copy.parent.resolve()})
    try:
        shutil.copytree(source, copy, ignore=ignored, ignore_dangling_symlinks=True)
    except (OSError, shutil.Error) as error:
        raise InfrastructureError(f"program.files: {source} cannot be copied: {error}") from error
    return copy
