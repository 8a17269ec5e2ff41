"""A trial's checkpoints: the models that its server hands over, in the trial's folder.

`latest.npz` is replaced whenever one comes, `final.npz` is written when no update will follow. Each holds `theta` (n,),
`version`, the number of updates applied to it, and `state` (s,), bytes of what the aggregation remembers beside it
(roles/server/snapshot.py). A server that is started anew resumes from the latest.

Where shards train, `backup-<step>.npz` has what each of them depends on after so many steps, by its name; the newest
few stay. A file is whole or not there.
"""

import io
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from edgebed.core.errors import EdgebedError
from edgebed.core.reading import open_file
from edgebed.core.units import LARGEST
from edgebed.journal.run_folder import TrialFolder, write_atomically
from edgebed.roles.layerwise.shard_server import split_parts
from edgebed.wire import messages
from edgebed.wire.tensors import Buffer, decode_dense, split_frames

BACKUPS_KEPT = 10
Number = TypeVar("Number", np.float32, np.uint8)
UNREADABLE = (OSError, KeyError, ValueError, TypeError, EOFError, MemoryError, zipfile.BadZipFile, zlib.error)
"""Errors that numpy raises for files that are damaged, or were never written by it."""


class ModelCheckpoint(NamedTuple):
    """A model and the number of updates that made it."""

    version: int
    theta: NDArray[np.float32]
    state: NDArray[np.uint8] | None = None
    """(s,) bytes of what the aggregation remembers; None: there is none."""


class ShardBackup(NamedTuple):
    """All that the training of every shard depends on, after so many steps."""

    step: int
    states: dict[str, NDArray[np.float32]]

    @property
    def parts(self) -> tuple[tuple[str, int], ...]:
        """Each shard, and the length of its state."""
        return tuple((name, len(state)) for name, state in self.states.items())

    def joined(self) -> NDArray[np.float32]:
        """The states of all shards, concatenated."""
        return np.concatenate(list(self.states.values()))


class CheckpointStore:
    """The checkpoints of one trial, which may have had some before."""

    def __init__(self, folder: TrialFolder, initial: NDArray[np.float32]) -> None:
        """`initial` (n,) is the model of a trial without any. EdgebedError where the latest cannot be read."""
        self.folder = folder
        self.initial = initial
        """The model that shards begin with."""
        path = folder.latest_checkpoint
        self.latest = _of_model(read_checkpoint(path), initial, path) if path.exists() else ModelCheckpoint(0, initial)
        """The checkpoint that a server is given when it starts."""
        self.backup = self._newest_backup()
        """The backup that a server of shards is given when it starts; None: there is none."""

    def keep_sent(self, message: messages.Checkpoint, frames: Sequence[Buffer]) -> None:
        """Write the checkpoint that the server has sent. InfrastructureError where it cannot be written."""
        parts = split_frames(message.tensors, frames)
        state = decode_dense(*parts["state"]) if "state" in parts else None
        self.keep(message.version, decode_dense(*parts["theta"]), message.final, state)

    def keep(
        self, version: int, theta: NDArray[np.float32], final: bool, state: NDArray[np.uint8] | None = None
    ) -> None:
        """Write a checkpoint of the model (n,) and what the aggregation remembers, which are copied."""
        self.latest = ModelCheckpoint(version, theta.copy(), None if state is None else state.copy())
        arrays = {name: array for name, array in self.latest._asdict().items() if array is not None}
        content = io.BytesIO()
        np.savez(content, **arrays)
        write_atomically(self.folder.latest_checkpoint, content.getvalue())
        if final:
            write_atomically(self.folder.final_checkpoint, content.getvalue())

    def keep_backup(self, step: int, parts: Sequence[tuple[str, int]], state: NDArray[np.float32]) -> None:
        """Write the shards' states, `parts` of (s,) `state`. InfrastructureError where they cannot be written."""
        states = {name: piece.copy() for name, piece in split_parts(parts, state).items()}
        self.backup = ShardBackup(step, states)
        content = io.BytesIO()
        np.savez(content, **states)  # type: ignore[arg-type] # whose second parameter is no array
        write_atomically(self.folder.backup(step), content.getvalue())
        for old in sorted(self.folder.backups())[:-BACKUPS_KEPT]:
            self.folder.backup(old).unlink(missing_ok=True)

    def give_up(self, step: int) -> None:
        """Delete backups beyond this step, from which training is resumed: they are in no model."""
        for later in self.folder.backups():
            if later > step:
                self.folder.backup(later).unlink(missing_ok=True)
        if self.backup and self.backup.step > step:
            self.backup = self._newest_backup()

    def backup_at(self, step: int) -> ShardBackup | None:
        """The newest backup that is not beyond this step; None: there is none. EdgebedError where it cannot be used."""
        found = max((each for each in self.folder.backups() if each <= step), default=None)
        return None if found is None else self._read_backup(found)

    def _newest_backup(self) -> ShardBackup | None:
        step = max(self.folder.backups(), default=None)
        return None if step is None else self._read_backup(step)

    def _read_backup(self, step: int) -> ShardBackup:
        path = self.folder.backup(step)
        try:
            with open_file(path) as file, np.load(file, allow_pickle=False) as arrays:
                backup = ShardBackup(step, {name: _numbers(name, arrays[name], np.float32) for name in arrays})
        except UNREADABLE as error:
            raise EdgebedError(f"{path}: no backup can be read here: {_reason(error)}") from error
        _require_finite(backup.states.values(), path)
        return backup


