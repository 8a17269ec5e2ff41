"""A few levels, chosen at random so that the update is right on average.

Alistarh, Grubic, Li, Tomioka, Vojnovic 2017, QSGD: communication-efficient SGD via gradient quantization and encoding,
NIPS, equation (3.1): of buckets of d entries each is sent as ||v||_2 sign(v_i) l / s, where l is s |v_i| / ||v||_2
rounded up or down by chance. Differs from the paper: levels travel as bytes packed with DEFLATE where it has an Elias
code; buckets run over the borders of tensors.

Shapes: n parameters in ceil(n / d) buckets; (n,) int8 levels and a float32 norm for each bucket travel.
"""

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np

from edgebed.algorithms.compressor import Compressor, Floats, Form, Piece, Pieces, Shapes, StepContext, checked, named
from edgebed.algorithms.update import ModelUpdate


@dataclass(frozen=True, kw_only=True)
class Config:
    """Every entry is sent as one of a few levels, right on average."""

    name: Literal["qsgd"] = "qsgd"
    levels: int = 4
    """s, levels above zero, from 1 to 127; fewer mean fewer bytes and a noisier update."""
    bucket: int = 512
    """d, entries that share a norm; fewer mean less noise and more bytes."""
    deflate: bool = True
    """Pack the levels with DEFLATE."""

    def __post_init__(self) -> None:
        if not 1 <= self.levels <= 127:
            raise ValueError(f"levels: {self.levels} is not from 1 to 127")
        if self.bucket < 1:
            raise ValueError(f"bucket: {self.bucket} is below 1")

    def check_downlink(self) -> None:
        """Raise ValueError where more of a bucket is lost than is in it: sent again and again, errors would grow.

        Lemma 3.1: rounding adds min(d / s^2, sqrt(d) / s) of a bucket's squared norm at most.
        """
        least = math.isqrt(self.bucket - 1) + 1
        if self.levels < least:
            raise ValueError(
                f"levels: {self.levels} lose more of {self.bucket} entries than there is, and what is lost on the way "
                f"down is sent again; take {least} levels or more, or a bucket of at most {self.levels**2}"
            )


class Compression(Compressor):
    """Compression by a random draw, without memory."""

    travels = MappingProxyType(
        {
            "levels": "of all n entries, int8",
            "scales": "the norm of each bucket of entries, float32",
        }
    )

    config: Config

    def __init__(self, config: Config, shapes: Shapes) -> None:
        super().__init__(config, shapes)
        self.buckets = -(-self.size // config.bucket)

    @property
    def forms(self) -> tuple[Form, ...]:
        """Levels, and norms."""
        return (Form("levels", self.size, "int8", deflate=self.config.deflate), Form("scales", self.buckets))

    @property
    def copies(self) -> float:
        """Levels before they are rounded, and the draw."""
        return 5.0

    def compress(self, vector: Floats, memory: None, context: StepContext) -> tuple[Pieces, None]:
        """(n,) vector -> levels and norms."""
        rng = context.draws()
        rows = np.zeros((self.buckets, self.config.bucket), np.float32)
        rows.reshape(-1)[: self.size] = vector
        norms = np.linalg.norm(rows, axis=1).astype(np.float32)
        usable = np.isfinite(norms) & (norms > 0.0)
        scaled = np.abs(rows) * np.where(usable, self.config.levels / norms, 0.0).astype(np.float32)[:, None]
        raised = np.floor(scaled + rng.random(rows.shape, np.float32))
        levels = np.where(usable[:, None], np.copysign(np.minimum(raised, self.config.levels), rows), 0.0)
        pieces = (
            Piece(
                "levels",
                ModelUpdate(self.size, None, levels.astype(np.int8).reshape(-1)[: self.size]),
                self.config.deflate,
            ),
            Piece("scales", ModelUpdate(self.buckets, None, norms)),
        )
        return pieces, memory

    def restore(self, pieces: Pieces) -> ModelUpdate:
        """Return levels times norms."""
        levels, norms = named(pieces, "levels", "scales")
        checked(levels, self.size, ("int8",), dense=True)
        checked(norms, self.buckets, ("float32",), dense=True)
        of_each = np.repeat(norms.values / np.float32(self.config.levels), self.config.bucket)[: self.size]
        return ModelUpdate(self.size, None, levels.values * of_each)
