"""Tensors arrive bit for bit, sparse ones in few bytes, and a header cannot make its reader allocate."""

import msgspec
import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tasks import examples_of, one_array

from edgebed.algorithms.update import ModelUpdate
from edgebed.wire import frames as codec
from edgebed.wire import tensors
from edgebed.wire.errors import LocalWireError, RemoteWireError
from edgebed.wire.messages import Checkpoint, Push, Tensor
from edgebed.wire.tensors import (
    DTYPES,
    FRAME_BYTES,
    MAX_BYTES,
    check_frames,
    decode_dense,
    decode_positions,
    decode_update,
    encode_dense,
    encode_update,
    join,
    split_frames,
)  # fmt: skip


def travelled(frames):
    """The frames as they come out of a socket: other memory, same bytes."""
    return [bytes(frame) for frame in frames]


def there_and_back(update: ModelUpdate) -> ModelUpdate:
    """What the server reads of an update."""
    tensor, frames = encode_update("update", update)
    check_frames([tensor], frames)
    return decode_update(tensor, travelled(frames))


def assert_same(expected: ModelUpdate, actual: ModelUpdate) -> None:
    """Equal to the last bit, not-a-number included."""
    assert expected.size == actual.size
    assert expected.values.dtype == actual.values.dtype
    assert expected.values.tobytes() == actual.values.tobytes()
    if expected.indices is None:
        assert actual.indices is None
    else:
        np.testing.assert_array_equal(expected.indices, actual.indices)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=list(DTYPES))
@given(data=st.data())
def test_a_dense_tensor_arrives_bit_for_bit(dtype, data):
    """Any shape, empty and scalar ones too, any values."""
    shape = arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=6)
    array = data.draw(arrays.arrays(dtype, shape))

    tensor, frames = encode_dense("x", array)
    check_frames([tensor], frames)
    back = decode_dense(tensor, travelled(frames))

    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes())


@settings(max_examples=6 * settings.default.max_examples)
@given(
    chosen=st.sets(st.integers(0, 2**28 - 1) | st.integers(0, 300), max_size=50),
    beyond=st.integers(0, 1000),
    dtype=st.sampled_from(["f4", "f2"]),
    seed=st.integers(0, 9),
)
def test_a_sparse_update_arrives_bit_for_bit(chosen, beyond, dtype, seed):
    """Any positions, near and far apart, with float32 and with float16 values."""
    indices = np.array(sorted(chosen), np.int64)
    size = (int(indices[-1]) + 1 if chosen else 0) + beyond
    update = ModelUpdate(size, indices, np.random.default_rng(seed).normal(size=len(indices)).astype(dtype))

    assert_same(update, there_and_back(update))


@pytest.mark.parametrize("dtype", ["f4", "f2"])
@pytest.mark.parametrize(
    ("size", "indices"),
    [(5, []), (0, []), (1, [0]), (5, [0, 1, 2, 3, 4]), (300, [299]), (2**28, [2**28 - 1]), (2**28, [0, 2**28 - 1]),
     (70_000, range(70_000)), (256, [255]), (257, [256]), (65_537, [65_536]), (2**24 + 1, [2**24])],
    ids=str,
)  # fmt: skip
def test_the_corners_of_sparse_updates_arrive(size, indices, dtype):
    """Nothing, everything, one of one, the last one, gaps that just need a byte more."""
    positions = np.array(indices, np.int64)

    update = ModelUpdate(size, positions, (np.arange(len(positions)) % 1000).astype(dtype))

    assert_same(update, there_and_back(update))


def test_values_that_are_no_numbers_arrive():
    """A diverged model is a result, not a broken message."""
    update = ModelUpdate(9, np.array([1, 5, 8]), np.array([np.nan, np.inf, -np.inf], "f4"))

    assert_same(update, there_and_back(update))


def test_no_frame_is_larger_than_the_limit_and_only_the_last_is_smaller():
    """A slow link must be able to carry one before anything else is said about it."""
    _, frames = encode_dense("x", np.zeros(2 * FRAME_BYTES + 5, "u1"))

    assert list(map(len, frames)) == [FRAME_BYTES, FRAME_BYTES, 5]


def test_frames_cut_from_one_buffer_are_joined_without_a_copy():
    """In the simulation a model of many frames costs nothing to read."""
    array = np.arange(300_000, dtype="f4")
    tensor, frames = encode_dense("theta", array)
    assert len(frames) > 1

    back = decode_dense(tensor, frames)

    assert np.shares_memory(array, back)
    np.testing.assert_array_equal(array, back)


