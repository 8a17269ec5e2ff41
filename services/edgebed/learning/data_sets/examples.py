"""Examples: inputs, targets, and whose they are; arrays of any type and shape, one or several by name.

Shapes: N examples.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from edgebed.core.plan import ArrayForm

Arrays = dict[str, NDArray[Any]]
"""(N, ...) arrays by name; one alone has the name ""."""
KINDS = {"u": "int64", "i": "int64", "b": "bool", "f": "float32"}
"""What arrays of a kind of numbers become."""
KEYS = ("inputs", "targets")
CLIENTS = "clients"
NOBODY = -1
"""In place of a client's number: the data does not say whose this example is."""


@dataclass(frozen=True, eq=False)
class Examples:
    """Some examples, such as those of a part of a data set, or of a node."""

    inputs: Arrays
    targets: Arrays
    clients: NDArray[np.int64] | None = None
    """(N,) numbers of the clients that they come from, NOBODY's among them; None: the data does not say."""

    def __len__(self) -> int:
        """N."""
        return len(next(iter((self.inputs or self.targets).values()), ()))

    def take(self, places: NDArray[np.int64] | slice) -> Self:
        """Return the examples at some places."""
        return type(self)(
            {name: array[places] for name, array in self.inputs.items()},
            {name: array[places] for name, array in self.targets.items()},
            None if self.clients is None else self.clients[places],
        )

    def without_inputs(self) -> Self:
        """Return the targets alone."""
        return type(self)({}, self.targets, self.clients)

    @property
    def input_forms(self) -> tuple[ArrayForm, ...]:
        """What a model is given of each."""
        return _forms(self.inputs)

    @property
    def target_forms(self) -> tuple[ArrayForm, ...]:
        """What an objective is given of each beside that."""
        return _forms(self.targets)

    @property
    def input_bytes(self) -> int:
        """Bytes of the inputs of one example."""
        return sum(array[:1].nbytes for array in self.inputs.values())

    def named(self, part: str) -> Arrays:
        """Return all arrays by one name each, as those of a part of the data travel to a node."""
        clients = {} if self.clients is None else {f"{part}/{CLIENTS}": self.clients}
        both = zip(KEYS, (self.inputs, self.targets), strict=True)
        return {f"{part}/{key}/{name}": array for key, arrays in both for name, array in arrays.items()} | clients

    @classmethod
    def of_named(cls, arrays: Mapping[str, NDArray[Any]], part: str) -> Self:
        """Return the examples of a part whose arrays travelled so."""
        inputs, targets = ({
            name.removeprefix(f"{part}/{key}/"): each
            for name, each in arrays.items()
            if name.startswith(f"{part}/{key}/")
        } for key in KEYS)  # fmt: skip
        return cls(inputs, targets, arrays.get(f"{part}/{CLIENTS}"))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the examples of several parts, one after the other."""
        said = any(part.clients is not None for part in parts)
        clients = [np.full(len(part), NOBODY) if part.clients is None else part.clients for part in parts]
        first = parts[0]
        return cls(
            {name: np.concatenate([part.inputs[name] for part in parts]) for name in first.inputs},
            {name: np.concatenate([part.targets[name] for part in parts]) for name in first.targets},
            np.concatenate(clients) if said else None,
        )


def typed(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array in the type that it travels in; ValueError where it holds no numbers.

    Pixels of 8 bits remain so among inputs, since they are scaled where they are used; so do labels of 8 bits.
    """
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind not in KINDS:
        if array.dtype.kind in "US":
            raise ValueError("text; number it, e.g. np.unique(labels, return_inverse=True)[1]")
        raise ValueError(f"{array.dtype}; allowed: numbers and booleans")
    if array.dtype == np.uint64 and array.size and int(array.max()) >= 2**63:
        raise ValueError("uint64 with values of 2^63 and more")
    with np.errstate(over="ignore"):  # what is then infinite is refused
        return array.astype(KINDS[array.dtype.kind], copy=False)


def _forms(arrays: Arrays) -> tuple[ArrayForm, ...]:
    return tuple(ArrayForm(name, tuple(array.shape[1:]), str(array.dtype)) for name, array in arrays.items())