def _of_model(checkpoint: ModelCheckpoint, initial: NDArray[np.float32], path: Path) -> ModelCheckpoint:
    """The checkpoint itself; EdgebedError where it does not fit this model."""
    theta = checkpoint.theta
    if theta.shape != initial.shape:
        raise EdgebedError(
            f"{path}: the checkpoint of another model: {len(theta):,} parameters, where the trial's has "
            f"{len(initial):,}; restore the trial's own, or remove it to resume without it"
        )
    _require_finite([theta], path)
    return checkpoint


def _reason(error: BaseException) -> str:
    """Why a file cannot be read, and what to do; where it is no archive, numpy's advice is to unpickle it."""
    what = "it is no archive of arrays" if "pickle" in str(error) else str(error)
    return f"{what}; restore it, or remove it to resume without it"


def _require_finite(arrays: Iterable[NDArray[np.float32]], path: Path) -> None:
    if not all(np.isfinite(array).all() for array in arrays):
        raise EdgebedError(
            f"{path}: it has numbers that are not finite, from which nothing can be learnt: training had diverged, or "
            "the file is damaged; begin a new run, or remove the file to resume without it"
        )


def read_checkpoint(path: Path) -> ModelCheckpoint:
    """The checkpoint in a file; EdgebedError, naming the file, where it cannot be read."""
    try:
        with open_file(path) as file, np.load(file, allow_pickle=False) as arrays:
            version, theta, state = arrays["version"], arrays["theta"], arrays.get("state")
        if version.shape or version.dtype.kind not in "iu" or not 0 <= version <= LARGEST:
            raise ValueError(f"version: {version} is no number of updates")
        if state is not None:
            state = _numbers("state", state, np.uint8)
        return ModelCheckpoint(int(version), _numbers("theta", theta, np.float32), state)
    except UNREADABLE as error:
        raise EdgebedError(f"{path}: no checkpoint can be read here: {_reason(error)}") from error


def _numbers(name: str, array: NDArray[Any], dtype: type[Number]) -> NDArray[Number]:
    """The array, checked to be (n,) of that type; ValueError where it is something else."""
    if array.dtype != dtype or array.ndim != 1:
        raise ValueError(f"{name}: {array.dtype} of shape {array.shape}, not {np.dtype(dtype)} in a row")
    return array