def test_frames_of_different_buffers_are_joined_in_order():
    """As they come out of a socket; also where they lie in one buffer, but are not all of it."""
    array = np.arange(300_000, dtype="f4")
    tensor, frames = encode_dense("theta", array)
    apart = [memoryview(bytes(frame)) for frame in frames]
    padded = memoryview(b"before" + array.tobytes() + b"after")[6:-5]

    np.testing.assert_array_equal(array, decode_dense(tensor, apart))
    np.testing.assert_array_equal(array, decode_dense(tensor, tensors.cut(padded)))
    assert bytes(join([memoryview(b"ab"), memoryview(b"cd")])) == b"abcd"
    assert bytes(join([])) == b""


def test_tensors_of_one_message_get_their_own_frames():
    """By name, also where one of them has none."""
    x, x_frames = encode_dense("x", np.zeros(FRAME_BYTES + 1, "u1"))
    nothing, no_frames = encode_dense("nothing", np.zeros((0, 3), "f4"))
    y, y_frames = encode_dense("y", np.arange(4))

    found = split_frames([x, nothing, y], [*x_frames, *no_frames, *y_frames])

    assert [found[name][1] for name in ("x", "nothing", "y")] == [x_frames, [], y_frames]
    np.testing.assert_array_equal(np.arange(4), decode_dense(*found["y"]))


@pytest.mark.parametrize(
    "array",
    [np.zeros(3, "f8"), np.zeros(3, ">f4"), np.zeros((4, 4), "f4")[:, ::2], np.zeros(2, "c8"), np.zeros(2, "U1")],
    ids=["float64", "big-endian", "strided", "complex", "text"],
)
def test_an_array_that_cannot_travel_is_this_nodes_own_fault(array):
    """LocalWireError: the caller made a mistake."""
    with pytest.raises(LocalWireError):
        encode_dense("x", array)


@pytest.mark.parametrize(
    "update",
    [ModelUpdate(9, np.array([2, 1]), np.zeros(2, "f4")), ModelUpdate(9, np.array([1, 1]), np.zeros(2, "f4")),
     ModelUpdate(9, np.array([-1]), np.zeros(1, "f4")), ModelUpdate(9, np.array([9]), np.zeros(1, "f4")),
     ModelUpdate(9, np.array([1, 2]), np.zeros(1, "f4")), ModelUpdate(9, np.array([1]), np.zeros(1, "f8"))],
    ids=["falling", "twice", "negative", "beyond the end", "values missing", "float64"],
)  # fmt: skip
def test_an_update_that_cannot_travel_is_this_nodes_own_fault(update):
    """LocalWireError, before a byte of it is sent."""
    with pytest.raises(LocalWireError):
        encode_update("update", update)


@pytest.mark.parametrize(
    "tensor",
    [Tensor("x", "float64", (1,), "dense", 1), Tensor("x", "float32", (-1,), "dense", -1),
     Tensor("x", "float32", (1,) * 9, "dense", 1), Tensor("x", "float32", (2,), "dense", 3),
     Tensor("x", "float32", (2,), "dense", 2, 1), Tensor("x", "float32", (2,), "sparse", 3, 1),
     Tensor("x", "float32", (2,), "sparse", -1, 1), Tensor("x", "float32", (2,), "sparse", 1, -1),
     Tensor("x", "float32", (2, 2), "sparse", 1, 1), Tensor("x", "uint8", (MAX_BYTES + 1,), "dense", MAX_BYTES + 1),
     Tensor("x", "float32", (0, 2**63), "dense", 0), Tensor("x", "float32", (0, 2**31, 2**31, 2**31), "dense", 0),
     Tensor("x", "float32", (2**32, 2**32), "dense", 2**64 - 1)],
    ids=lambda tensor: f"{tensor.dtype}{tensor.shape}{tensor.encoding}{tensor.entries}+{tensor.index_bytes}",
)  # fmt: skip
def test_an_impossible_description_of_a_tensor_is_the_peers_fault(tensor):
    """RemoteWireError before any frame is looked at."""
    with pytest.raises(RemoteWireError):
        check_frames([tensor], [])


def test_an_update_is_flat_and_of_floating_point_numbers():
    """A dense tensor of another kind is a tensor, but no update; a sparse one is no model."""
    for array in (np.zeros((2, 2), "f4"), np.zeros(3, "i8")):
        tensor, frames = encode_dense("update", array)
        with pytest.raises(RemoteWireError, match="flat float32 or float16"):
            decode_update(tensor, frames)
    with pytest.raises(RemoteWireError, match="dense is expected"):
        decode_dense(*encode_update("theta", ModelUpdate(5, np.array([1]), np.zeros(1, "f4"))))


