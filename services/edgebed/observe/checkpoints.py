"""A trial's checkpoints: the models that its server hands over, in the trial's folder.

`latest.npz` is replaced whenever one comes, `final.npz` is written when no update will follow. Each holds `theta` (n,)
and `version`, the number of updates applied to it. A server that is started anew goes on from the latest.
"""

import io
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgebed.errors import EdgebedError
from edgebed.observe.run_folder import TrialFolder, write_atomically


class Checkpoint(NamedTuple):
    """A model and the number of updates that made it."""

    version: int
    theta: NDArray[np.float32]


class Checkpoints:
    """Those of one trial, which may have had some before."""

    def __init__(self, folder: TrialFolder, initial: NDArray[np.float32]) -> None:
        """`initial` (n,) is the model of a trial without any. EdgebedError where the latest cannot be read."""
        self.folder = folder
        path = folder.latest_checkpoint
        self.latest = read_checkpoint(path) if path.exists() else Checkpoint(0, initial)
        """What a server is given that starts now."""

    def keep(self, version: int, theta: NDArray[np.float32], final: bool) -> None:
        """Write the model (n,), which is copied. InfrastructureError where it cannot be written."""
        self.latest = Checkpoint(version, theta.copy())
        content = io.BytesIO()
        np.savez(content, theta=self.latest.theta, version=version)
        write_atomically(self.folder.latest_checkpoint, content.getvalue())
        if final:
            write_atomically(self.folder.final_checkpoint, content.getvalue())


def read_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint in a file; EdgebedError, naming it, where there is none that can be read."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return Checkpoint(int(arrays["version"]), arrays["theta"])
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise EdgebedError(f"{path}: no checkpoint can be read here: {error}") from error
