"""Vectors that travel together: each is compressed as if it travelled alone, and comes back where it was."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.algorithms.compressor import Compressor, StepContext
from edgebed.algorithms.registry import COMPRESSIONS
from edgebed.algorithms.several import Several, apart
from edgebed.algorithms.update import ModelUpdate
from edgebed.wire.compressed import check_forms, restored
from edgebed.wire.errors import RemoteWireError
from edgebed.wire.tensors import encode_pieces

SHAPES = [(6, 4), (8,)]
SIZE = 32
NAMES = ("none", "top-k", "int8", "qsgd", "dgc", "sign")


def alone(name: str) -> Compressor:
    """A compression of one vector, with its defaults."""
    return COMPRESSIONS[name].Compression(COMPRESSIONS[name].Config(), SHAPES)


@given(of_model=st.sampled_from(NAMES), of_other=st.sampled_from(NAMES), seed=st.integers(0, 99))
def test_each_vector_is_compressed_as_if_it_were_alone(of_model: str, of_other: str, seed: int) -> None:
    """Twice, so that what each remembers counts; the draws of the second are others than those of the first."""
    both = Several({"theta": alone(of_model), "control": alone(of_other)})
    row = np.random.default_rng(seed).standard_normal((2, 2 * SIZE)).astype(np.float32)
    memory, memories = None, [None, None]
    for step in range(2):
        at = StepContext(seed, step, loss=1.0)
        pieces, memory = both.compress(row[step], memory, at)
        tensors, frames = encode_pieces(pieces)
        check_forms(both, tensors)
        update, _ = restored(both, tensors, [bytes(frame) for frame in frames])
        for k, each in enumerate(both.inner.values()):
            own, memories[k] = each.compress(
                row[step, k * SIZE : (k + 1) * SIZE], memories[k], at._replace(key=seed ^ k)
            )
            np.testing.assert_array_equal(apart(update, 2)[k].dense(), each.restore(own).dense())


def test_what_is_no_vector_of_the_method_is_refused() -> None:
    """By its name, before anything is unpacked."""
    both = Several({"theta": alone("none"), "control": alone("none")})
    pieces, _ = both.compress(np.zeros(2 * SIZE, np.float32), None, StepContext(0))
    assert [piece.name for piece in pieces] == ["update", "control/update"]

    for names in (["update", "other/update"], ["theta/update", "control/update"], ["update"]):
        wrong = tuple(piece._replace(name=name) for piece, name in zip(pieces, names, strict=False))
        tensors, frames = encode_pieces(wrong)
        with pytest.raises(RemoteWireError):
            restored(both, tensors, frames)
        with pytest.raises(ValueError):
            both.restore(wrong)


@given(data=st.data())
def test_chosen_entries_of_a_row_are_those_of_each_vector(data: st.DataObject) -> None:
    """With positions from zero in each, also where one of them has none."""
    positions = data.draw(st.sets(st.integers(0, 3 * SIZE - 1)).map(sorted))
    update = ModelUpdate(3 * SIZE, np.array(positions, np.int64), np.arange(len(positions), dtype=np.float32))

    parts = apart(update, 3)

    assert all(part.size == SIZE for part in parts)
    np.testing.assert_array_equal(np.concatenate([part.dense() for part in parts]), update.dense())
