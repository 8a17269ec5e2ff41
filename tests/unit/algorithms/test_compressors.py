"""Laws of all compressions: nothing is lost where it is remembered, and what travels is what was meant."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.algorithms.compressor import Piece, StepContext
from edgebed.algorithms.registry import COMPRESSIONS, configure
from edgebed.algorithms.update import ModelUpdate
from edgebed.core.plan import Part
from edgebed.wire.errors import RemoteWireError
from edgebed.wire.tensors import bits, cut, decode_piece, encode_piece, payload_bytes

SETTINGS = [
    ("none", {}),
    ("none", {"values": "float16"}),
    ("top-k", {"fraction": 0.3}),
    ("top-k", {"fraction": 0.3, "residual": True}),
    ("top-k", {"fraction": 0.3, "residual": True, "values": "float16"}),
    ("threshold", {"threshold": 0.7}),
    ("threshold", {"threshold": 0.7, "residual": True}),
    ("esgd", {"fraction": 0.4}),
    ("random-k", {"fraction": 0.3}),
    ("dgc", {"fraction": 0.2}),
    ("dgc", {"fraction": 0.2, "selection": "sampled", "nesterov": True, "clip": 1.0}),
    ("int8", {}),
    ("int8", {"rounding": "stochastic", "deflate": True}),
    ("int8", {"residual": True}),
    ("int8", {"scope": "model"}),
    ("int8", {"scope": "model", "residual": True, "deflate": True}),
    ("qsgd", {}),
    ("qsgd", {"levels": 1, "bucket": 3, "deflate": False}),
    ("sign", {}),
    ("sign", {"residual": False}),
    ("powersgd-local", {"rank": 1}),
]
REMEMBERING = [(name, given) for name, given in SETTINGS if given.get("residual", name in ("sign", "powersgd-local"))]
SHAPES = st.lists(st.sampled_from([(3,), (1,), (4, 5), (2, 3, 2, 2), (7, 1)]), min_size=1, max_size=4)


def make(name, settings, shapes):
    """A compression."""
    config = configure("compression", Part(name=name, settings=settings))
    return COMPRESSIONS[name].Compression(config, shapes)


def dense(update):
    """(n,) of an update; what is not sent is 0."""
    whole = np.zeros(update.size, np.float32)
    whole[slice(None) if update.indices is None else update.indices] = update.values
    return whole


def travelled(piece):
    """A piece as its receiver has it."""
    tensor, frames = encode_piece(piece)
    assert payload_bytes(tensor) == sum(len(frame) for frame in frames)
    return tensor, decode_piece(tensor, [bytes(frame) for frame in frames])


def gradients(shapes, count, seed):
    """Some (n,) vectors."""
    size = sum(int(np.prod(shape)) for shape in shapes)
    return np.random.default_rng(seed).normal(size=(count, size)).astype("f4")


@pytest.mark.parametrize(("name", "given_settings"), REMEMBERING)
@given(shapes=SHAPES, count=st.integers(1, 6), seed=st.integers(0, 99))
def test_what_was_sent_and_what_is_remembered_make_up_all_gradients(name, given_settings, shapes, count, seed):
    """Step by step: gradient + memory = sent + memory'."""
    compression, memory = make(name, given_settings, shapes), None
    total, arrived = np.zeros(compression.size), np.zeros(compression.size)
    for step, gradient in enumerate(gradients(shapes, count, seed)):
        pieces, memory = compression.compress(gradient, memory, StepContext(seed, step))
        total += gradient
        arrived += dense(compression.restore(pieces))
        left = memory.residual if name == "powersgd-local" else memory

        np.testing.assert_allclose(arrived + left, total, atol=1e-4)


