"""Nothing is sent: a push is a message without entries, and an answer too where it is the `downlink`.

For workers that train alone (local_work/alone.py): rounds, faults and accounts are those of any other method.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from edgebed.algorithms.compressor import Compressor, Floats, Form, Pieces, StepContext, sent
from edgebed.algorithms.update import ModelUpdate


@dataclass(frozen=True, kw_only=True)
class Config:
    """No entry is sent."""

    name: Literal["nothing"] = "nothing"


class Compression(Compressor):
    """Compression to no entry."""

    sends_buffers: ClassVar[bool] = False

    @property
    def forms(self) -> tuple[Form, ...]:
        """No entry of the update."""
        return (Form("update", self.size, "float32", 0),)

    @property
    def copies(self) -> float:
        """Nothing beside the vector."""
        return 0.0

    @property
    def share(self) -> float:
        """The share is none."""
        return 0.0

    def compress(self, vector: Floats, memory: None, context: StepContext) -> tuple[Pieces, None]:
        """(n,) vector -> no entry of it. There is no memory."""
        return sent(ModelUpdate(self.size, np.zeros(0, np.int64), np.zeros(0, np.float32))), memory
