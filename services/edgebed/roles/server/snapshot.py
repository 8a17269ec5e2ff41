"""What an object remembers, as plain values and arrays: its attributes, whatever they are, dumped and loaded again.

Nobody has to list what an aggregation keeps, so nothing that is added to one can be forgotten. Attributes may be plain
values, arrays, collections of such, the tuples in TUPLES, and objects that have attributes of that kind and nothing
else, which are there again once their owner has been made anew. A class names in `transient` what does not outlast it.
Frozen dataclasses are settings, which stay. Anything else, such as an open file, a Counter, which is a dict with
attributes, or a generator, cannot be stored.
"""

import enum
import math
from collections import deque
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.aggregator import Aggregator
from edgebed.algorithms.update import ModelUpdate
from edgebed.core.errors import OwnCodeError
from edgebed.core.records import Refused
from edgebed.roles.server.downlink import Copy, CopyDelta
from edgebed.roles.server.entries import Snapshot, decode_entry, encode_entry
from edgebed.roles.server.membership import JoinId
from edgebed.wire.messages import Push, Tensor
from edgebed.wire.tensors import Buffer


class PendingPush(NamedTuple):
    """A push that the aggregation has and has not applied."""

    peer: str
    push: Push
    entries: int
    bits: int
    bytes: int


COLLECTIONS: dict[str, Any] = {each.__name__: each for each in (list, tuple, set, frozenset)}
TUPLES: dict[str, Any] = {each.__name__: each for each in (Copy, CopyDelta, PendingPush, JoinId, ModelUpdate)}
STRUCTS: dict[str, Any] = {each.__name__: each for each in (Push, Refused, Tensor)}


def dump(owner: Any, now: float = 0.0, but: Collection[str] = ()) -> tuple[Snapshot, list[Buffer]]:
    """Return the attributes of `owner`, except some, and the arrays among them, which share their memory.

    OwnCodeError, naming an attribute, where it cannot be stored: `edgebed validate` has tried a user's own aggregation.
    """
    arrays = Arrays()
    try:
        values = _dumped(owner, arrays, but)
    except ValueError as error:
        raise OwnCodeError(str(error)) from error
    forms = tuple((array.dtype.str, array.shape) for array in arrays.found)
    frames: list[Buffer] = [np.ascontiguousarray(each).reshape(-1).view(np.uint8).data for each in arrays.found]
    return Snapshot(now=now, values=values, arrays=forms), frames


def load(owner: Any, snapshot: Snapshot, payload: Buffer) -> None:
    """Give `owner` the attributes that were dumped; ValueError where it has no such."""
    arrays: list[NDArray[Any]] = []
    begin = 0
    for kind, shape in snapshot.arrays:
        arrays.append(np.frombuffer(payload, kind, math.prod(shape), begin).reshape(shape).copy())
        begin += arrays[-1].nbytes
    _load(owner, snapshot.values, arrays)


def dump_lasting(aggregation: Aggregator) -> NDArray[np.uint8]:
    """Return (s,) bytes of what an aggregation remembers beside its model when all workers have to join anew."""
    snapshot, frames = dump(aggregation, but=("theta", "version", *named(aggregation, "session")))
    return np.frombuffer(b"".join(encode_entry(snapshot, frames)), np.uint8)


def load_lasting(aggregation: Aggregator, state: NDArray[np.uint8]) -> None:
    """Let a new aggregation go on with what `dump_lasting` returned; ValueError where it is that of another."""
    try:
        snapshot, (payload,) = decode_entry(state.data)
        assert isinstance(snapshot, Snapshot)
        load(aggregation, snapshot, payload)
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError) as error:
        raise ValueError(f"state: not what this aggregation remembers: {error}") from error


def named(owner: Any, table: str) -> set[str]:
    """Return the names of attributes that a class, and those that it is made from, have in a table of that name."""
    return {name for each in type(owner).__mro__ for name in vars(each).get(table, ())}