def compressed(gaps: bytes, *, announce: bool = True) -> bytes:
    """Positions as a peer might write them."""
    return zstandard.ZstdCompressor(write_content_size=announce).compress(gaps)


@pytest.mark.parametrize(
    ("data", "entries", "why"),
    [(b"", 1, "decompressed"), (b"no zstd at all", 1, "decompressed"), (b"x", 0, "no entries"),
     (compressed(b"\0\0\0"), 2, "3 bytes of gaps for 2 entries"), (compressed(b"\0" * 18), 2, "18 bytes of gaps"),
     (compressed(b"\0\0", announce=False), 2, "-1 bytes of gaps"), (compressed(b""), 2, "0 bytes of gaps"),
     (compressed(b"\x0a"), 1, "position 10"), (compressed(b"\x07\x07"), 2, "position 15"),
     (compressed(b"\xff" * 8), 2, "position 8589934591"), (compressed(b"\0" * 5), 1, "5 bytes of gaps for 1 entr"),
     (compressed(bytes(range(8)) * 9)[:-3], 18, "decompressed")],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_positions_that_make_no_sense_are_the_peers_fault(data, entries, why):
    """Each with its own reason."""
    with pytest.raises(RemoteWireError, match=why):
        decode_positions(data, entries, 10)


def test_a_small_message_cannot_announce_large_positions(monkeypatch):
    """A kilobyte of zstd that unpacks to a gigabyte is refused by its announced size, before it is unpacked."""
    bomb = compressed(bytes(64 << 20))
    assert len(bomb) < 10_000

    def refuse(*_):
        pytest.fail("it was unpacked")

    monkeypatch.setattr(tensors, "_decompressor", type("Refusing", (), {"decompress": refuse}))
    with pytest.raises(RemoteWireError, match="67108864 bytes of gaps for 100 entries"):
        decode_positions(bomb, 100, 1000)


def test_a_header_that_announces_two_gibibytes_allocates_nothing(monkeypatch):
    """Dense and sparse: the frames are missing, and that is seen first."""
    allocating = ("empty", "zeros", "frombuffer", "arange", "cumsum")
    for name in allocating:
        monkeypatch.setattr(np, name, lambda *_, **__: pytest.fail("something was allocated"))
    for tensor in (
        Tensor("theta", "uint8", (MAX_BYTES,), "dense", MAX_BYTES),
        Tensor("theta", "float16", (MAX_BYTES // 2,), "sparse", MAX_BYTES // 2, 100),
    ):
        header = msgspec.msgpack.encode(Checkpoint(sender="server", version=1, tensors=(tensor,)))
        with pytest.raises(RemoteWireError, match="frame of 262144 bytes belongs"):
            codec.decode([header, bytes(100)], "management")


@pytest.mark.parametrize(("values", "bytes_an_entry_max"), [("float32", 5.3), ("float16", 3.1)])
def test_a_real_gradient_of_the_cnn_at_one_percent_costs_few_bytes_an_entry(values, bytes_an_entry_max, cnn_gradient):
    """Header included. The authors' pickles took 13."""
    from edgebed.algorithms.compression import top_k

    gradient, sizes = cnn_gradient
    compression = top_k.Compression(top_k.Config(fraction=0.01, values=values), [(size,) for size in sizes])
    update = compression.choose(gradient)
    tensor, frames = encode_update("update", update)
    push = Push(sender="edge-199", incarnation=1, step=1250, base=249_999, loss=0.123456789, tensors=(tensor,))

    assert update.entries == 2117
    assert codec.size_bytes(codec.encode(push, frames)) / update.entries <= bytes_an_entry_max


@pytest.fixture(scope="module")
def cnn_gradient(data_dir):
    """A gradient (n,) of the 211,690-parameter CNN on MNIST when it has begun to learn, and its tensors' lengths."""
    from edgebed.core.plan import Task
    from edgebed.learning.data_sets.registry import load_data
    from edgebed.learning.models import registry as models
    from edgebed.learning.network import Network

    data = load_data("mnist", seed=1, data_dir=data_dir)
    layout = models.layout("cnn", one_array((1, 28, 28)), 10)
    task = Task(
        model="cnn", inputs=one_array((1, 28, 28)), outputs=10, layout=layout, batch_size=10, gradient_time_s=0.01
    )  # fmt: skip
    network = Network(task, examples_of(data.train.inputs[""][:600], data.train.targets[""][:600]))
    theta = models.initial_parameters(task, 1).copy()
    gradient = theta
    for step in range(60):
        gradient, _ = network.gradient(theta, np.arange(step * 10, step * 10 + 10), 0)
        theta -= 0.05 * gradient
    return gradient, [int(np.prod(tensor.shape)) for tensor in layout]
