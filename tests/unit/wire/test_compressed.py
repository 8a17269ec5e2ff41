"""What a compression sends passes the check of its receiver, and nothing else does, before anything is unpacked."""

import tracemalloc

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from part_settings import variants

from edgebed.algorithms.compressor import Compressor, StepContext, WithBuffers
from edgebed.algorithms.custom import own_part
from edgebed.algorithms.registry import COMPRESSIONS
from edgebed.algorithms.update import ModelUpdate
from edgebed.wire.compressed import LARGEST, SMALL_BYTES, check_forms, largest_bytes, restored
from edgebed.wire.errors import RemoteWireError
from edgebed.wire.messages import Tensor
from edgebed.wire.tensors import DTYPES, check_frames, encode_pieces, payload_bytes

TRIED = {"fraction": (0.3, 1.0), "threshold": (0.0, 0.7), "levels": (1, 127), "bucket": (3,), "rank": (1,)}
KINDS = [(name, kind) for name, module in COMPRESSIONS.items() for kind in variants(module.Config, TRIED)]
SHAPES = st.lists(st.sampled_from([(3,), (1,), (4, 5), (2, 3, 2, 2), (7, 1), (40, 50)]), min_size=1, max_size=4)
VECTORS = st.sampled_from(["normal", "zeros", "nan", "inf", "equal"])


def vector_of(kind, size, seed):
    """(n,) numbers of that kind."""
    vector = np.random.default_rng(seed).normal(size=size).astype("f4")
    if kind == "equal":
        return np.full(size, 0.5, "f4")
    if kind != "normal":
        vector[:: 1 if kind == "zeros" else 3] = {"zeros": 0.0, "nan": np.nan, "inf": np.inf}[kind]
    return vector


def sent_by(compression, kinds, seed):
    """Tensors and frames of each step."""
    memory = None
    for step, kind in enumerate(kinds):
        context = StepContext(key=seed + step, step=step, epoch=float(step), loss=float(-step))
        with np.errstate(all="ignore"):
            pieces, memory = compression.compress(vector_of(kind, compression.size, seed + step), memory, context)
        tensors, frames = encode_pieces(pieces)
        yield tensors, [bytes(frame) for frame in frames]


@pytest.mark.parametrize(("name", "kind"), KINDS)
@given(shapes=SHAPES, kinds=st.lists(VECTORS, min_size=1, max_size=4), seed=st.integers(0, 99), buffers=st.booleans())
def test_what_a_compression_sends_passes_its_own_check(name, kind, shapes, kinds, seed, buffers):
    """Whatever the vector, with buffers beside the parameters or without; and it is no larger than it can be."""
    compression = COMPRESSIONS[name].Compression(COMPRESSIONS[name].Config(**kind), shapes)
    if buffers:
        is_buffer = np.arange(compression.size + 5) >= compression.size
        compression = WithBuffers(compression, is_buffer)
    for tensors, frames in sent_by(compression, kinds, seed):
        check_frames(tensors, frames)
        update, _ = restored(compression, tensors, frames)
        assert update.size == compression.size
        assert sum(map(len, frames)) <= largest_bytes(compression)


MUTATIONS = st.one_of(
    st.tuples(st.just("name"), st.sampled_from(["update", "levels", "scales", "kept", "theta", ""])),
    st.tuples(st.just("dtype"), st.sampled_from([*DTYPES])),
    st.tuples(st.just("shape"), st.lists(st.sampled_from([0, 1, 20, 21, 2**28]), max_size=3).map(tuple)),
    st.tuples(st.just("encoding"), st.sampled_from(["dense", "sparse", "scaled"])),
    st.tuples(st.sampled_from(["entries", "index_bytes", "packed_bytes"]), st.sampled_from([0, 1, 5, 20, 21, 2**28])),
)


def meaning(tensors):
    """What a description decodes to, whatever is in it."""
    return [(each.name, each.dtype, each.shape, each.encoding, each.packed_bytes > 0) for each in tensors]