class Arrays:
    """Arrays in the order in which they were met, each once."""

    def __init__(self) -> None:
        self.found: list[NDArray[Any]] = []
        self._places: dict[int, int] = {}

    def place(self, array: NDArray[Any]) -> int:
        """Return the number of an array; ValueError where it holds objects."""
        if array.dtype.hasobject or array.dtype.names:
            raise ValueError(f"an array of {array.dtype} cannot be stored")
        if id(array) not in self._places:
            self._places[id(array)] = len(self.found)
            self.found.append(array)
        return self._places[id(array)]


def _dumped(owner: Any, arrays: Arrays, but: Collection[str] = ()) -> dict[str, Any]:
    """Return the attributes of `owner` as plain values."""
    found = {}
    left_out = {*but, *named(owner, "transient")}
    for name in vars(owner):
        if name in left_out or callable(getattr(type(owner), name, None)):  # who wraps a method has put it there
            continue
        try:
            value = getattr(owner, name)
            if _has_attributes_alone(value):
                found[name] = ["object", {} if _is_setting(value) else _dumped(value, arrays)]
            else:
                found[name] = _plain(value, arrays)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    return found


class _Plain:
    """A class whose objects have attributes, and nothing else."""


def _has_attributes_alone(value: Any) -> bool:
    """Whether an object's attributes are all that it holds; those of classes that derive from `dict` hold more."""
    is_object = hasattr(value, "__dict__") and not isinstance(value, type | enum.Enum) and not callable(value)
    return is_object and type(value).__basicsize__ == _Plain.__basicsize__


def _is_setting(value: Any) -> bool:
    parameters = getattr(type(value), "__dataclass_params__", None)
    return parameters is not None and parameters.frozen


def _load(owner: Any, values: dict[str, Any], arrays: Sequence[NDArray[Any]]) -> None:
    if missing := sorted(values.keys() - getattr(owner, "__dict__", {}).keys()):
        raise ValueError(f"{type(owner).__name__} has no {', '.join(missing)} when it is new")
    for name, value in values.items():
        if isinstance(value, list) and value[0] == "object":
            _load(getattr(owner, name), value[1], arrays)
        else:
            setattr(owner, name, _again(value, arrays))


def _plain(value: Any, arrays: Arrays) -> Any:
    """Write a value down: itself where it is plain, else `[kind, …]`."""
    if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, np.generic)):
        if isinstance(value, int) and not -(2**63) <= value < 2**64:
            raise ValueError(f"{value} is beyond 64 bits, and cannot be stored")
        return value
    if isinstance(value, np.ndarray | np.generic):
        return ["array" if isinstance(value, np.ndarray) else "number", arrays.place(np.asarray(value))]
    if isinstance(value, bytes | bytearray | memoryview):
        return ["bytes", arrays.place(np.frombuffer(value, np.uint8))]
    kind = type(value).__name__
    if type(value) in (set, frozenset):
        return [kind, *sorted((_plain(each, arrays) for each in value), key=repr)]
    if type(value) is deque:
        return [kind, value.maxlen, *(_plain(each, arrays) for each in value)]
    if type(value) in (*COLLECTIONS.values(), *TUPLES.values()):
        return [kind, *(_plain(each, arrays) for each in value)]
    if type(value) in STRUCTS.values():
        return [kind, msgspec.to_builtins(value)]
    if type(value) is dict:
        return ["dict", *([_plain(key, arrays), _plain(each, arrays)] for key, each in value.items())]
    raise ValueError(f"a {kind} cannot be stored")


def _again(plain: Any, arrays: Sequence[NDArray[Any]]) -> Any:
    """Return the value that was written down."""
    if not isinstance(plain, list):
        return plain
    kind, *inner = plain
    if kind in ("array", "number"):
        return arrays[inner[0]] if kind == "array" else arrays[inner[0]][()]
    if kind == "bytes":
        return arrays[inner[0]].data
    if kind == "dict":
        return {_again(key, arrays): _again(each, arrays) for key, each in inner}
    if kind in STRUCTS:
        return msgspec.convert(inner[0], STRUCTS[kind])
    values = [_again(each, arrays) for each in inner]
    if kind == "deque":
        return deque(values[1:], values[0])
    return TUPLES[kind](*values) if kind in TUPLES else COLLECTIONS[kind](values)
