"""A data set: examples for training, for validation and for testing, checked when it is made.

What its targets have to be is for the task's objective to say.

Shapes: N examples.
"""

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgebed.core.errors import ScenarioError
from edgebed.core.plan import ArrayForm
from edgebed.learning.data_sets.examples import Arrays, Examples, typed

GIVEN = "(inputs, targets) or (inputs, targets, clients)"
COARSE = 0.01
"""Distance of single-precision numbers, as a share of what examples differ by, from which it is told."""
RAGGED = "entries of different lengths; pad them to one, and tell by a mask, or by targets to ignore, what counts"


@dataclass(frozen=True, kw_only=True, eq=False, init=False)
class DataSet:
    """Examples of three parts."""

    train: Examples
    test: Examples
    validation: Examples | None
    """What training is steered by; None: the data has no such part of its own."""
    outputs: int | None
    """Outputs of a model that the data states, e.g. its classes; None: they follow from the targets."""
    client_names: tuple[str, ...]
    """The clients that the examples come from, in order, numbers in their names by value; empty: the data does not say.
    """
    name: str
    note: str
    """Remark for readers on where the data came from; empty if none."""
    doubts: tuple[str, ...]
    """What is doubtful in the arrays as they were given."""
    fit: Callable[[Self], Self] | None
    """What makes anew all that follows from the training examples, such as a standardisation, when there are fewer of
    them; None: nothing does."""

    def __init__(
        self,
        *,
        train: Sequence[Any] | Examples,
        test: Sequence[Any] | Examples,
        validation: Sequence[Any] | Examples | None = None,
        outputs: int | None = None,
        name: str = "",
        note: str = "",
    ) -> None:
        """Each part is (inputs, targets), or (inputs, targets, clients).

        Inputs and targets are an array (N, ...), or several by name, which the model takes as keywords; targets may be
        None. `clients` are the N whole numbers or texts that tell whose an example is. `outputs`: of a model, where
        they do not follow from the targets. ScenarioError with all that is wrong.
        """
        parts = {"train": train, "validation": validation, "test": test}
        problems, doubts = list[str](), list[str]()
        read = {
            which: _read(which, given, problems, doubts)
            for which, given in parts.items()
            if given is not None and not isinstance(given, Examples)
        }
        read = {which: (_in_order(part, read[next(iter(read))][0]), ids) for which, (part, ids) in read.items()}
        if not problems:
            problems += _differences({which: part for which, (part, _) in read.items()})
        if problems:
            raise ScenarioError(*problems)
        names, key_of = _names([ids for _, ids in read.values() if ids is not None])
        numbers = {each: number for number, each in enumerate(names)}
        found: dict[str, Any] = dict(parts)
        for which, (part, ids) in read.items():
            of = None if ids is None else np.array([numbers[key_of(each)] for each in ids.tolist()], np.int64)
            found[which] = dataclasses.replace(part, clients=of)
        rest = {
            "outputs": outputs,
            "client_names": tuple(map(str, names)),
            "name": name,
            "note": note,
            "fit": None,
            "doubts": tuple(doubts),
        }
        for key, value in {**found, **rest}.items():
            object.__setattr__(self, key, value)

    def named(self, name: str) -> Self:
        """Return the same data set by a name; ScenarioError where it has no example or no value, or not finite ones."""
        problems = [f"{name}: {which} {problem}" for which, part in self.parts.items() for problem in _unusable(part)]
        if problems:
            raise ScenarioError(*problems)
        return self.replaced(name=name)

    def replaced(self, **changes: Any) -> Self:
        """Return the same with other values of some fields."""
        made = object.__new__(type(self))
        for field in dataclasses.fields(self):
            object.__setattr__(made, field.name, changes.get(field.name, getattr(self, field.name)))
        return made

    def fitted(self) -> Self:
        """Return the same as its training examples, of which some were taken out, say."""
        return self.fit(self) if self.fit else self

    @property
    def parts(self) -> dict[str, Examples]:
        """The parts that there are."""
        found = {"train": self.train, "validation": self.validation, "test": self.test}
        return {which: part for which, part in found.items() if part is not None}


def from_arrays(
    name: str,
    train_x: Any,
    train_y: Any,
    test_x: Any,
    test_y: Any,
    *,
    outputs: int | None = None,
    note: str = "",
) -> DataSet:
    """Return the data set of these arrays; ScenarioError with all that is wrong."""
    try:
        return DataSet(train=(train_x, train_y), test=(test_x, test_y), outputs=outputs, note=note)
    except ScenarioError as error:
        raise ScenarioError(*(f"{name}: {problem}" for problem in error.problems)) from error


def _read(which: str, given: object, problems: list[str], doubts: list[str]) -> tuple[Examples, NDArray[Any] | None]:
    """Return a part and whose its examples are; add what is wrong to `problems`, what is doubtful to `doubts`."""
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) not in (2, 3):
        problems.append(f"{which} is a {type(given).__name__}; give {GIVEN}.")
        return Examples({}, {}), None
    part = Examples(
        _arrays(f"{which} inputs", given[0], problems, doubts),
        {} if given[1] is None else _arrays(f"{which} targets", given[1], problems, doubts),
    )
    ids = None if len(given) == 2 or given[2] is None else np.asarray(given[2])
    if ids is not None and (ids.ndim != 1 or ids.dtype.kind not in "iuU"):
        problems.append(f"{which} clients are {ids.dtype} {ids.shape}; give a whole number or text for each example.")
        ids = None
    arrays = [*part.inputs.values(), *part.targets.values(), *([] if ids is None else [ids])]
    if len({len(array) for array in arrays}) > 1:
        lengths = ", ".join(str(len(array)) for array in arrays)
        problems.append(f"{which}: inputs, targets and clients have {lengths} entries; each example has one of each.")
    return part, ids


