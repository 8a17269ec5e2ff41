"""The folder of the user's that each node has, copied before anything starts."""

import shutil
from pathlib import Path

from edgebed.core.errors import InfrastructureError


def copy_files(source: str, copy: Path) -> Path:
    """Copy a folder, but for the folder of runs that the copy is in, if it has that; return the copy.

    InfrastructureError where it cannot be copied.
    """
    own = {*copy.parent.resolve().parents, copy.parent.resolve()}

    def ignored(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if Path(folder, name).resolve() in own or name == "__pycache__"]

    try:
        shutil.copytree(source, copy, ignore=ignored, ignore_dangling_symlinks=True)
    except (OSError, shutil.Error) as error:
        raise InfrastructureError(f"program.files: {source} cannot be copied: {error}") from error
    return copy
