"""Every message that can be said arrives as it was said, and nothing else does."""

import math
import types
import typing
from typing import Any, Literal

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edgebed.wire import frames as codec
from edgebed.wire import messages
from edgebed.wire.errors import LocalWireError, RemoteWireError
from edgebed.wire.messages import Tensor
from edgebed.wire.tensors import FRAME_BYTES, encode_dense

KINDS = sorted({*messages.DATA, *messages.MANAGEMENT}, key=lambda kind: kind.__name__)
SIMPLE = {
    messages.Name: st.text(max_size=128),
    messages.Text: st.text(max_size=200),
    int: st.integers(-(2**63), 2**63 - 1),
    str: st.text(max_size=20),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    type(None): st.none(),
    Any: st.none() | st.booleans() | st.integers(0, 100) | st.text(max_size=5),
}


def values(declared: Any) -> st.SearchStrategy[Any]:
    """Everything that fits a declared type."""
    if declared in SIMPLE:
        return SIMPLE[declared]
    origin, arguments = typing.get_origin(declared), typing.get_args(declared)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is typing.Annotated:
        bounds = arguments[1]
        if arguments[0] is float:
            least = bounds.ge if bounds.gt is None else bounds.gt
            return st.floats(
                least, bounds.le, exclude_min=bounds.gt is not None, allow_nan=False
            )  # a NaN is unlike itself
        if arguments[0] is int:
            return st.integers(bounds.ge, bounds.le)
        return values(arguments[0]).filter(lambda found: len(found) >= bounds.min_length)
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*map(values, arguments))
    if origin is dict:
        return st.dictionaries(values(arguments[0]), values(arguments[1]), max_size=2)
    if origin is tuple and arguments[-1] is ...:
        return st.lists(values(arguments[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values, arguments))
    return st.builds(declared, **{name: values(field) for name, field in fields_of(declared).items()})


def fields_of(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """The names of a struct's fields and their declared types."""
    return {field.name: field.type for field in msgspec.structs.fields(struct)}


def networks_of(kind: type[messages.Message]) -> list[str]:
    """Where a message of this kind travels."""
    return [name for name, kinds in (("data", messages.DATA), ("management", messages.MANAGEMENT)) if kind in kinds]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_a_message_arrives_as_it_was_sent(kind, data):
    """decode(encode(m)) == m, for every kind, whatever its fields hold, with any tensors it may carry."""
    names = data.draw(st.sampled_from(messages.TENSORS.get(kind, ((),))))
    arrays = [data.draw(st.sampled_from([np.zeros(3, "f4"), np.arange(300_000, dtype="u1")])) for _ in names]
    encoded = [encode_dense(name, array) for name, array in zip(names, arrays, strict=True)]
    frames = [frame for _, parts in encoded for frame in parts]
    fields = {name: values(declared) for name, declared in fields_of(kind).items()}
    fields |= {"protocol": st.just(messages.PROTOCOL)}
    if "tensors" in fields:
        fields["tensors"] = st.just(tuple(tensor for tensor, _ in encoded))
    message = data.draw(st.builds(kind, **fields))

    sent = codec.encode(message, frames)

    for network in networks_of(kind):
        received, received_frames = codec.decode([bytes(frame) for frame in sent], network)
        assert received == message
        assert [bytes(frame) for frame in frames] == list(received_frames)


@pytest.mark.parametrize(
    "broken",
    [
        messages.Join(sender="x" * 129, incarnation=1),
        messages.Join(sender="edge-0", incarnation=-1),
        messages.Join(sender="edge-0", incarnation=2**53 + 1),
        messages.Refuse(sender="server", code="finished", reason="x" * 4097),
    ],
    ids=["long name", "negative", "beyond doubles", "long text"],
)
def test_what_a_stranger_can_say_is_bounded(broken):
    """Names and texts end up in journals, numbers in arrays."""
    with pytest.raises(RemoteWireError):
        codec.decode(codec.encode(broken), "data")


OF_NOTHING = [(), ("theta", "theta"), ("update", "theta"), tuple(f"piece-{k}" for k in range(17))]
"""No message carries such tensors."""
OF_COMPRESSIONS = [("other",), ("y", "x")]
"""Nor these, but one that a compression made."""


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (kind, names)
        for kind in messages.TENSORS
        for names in (*OF_NOTHING, *(() if kind in messages.COMPRESSED else OF_COMPRESSIONS))
    ],
    ids=lambda value: getattr(value, "__name__", str(value)[:40]),
)
def test_a_message_carries_the_tensors_of_its_kind_and_no_others(kind, names, examples):
    """Whoever handles it may rely on them."""
    good, _ = next((message, frames) for message, frames in examples if type(message) is kind)
    encoded = [encode_dense(name, np.zeros(3, "f4")) for name in names]
    bad = msgspec.structs.replace(good, tensors=tuple(tensor for tensor, _ in encoded))
    frames = [bytes(frame) for _, parts in encoded for frame in parts]

    with pytest.raises(LocalWireError, match="with tensors"):
        codec.encode(bad, frames)
    for network in networks_of(kind):
        with pytest.raises(RemoteWireError, match="with tensors"):
            codec.decode([msgspec.msgpack.encode(bad), *frames], network)