@pytest.mark.parametrize(("name", "kind"), KINDS)
@given(st.data())
def test_a_description_that_is_changed_passes_only_if_it_decodes_to_the_same_shape(name, kind, data):
    """One field or two of any tensor, one tensor more or less, or another order."""
    compression = COMPRESSIONS[name].Compression(COMPRESSIONS[name].Config(**kind), [(4, 5)])
    ((tensors, _),) = sent_by(compression, ["normal"], 1)
    changed = list(tensors)
    for field, value in data.draw(st.lists(MUTATIONS, max_size=2)):
        at = data.draw(st.integers(0, len(changed) - 1))
        changed[at] = msgspec.structs.replace(changed[at], **{field: value})
    changed = data.draw(st.sampled_from([changed, changed[:-1], [*changed, changed[0]], changed[::-1]]))
    try:
        for tensor in changed:
            payload_bytes(tensor)  # as the codec does
        check_forms(compression, changed)
    except RemoteWireError:
        return
    assert meaning(changed) == meaning(tensors)
    assert all(each.entries <= 20 and payload_bytes(each) <= largest_bytes(compression) for each in changed)


class Plain(Compressor):
    """Says nothing of the form of what it sends."""

    def compress(self, vector, memory, context):
        """All of it, as it is."""
        return COMPRESSIONS["none"].Compression(COMPRESSIONS["none"].Config(), self.shapes).compress(vector, None, None)


class Halved(COMPRESSIONS["none"].Compression):  # type: ignore[name-defined]
    """Made from one that says what it sends, and sends something else."""

    def compress(self, vector, memory, context):
        """The first half."""
        half = np.arange(self.size // 2)
        (piece,), _ = super().compress(vector, memory, context)
        return (piece._replace(update=ModelUpdate(self.size, half, vector[half])),), None


class Wrong(COMPRESSIONS["none"].Compression):  # type: ignore[name-defined]
    """Says of its pieces what they are not."""

    @property
    def forms(self):
        """All of the update, and more."""
        return (super().forms[0]._replace(size=self.size + 1),)

    def compress(self, vector, memory, context):
        """All of it, as it is."""
        return super().compress(vector, memory, context)


@pytest.mark.parametrize("name", ["Plain", "Halved"])
def test_a_compression_of_a_users_own_need_not_say_what_it_sends(name):
    """Also where it is made from a built-in one, whose forms do not hold for what it sends instead."""
    found = own_part("compression", f"{__name__}:{name}")
    compression = found.Compression(found.Config(), [(4, 5)])
    for tensors, frames in sent_by(compression, ["normal"], 1):
        assert restored(compression, tensors, frames)[0].size == 20


def test_what_says_nothing_is_bounded_by_the_model():
    """The sum of all tensors, whatever is said of how they are packed."""
    compression = Plain(None, [(4, 5)])
    entries = (LARGEST * 80 + SMALL_BYTES) // 4
    check_forms(compression, [Tensor("update", "float32", (entries,), "dense", entries, packed_bytes=10)])
    with pytest.raises(RemoteWireError, match="the most for a model of this size"):
        check_forms(compression, [Tensor("update", "float32", (entries + 1,), "sparse", 1, 3)])


def test_forms_that_do_not_fit_what_is_sent_are_a_mistake_that_says_so():
    """Found where it is made, which is when the scenario is planned."""
    found = own_part("compression", f"{__name__}:Wrong")
    compression = found.Compression(found.Config(), [(4, 5)])
    with pytest.raises(Exception, match="other than its `forms` says: float32 of length 20, not float32 of 21"):
        compression.compress(np.zeros(20, "f4"), None, StepContext(0))


def test_a_few_bytes_that_stand_for_many_are_refused_before_they_are_unpacked():
    """As what the method never sends, and as too much of what it does."""
    zeros = np.zeros(100_000_000, "i1")
    int8 = COMPRESSIONS["int8"]
    (levels, scales), _ = int8.Compression(int8.Config(), [(4, 5)]).compress(np.ones(20, "f4"), None, StepContext(0))
    bomb = levels._replace(update=ModelUpdate(zeros.size, None, zeros), deflate=True)
    tensors, frames = encode_pieces((bomb, scales))
    frames = [bytes(frame) for frame in frames]
    del zeros, bomb
    for name, kind in (("none", {}), ("int8", {"deflate": True}), ("top-k", {})):
        compression = COMPRESSIONS[name].Compression(COMPRESSIONS[name].Config(**kind), [(4, 5)])
        tracemalloc.start()
        with pytest.raises(RemoteWireError):
            restored(compression, tensors, frames)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 1_000_000
