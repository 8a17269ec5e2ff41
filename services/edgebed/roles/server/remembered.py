"""What an object remembers, as plain values and arrays: its attributes, whatever they are, written down and put back.

Nobody has to list what an aggregation keeps, so nothing that is added to one can be forgotten. Attributes may be plain
values, arrays, collections of such, the tuples in TUPLES, and objects with attributes of that kind, which are there
again once their owner has been made anew. Dataclasses are settings, which stay. Anything else, such as an open file or
a generator, cannot be stored.
"""

import dataclasses
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.update import ModelUpdate
from edgebed.core.records import Refused
from edgebed.roles.server.downlink import Copy, CopyDelta
from edgebed.roles.server.membership import JoinId
from edgebed.wire.messages import Push, Tensor


class Held(NamedTuple):
    """A push that the aggregation has and has not applied."""

    peer: str
    push: Push
    entries: int
    bits: int
    bytes: int


COLLECTIONS: dict[str, Any] = {each.__name__: each for each in (list, tuple, set, frozenset, deque)}
TUPLES: dict[str, Any] = {each.__name__: each for each in (Copy, CopyDelta, Held, JoinId, ModelUpdate)}
STRUCTS: dict[str, Any] = {each.__name__: each for each in (Push, Refused, Tensor)}
Names = Sequence[str]


class Arrays:
    """Arrays in the order in which they were met, each once."""

    def __init__(self) -> None:
        self.found: list[NDArray[Any]] = []
        self._places: dict[int, int] = {}

    def place(self, array: NDArray[Any]) -> int:
        """Return the number of an array; ValueError where it holds objects."""
        if array.dtype.hasobject:
            raise ValueError(f"an array of {array.dtype}")
        if id(array) not in self._places:
            self._places[id(array)] = len(self.found)
            self.found.append(array)
        return self._places[id(array)]


def written(owner: Any, names: Names, arrays: Arrays) -> dict[str, Any]:
    """Return the attributes of `owner` as plain values; ValueError, naming one, where it cannot be stored."""
    found = {}
    for name in names:
        try:
            value = getattr(owner, name)
            if hasattr(value, "__dict__") and not isinstance(value, type) and not callable(value):
                inner = [] if dataclasses.is_dataclass(value) else attributes(value)  # settings never change
                found[name] = ["object", written(value, inner, arrays)]
            else:
                found[name] = _plain(value, arrays)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    return found


def put_back(owner: Any, plain: dict[str, Any], arrays: Sequence[NDArray[Any]]) -> None:
    """Give `owner` the attributes that `written` returned."""
    for name, value in plain.items():
        if isinstance(value, list) and value[0] == "object":
            put_back(getattr(owner, name), value[1], arrays)
        else:
            setattr(owner, name, _again(value, arrays))


def attributes(owner: Any, *but: str) -> list[str]:
    """Return the names of all attributes of an object, except some."""
    return [name for name in vars(owner) if name not in but]


def _plain(value: Any, arrays: Arrays) -> Any:
    """Write a value down: itself where it is plain, else `[kind, …]`."""
    if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, np.generic)):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return ["array" if isinstance(value, np.ndarray) else "number", arrays.place(np.asarray(value))]
    if isinstance(value, bytes | bytearray | memoryview):
        return ["bytes", arrays.place(np.frombuffer(value, np.uint8))]
    kind = type(value).__name__
    if type(value) in (set, frozenset):
        return [kind, *sorted((_plain(each, arrays) for each in value), key=repr)]
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
    return TUPLES[kind](*values) if kind in TUPLES else COLLECTIONS[kind](values)