@pytest.mark.parametrize(("name", "given_settings"), SETTINGS)
@given(shapes=SHAPES, seed=st.integers(0, 99))
def test_the_update_survives_the_wire(name, given_settings, shapes, seed):
    """Bit for bit; plain pieces take the bytes that are counted, packed ones those that are left."""
    compression = make(name, given_settings, shapes)
    (gradient,) = gradients(shapes, 1, seed)
    kept = gradient.copy()
    pieces, _ = compression.compress(gradient, None, StepContext(seed))
    again, _ = compression.compress(gradient, None, StepContext(seed))
    parts = [travelled(piece) for piece in pieces]
    there, here = compression.restore(tuple(piece for _, piece in parts)), compression.restore(pieces)

    np.testing.assert_array_equal(gradient, kept)
    np.testing.assert_array_equal(dense(here), dense(compression.restore(again)))
    np.testing.assert_array_equal(dense(there), dense(here))
    for piece, (tensor, _) in zip(pieces, parts, strict=True):
        if piece.update.indices is None:
            assert bits(tensor, piece) == 8 * payload_bytes(tensor)


@pytest.mark.parametrize(("name", "given_settings"), SETTINGS)
def test_pieces_of_another_method_are_refused(name, given_settings):
    """By name, length and type."""
    compression = make(name, given_settings, [(4, 5), (3,)])
    (gradient,) = gradients([(4, 5), (3,)], 1, 0)
    pieces, _ = compression.compress(gradient, None, StepContext(0))
    first = pieces[0]
    longer = ModelUpdate(first.update.size + 1, None, np.zeros(first.update.size + 1, first.update.values.dtype))
    wide = ModelUpdate(first.update.size, None, np.zeros(first.update.size, np.int64))

    for wrong in ((), (*pieces, first), (Piece("other", first.update), *pieces[1:])):
        with pytest.raises(ValueError, match="should have come"):
            compression.restore(wrong)
    for wrong in (longer, wide):
        with pytest.raises(ValueError, match="of length"):
            compression.restore((Piece(first.name, wrong), *pieces[1:]))


@pytest.mark.parametrize(
    ("name", "given_settings"), [("qsgd", {"levels": 2, "bucket": 4}), ("int8", {"rounding": "stochastic"})]
)
def test_what_chance_rounds_is_right_on_average(name, given_settings):
    """The mean of many is the gradient, within four standard errors."""
    compression = make(name, given_settings, [(6,)])
    gradient = np.array([3.0, -1.0, 0.5, 0.0, 2.0, -0.01], "f4")
    draws = np.array([dense(compression.restore(compression.compress(gradient, None, StepContext(key))[0]))
                      for key in range(4000)])  # fmt: skip

    spread = 4 * draws.std(axis=0) / np.sqrt(len(draws)) + 1e-6
    assert (np.abs(draws.mean(axis=0) - gradient) <= spread).all()
    assert len(np.unique(draws, axis=0)) > 1


@pytest.mark.parametrize("value", [np.inf, np.nan])
@pytest.mark.parametrize(("name", "given_settings"), SETTINGS)
def test_training_that_diverges_goes_on(name, given_settings, value):
    """Whatever comes of it, no compression fails."""
    compression = make(name, given_settings, [(4, 5), (3,)])
    gradient = np.full(23, value, "f4")
    with np.errstate(all="ignore"):
        pieces, memory = compression.compress(gradient, None, StepContext(0))
        compression.restore(pieces)
        compression.compress(gradient, memory, StepContext(1, 1))


def test_packed_bytes_that_lie_are_refused():
    """Too few or too many once unpacked, or not packed at all."""
    tensor, frames = encode_piece(Piece("levels", ModelUpdate(1000, None, np.zeros(1000, np.int8)), deflate=True))
    packed = b"".join(frames)
    assert tensor.packed_bytes == len(packed) < 100

    more, _ = encode_piece(Piece("levels", ModelUpdate(1001, None, np.zeros(1001, np.int8)), deflate=True))
    fewer, _ = encode_piece(Piece("levels", ModelUpdate(999, None, np.zeros(999, np.int8)), deflate=True))
    for wrong, payload in ((more, packed), (fewer, packed), (tensor, packed[:-1] + b"x"), (tensor, bytes(len(packed)))):
        with pytest.raises(RemoteWireError, match="unpacked"):
            decode_piece(wrong, cut(memoryview(payload)))