@pytest.mark.parametrize("names", OF_COMPRESSIONS, ids=str)
@pytest.mark.parametrize("since", [None, 3])
def test_what_a_compression_makes_has_names_of_its_own(names, since, examples):
    """In a push, and in a model that says what it is counted from; a whole model is `theta`."""
    encoded = [encode_dense(name, np.zeros(3, "f4")) for name in names]
    tensors, frames = tuple(tensor for tensor, _ in encoded), [frame for _, parts in encoded for frame in parts]
    push, model = (
        msgspec.structs.replace(next(each for each, _ in examples if type(each) is kind), tensors=tensors)
        for kind in (messages.Push, messages.Model)
    )
    model = msgspec.structs.replace(model, since=since)

    assert codec.decode(codec.encode(push, frames), "data")[0] == push
    if since is None:
        with pytest.raises(LocalWireError, match="with tensors"):
            codec.encode(model, frames)
    else:
        assert codec.decode(codec.encode(model, frames), "data")[0] == model


def test_the_examples_have_every_kind(examples):
    """So that what is tested with them is tested for all messages."""
    assert {type(message) for message, _ in examples} == set(KINDS)


def test_a_header_begins_with_kind_protocol_and_sender(examples):
    """A reader of another version finds these three where they always were."""
    for message, frames in examples:
        header = msgspec.msgpack.decode(codec.encode(message, frames)[0])
        assert header[:3] == [type(message).__name__.lower(), messages.PROTOCOL, message.sender]
        assert len(header) == 1 + len(message.__struct_fields__)


def test_a_message_of_the_other_network_is_refused(examples):
    """A worker can send no `stop`, a controller no `push`."""
    for message, frames in examples:
        sent = codec.encode(message, frames)
        for network in {"data", "management"} - set(networks_of(type(message))):
            with pytest.raises(RemoteWireError, match="unreadable header"):
                codec.decode(sent, network)


def test_another_protocol_version_is_named_in_the_error():
    """Both versions, and who sent it."""
    sent = codec.encode(messages.Join(sender="edge-0", incarnation=1, protocol=99))

    with pytest.raises(RemoteWireError, match=f"protocol 99 from 'edge-0'; this is {messages.PROTOCOL}"):
        codec.decode(sent, "data")


def test_no_frame_too_many_frames_and_an_oversized_header_are_refused():
    """Before anything of them is read."""
    with pytest.raises(RemoteWireError, match="0 frames"):
        codec.decode([], "data")
    with pytest.raises(RemoteWireError, match="65537 frames"):
        codec.decode([b""] * (codec.MAX_FRAMES + 1), "data")
    with pytest.raises(RemoteWireError, match="a header of"):
        codec.decode([bytes(codec.MAX_HEADER_BYTES + 1)], "data")


def test_frames_that_do_not_fit_their_header_are_refused():
    """One byte less, one byte more, a frame less, a frame more."""
    tensor, frames = encode_dense("theta", np.zeros(FRAME_BYTES // 4 + 1, "f4"))
    header, first, second = codec.encode(messages.Checkpoint(sender="s", version=1, tensors=(tensor,)), frames)

    assert [len(first), len(second)] == [FRAME_BYTES, 4]
    for broken in ([first, second[:3]], [first, bytes(5)], [first], [first, second, b""], [second, first], []):
        with pytest.raises(RemoteWireError):
            codec.decode([header, *broken], "management")


def test_sending_what_does_not_fit_is_this_nodes_own_fault():
    """LocalWireError, not RemoteWireError, and it names the message."""
    tensor, frames = encode_dense("theta", np.zeros(3, "f4"))
    model = messages.Model(sender="server", version=1, final=False, tensors=(tensor,))

    with pytest.raises(LocalWireError, match="Model"):
        codec.encode(model, [])
    with pytest.raises(LocalWireError, match="Model"):
        codec.encode(model, [*frames, b"more"])
    with pytest.raises(LocalWireError, match="Join"):
        codec.encode(messages.Join(sender="edge-0", incarnation=1), frames)
    huge = Tensor("theta", "float32", (2**40,), "dense", 2**40)
    with pytest.raises(LocalWireError, match="too large"):
        codec.encode(messages.Checkpoint(sender="server", version=1, tensors=(huge,)), [])


def test_the_size_of_a_message_is_its_header_and_its_frames():
    """What is counted as payload."""
    tensor, frames = encode_dense("theta", np.zeros(300_000, "f4"))
    sent = codec.encode(messages.Checkpoint(sender="server", version=1, tensors=(tensor,)), frames)

    assert codec.size_bytes(sent) == len(sent[0]) + 1_200_000


@given(sent_s=st.floats())
@example(sent_s=math.nan)
@example(sent_s=math.inf)
def test_a_time_of_sending_is_finite_or_refused(sent_s):
    """Whoever computes with it need not ask."""
    tensor, frames = encode_dense("theta", np.zeros(3, "f4"))
    model = messages.Model(sender="server", version=1, final=False, sent_s=sent_s, tensors=(tensor,))
    encoded = codec.encode(model, frames)

    if -1.0 <= sent_s <= 2**53:
        assert codec.decode(encoded, "data")[0] == model
    else:
        with pytest.raises(RemoteWireError, match="unreadable header: Expected `float`"):
            codec.decode(encoded, "data")
