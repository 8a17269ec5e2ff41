"""PowerSGD by each worker alone: two thin matrices in the place of each large one, and what they lack the next time.

Vogels, Karimireddy, Jaggi 2019, PowerSGD: practical low-rank gradient compression for distributed optimization,
NeurIPS, algorithm 1: one step of subspace iteration for M = g + e, begun at the last Q.

    P <- orthogonalised M Q ;  Q <- M^T P ;  sent P and Q ;  e <- M - P Q^T

Tensors of one dimension are sent whole, and matrices that two thin ones would not be smaller than. Differs from the
paper, hence the name: there all workers share P and Q, by a mean in between; at a parameter server each sends its own
in one message, and the mean of W workers has rank r W. So a model on its way down is not small, as the paper's shared
factors are, and neither its bytes nor what it learns are those of the paper's method.

Shapes: a tensor (a, b, ...) is a matrix (a, b ...); rank r; (a, r) and (b ..., r) float32 travel.
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np

from edgebed.algorithms.compressor import Compressor, Floats, Form, Piece, Pieces, Shapes, StepContext, checked, named
from edgebed.algorithms.update import ModelUpdate

DEPENDENT = 1e-5
NOTE = (
    "`powersgd-local` is PowerSGD by each worker alone. The paper's workers share their factors, so that what comes "
    "down is as small as what goes up; here the mean has the rank of all workers together, and the model comes down. "
    "Neither bytes nor accuracies are those of the paper's method."
)
"""Note for readers of the figures of this compression."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """Each worker sends each matrix as two thin ones of its own.

    PowerSGD's workers share theirs, so that what comes down is as small. Here the mean of W workers has rank r W, and
    the model comes down.
    """

    name: Literal["powersgd-local"] = "powersgd-local"
    rank: int = 2
    """r; smaller means fewer bytes and slower learning."""
    residual: bool = True
    """Whether what the thin matrices lack is remembered, and added the next time."""

    def __post_init__(self) -> None:
        if self.rank < 1:
            raise ValueError(f"rank: {self.rank} is below 1")


class Memory(NamedTuple):
    """What a worker remembers from the step before; lost with the worker."""

    residual: Floats
    """e, (n,) what was not sent."""
    seconds: tuple[Floats, ...]
    """Q of each matrix."""


class Compression(Compressor):
    """Local PowerSGD; what was not sent, and each last Q, are its memory."""

    travels = MappingProxyType(
        {
            "factors": "of each tensor that is sent as two matrices the first, then the second, row by row, float32",
            "whole": "all other tensors as they are",
        }
    )

    config: Config

    def __init__(self, config: Config, shapes: Shapes) -> None:
        super().__init__(config, shapes)
        self.matrices = [self._matrix(shape) for shape in self.shapes]
        """(rows, columns) of each tensor, None where it is sent whole."""
        thin = [config.rank * sum(matrix) for matrix in self.matrices if matrix]
        self.num_factors = sum(thin)
        self.num_whole = sum(size for size, matrix in zip(self.sizes, self.matrices, strict=True) if not matrix)

    def _matrix(self, shape: tuple[int, ...]) -> tuple[int, int] | None:
        if len(shape) < 2:
            return None
        rows, columns = shape[0], int(np.prod(shape[1:]))
        return (rows, columns) if self.config.rank * (rows + columns) < rows * columns else None

    @property
    def forms(self) -> tuple[Form, ...]:
        """Thin matrices, and the rest."""
        return (Form("factors", self.num_factors), Form("whole", self.num_whole))

    @property
    def copies(self) -> float:
        """What was left out, what it was added to, and products."""
        return 4.4

    def compress(self, vector: Floats, memory: Memory | None, context: StepContext) -> tuple[Pieces, Memory]:
        """(n,) vector -> thin matrices, and the rest whole."""
        whole = vector if memory is None else vector + memory.residual
        seconds = list(memory.seconds) if memory else self._begun(context)
        factors: list[Floats] = []
        plain: list[Floats] = []
        left = np.zeros_like(whole)
        place = 0
        for span, matrix in zip(self.spans, self.matrices, strict=True):
            if matrix is None:
                plain.append(whole[span])
                continue
            m: Floats = whole[span].reshape(matrix)
            p = orthogonal(np.matmul(m, seconds[place], dtype=np.float32))
            q: Floats = np.matmul(m.T, p, dtype=np.float32)
            factors += [p.reshape(-1), q.reshape(-1)]
            left[span] = (m - p @ q.T).reshape(-1)
            seconds[place] = self._anew(place, q, context)
            place += 1
        empty = np.zeros(0, np.float32)
        pieces = (
            Piece("factors", ModelUpdate(self.num_factors, None, np.concatenate([empty, *factors]))),
            Piece("whole", ModelUpdate(self.num_whole, None, np.concatenate([empty, *plain]))),
        )
        residual = left if self.config.residual else np.zeros_like(whole)
        return pieces, Memory(residual, tuple(seconds))

    def restore(self, pieces: Pieces) -> ModelUpdate:
        """Return the products of the thin matrices, and the rest."""
        factors, whole = named(pieces, "factors", "whole")
        checked(factors, self.num_factors, ("float32",), dense=True)
        checked(whole, self.num_whole, ("float32",), dense=True)
        rank, values = self.config.rank, np.empty(self.size, np.float32)
        place = plain = 0
        for span, matrix in zip(self.spans, self.matrices, strict=True):
            if matrix is None:
                size = span.stop - span.start
                values[span] = whole.values[plain : plain + size]
                plain += size
                continue
            rows, columns = matrix
            p = factors.values[place : place + rows * rank].reshape(rows, rank)
            place += rows * rank
            q = factors.values[place : place + columns * rank].reshape(columns, rank)
            place += columns * rank
            values[span] = (p @ q.T).reshape(-1)
        return ModelUpdate(self.size, None, values)

    def _anew(self, place: int, q: Floats, context: StepContext) -> Floats:
        """Return the Q that the next step begins with: columns of zeros, which find nothing, are drawn anew."""
        empty = ~q.any(axis=0)
        return np.where(empty, self._begun(context)[place], q) if empty.any() else q

    def _begun(self, context: StepContext) -> list[Floats]:
        """Return Q of each matrix, drawn at random."""
        rng = context.draws()
        return [rng.standard_normal((matrix[1], self.config.rank), np.float32) for matrix in self.matrices if matrix]


def orthogonal(p: Floats) -> Floats:
    """(a, r) columns made orthonormal, one after the other (Gram, Schmidt, twice); what depends on others is nothing.

    What is left of a column that others make up is what rounding left of it: DEPENDENT times as long at most.
    """
    columns: list[Floats] = []
    for column in p.T:
        rest = column.copy()
        for known in columns * 2:
            rest -= known * np.dot(known, rest)
        norm = np.linalg.norm(rest)
        is_new = norm > DEPENDENT * np.linalg.norm(column)
        columns.append((rest / norm if is_new else np.zeros_like(rest)).astype(np.float32))
    return np.stack(columns, axis=1)