def _arrays(what: str, given: object, problems: list[str], doubts: list[str]) -> Arrays:
    by_name = given if isinstance(given, Mapping) else {"": given}
    found: Arrays = {}
    if not by_name:
        problems.append(f"{what}: there are none.")
    for name, each in by_name.items():
        told = f"{what} '{name}'" if name else what
        if np.ma.isMaskedArray(each):
            problems.append(
                f"{told}: a masked array; fill it, e.g. each.filled(0), and give its mask by a name of its own."
            )
            continue
        if not isinstance(name, str) or (name and not name.isidentifier()):
            problems.append(f"{told}: not a name that a function's parameter could have.")
            continue
        try:
            array = typed(given_as := np.asarray(each))
        except ValueError as error:  # numpy's own for ragged lists, too
            problems.append(f"{told}: {RAGGED if 'inhomogeneous' in str(error) else error}.")
            continue
        if array.ndim == 0:
            problems.append(f"{told}: a single number; give one entry for each example.")
            continue
        found[name] = array
        if given_as.dtype == np.float64 and (coarse := _coarse(given_as, array)):
            doubts.append(f"{told} {coarse}")
    return found


def _coarse(given: NDArray[np.float64], array: NDArray[np.float32]) -> str:
    """Say where what examples differ by is lost in single precision; "" where it is not."""
    if not len(given) or not np.isfinite(array).all():
        return ""
    spacing = np.spacing(np.abs(array).max(axis=0)).reshape(-1)
    spread = given.std(axis=0).reshape(-1)
    largest = np.abs(given).max(axis=0).reshape(-1)
    (lost,) = np.nonzero((spread > 1e-12 * largest) & (spacing > COARSE * spread))  # less is rounding of one number
    if not lost.size:
        return ""
    return (
        f"have a deviation of {spread[lost[0]]:.3g}, and become 32-bit numbers, which lie {spacing[lost[0]]:.3g} apart "
        "at their size; subtract their mean first"
    )


def _in_order(part: Examples, first: Examples) -> Examples:
    """Return the examples with their arrays in the order of the first part's: names are what models go by."""
    pairs = ((part.inputs, first.inputs), (part.targets, first.targets))
    inputs, targets = ({name: own[name] for name in (*like, *own) if name in own} for own, like in pairs)
    return dataclasses.replace(part, inputs=inputs, targets=targets)


def _differences(parts: Mapping[str, Examples]) -> list[str]:
    """Say where the arrays of two parts are of another kind."""
    found: list[str] = []
    first, *others = parts or [""]
    for other in others:
        for what in ("inputs", "targets"):
            wanted, forms = (_forms_of(parts[which], what) for which in (first, other))
            if forms != wanted:
                found.append(f"{first} {what} are {_told(wanted)}, but {other} {what} {_told(forms)}.")
    return found


def _forms_of(part: Examples, what: str) -> tuple[ArrayForm, ...]:
    """The forms of inputs or targets; the type of whole-number targets may differ by part."""
    if what == "inputs":
        return part.input_forms
    return tuple(
        msgspec.structs.replace(form, dtype="int64") if form.dtype == "uint8" else form for form in part.target_forms
    )


def _told(forms: Sequence[ArrayForm]) -> str:
    return ", ".join(f"{form.name} {form.dtype} {form.shape}".strip() for form in forms) or "none"


def _unusable(part: Examples) -> list[str]:
    if not len(part):
        return ["has no example."]
    found = []
    for what, arrays in (("inputs", part.inputs), ("targets", part.targets)):
        for name, array in arrays.items():
            told = f"{what} {name!r}" if name else what
            if not array.size:
                found.append(f"{told} are {array.shape}; give each example one value at least.")
            elif array.dtype.kind == "f" and not np.isfinite(array).all():
                found.append(f"{told} have values that are not finite.")
    return found


def _names(ids: Sequence[NDArray[Any]]) -> tuple[list[Any], Callable[[Any], Any]]:
    """Return each id once, in order, and what makes such a name of an id: texts where any part's are."""
    is_text = any(each.dtype.kind == "U" for each in ids)
    key_of: Callable[[Any], Any] = str if is_text else int
    return sorted({key_of(value) for each in ids for value in each.tolist()}, key=_natural if is_text else None), key_of


def _natural(text: str) -> tuple[list[Any], str]:
    """Return a key by which texts sort with the numbers in them by value: `person 2` is before `person 10`."""
    pieces = re.split("([0-9]+)", text)  # each second one is a number
    digits = [number.lstrip("0") for number in pieces[1::2]]
    key: list[Any] = [*pieces]
    key[1::2] = [(len(each), each) for each in digits]
    return key, text
