"""Runs are removed: which may be, and how `latest` and whoever looks meanwhile stay right.

A run is held while it is removed, so that none is that is in progress, and none is resumed meanwhile. Its folder is
renamed first: whoever looks finds the whole run or none. What a removal that was killed has left goes with the next.

Left to the caller: the page of all runs, and the log of a server in a container, which a volume of the engine holds.
"""

import contextlib
import shutil

from edgebed.core.errors import EdgebedError, InfrastructureError, ScenarioError
from edgebed.journal.run_folder import RunFolder, is_complete, point_latest_anew

REMOVED = ".removed"
"""Ending of the name of a folder that is being removed, before which a point stands."""


def why_kept(folder: RunFolder, *, resumable_too: bool = False) -> str:
    """Why a run is not to be removed, in words behind its name; empty if it may be.

    `resumable_too`: also one that `edgebed resume` could go on with.
    """
    if folder.path.is_symlink():
        return f"is a link to {folder.path.readlink()}; remove it by hand: {folder.path}"
    if folder.is_held():
        return "is in progress"
    if not folder.manifest.exists() and any(folder.path.iterdir()):
        return f"has no {folder.manifest.name}, so that it may be no run's; remove it by hand: {folder.path}"
    if not resumable_too and can_be_resumed(folder):
        return f"can be resumed: edgebed resume {folder.name}"
    return ""


def can_be_resumed(folder: RunFolder) -> bool:
    """Whether something is left to do in a run that nobody works on, as far as its manifest and its summary tell."""
    try:
        if not folder.read_manifest().get("options"):
            return False
    except EdgebedError:
        return False
    try:
        return not is_complete(folder)
    except EdgebedError:  # its journals tell as much
        return True


def remove_run(folder: RunFolder, *, resumable_too: bool = False) -> None:
    """Remove a run, and let `latest` point to the newest that is left.

    ScenarioError where it is not to be removed (`why_kept`), InfrastructureError where that is impossible.
    """
    if why := why_kept(folder, resumable_too=resumable_too):
        raise ScenarioError(f"run {folder.name} {why}")
    parent = folder.path.parent
    going = parent / f".{folder.path.name}{REMOVED}"
    try:
        with folder.locked():
            if going.exists():
                shutil.rmtree(going)
            folder.path.rename(going)
        point_latest_anew(parent)
        for left in parent.glob(f".*{REMOVED}"):
            shutil.rmtree(left)
    except OSError as error:
        place = error.filename or folder.path
        raise InfrastructureError(f"{place}: cannot be removed: {error.strerror}; try again as its owner") from error
    with contextlib.suppress(OSError):  # there are other runs, or files of the user's
        parent.rmdir()
