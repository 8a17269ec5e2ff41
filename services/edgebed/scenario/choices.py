"""Values with more than one form, or with limits: a waiting time, a split, a validation part, an interval, a bound.

For each a frozen value, a reader from what YAML gives (ValueError says what is allowed), and a writer back to it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any, Literal, get_args

from edgebed.core import units
from edgebed.core.plan import Comparison, Waiting
from edgebed.scenario.mistakes.problems import NotAllowedError, show

WAITING_FORM = "a duration, {uniform: [0s, 200ms]} or {exponential: 100ms}"
SPLIT_FORM = "iid, by-client, {dirichlet: 0.5} or {by-label: 2}"
HELD_OUT_FORM = "a number of clients, or a list of their names"
VALIDATION_FORM = "a share of the training examples, e.g. 10%, or own, the data set's own part"
EVERY_FORM = "a number of updates, e.g. 200 updates, or a duration, e.g. 5s"
COMPARISONS: tuple[Comparison, ...] = get_args(Comparison)
CPUS_MIN = 0.01  # the least that the kernel holds: a millisecond of each 100
CPUS_MAX = 10_000.0  # more than any machine has, and less than the kernel refuses
INTERVAL_MIN_S = 0.001  # virtual time, too, goes from one interval to the next


@dataclass(frozen=True)
class Split:
    """How the training examples are divided among the workers."""

    kind: Literal["iid", "by-client", "dirichlet", "by-label"] = "iid"
    parameter: float | None = None
    """dirichlet: alpha; by-label: labels per worker."""


@dataclass(frozen=True)
class Validation:
    """Where the validation part comes from: a share of the training examples, or the data set's own part."""

    share: float | None = None
    """None: it is the data set's own."""


@dataclass(frozen=True)
class HeldOut:
    """Clients that training never sees: so many, which the seed draws, or those of these names."""

    count: int = 0
    names: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.count or self.names)


@dataclass(frozen=True)
class Interval:
    """An interval: either so many updates or so much time."""

    updates: int | None = None
    time_s: float | None = None


@dataclass(frozen=True)
class Bound:
    """What a measure is compared with."""

    comparison: Comparison
    value: float
    text: str
    """The bound as the user wrote it, with its unit."""


def read_waiting(given: object) -> Waiting:
    """Read a pause between gradient and push."""
    if not isinstance(given, Mapping):
        return Waiting(low_s=units.parse_duration(given))
    name, value = _only_item(given, "a waiting time", WAITING_FORM, ("uniform", "exponential"))
    if name == "exponential":
        return Waiting(distribution="exponential", mean_s=units.parse_duration(value))
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(f"uniform takes its lower and upper end, e.g. {{uniform: [0s, 200ms]}}, not {show(value)}")
    low_s, high_s = (units.parse_duration(end) for end in value)
    if low_s > high_s:
        raise ValueError(f"uniform: the lower end {value[0]} is above the upper end {value[1]}")
    return Waiting(distribution="uniform", low_s=low_s, high_s=high_s)


def write_waiting(waiting: Waiting) -> Any:
    """Return the form that `read_waiting` reads."""
    if waiting.distribution == "constant":
        return units.format_duration(waiting.low_s)
    if waiting.distribution == "uniform":
        return {"uniform": [units.format_duration(waiting.low_s), units.format_duration(waiting.high_s)]}
    return {"exponential": units.format_duration(waiting.mean_s)}


def read_split(given: object) -> Split:
    """Read a division of the training examples."""
    if given == "iid":
        return Split()
    if given == "by-client":
        return Split("by-client")
    if isinstance(given, Mapping) and "by-client" in given:
        raise ValueError("by-client takes no value, as the data says whose each example is: split: by-client")
    name, value = _only_item(given, "a split", SPLIT_FORM, ("by-client", "dirichlet", "by-label"))
    if name == "by-label":
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"by-label takes the number of labels per worker, at least 1, not {show(value)}")
        return Split("by-label", value)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0.0 < value <= 1e6:
        raise ValueError(f"dirichlet takes its alpha, above 0 and at most 1e6, not {show(value)}")
    return Split("dirichlet", float(value))


def write_split(split: Split) -> Any:
    """Return the form that `read_split` reads."""
    return split.kind if split.parameter is None else {split.kind: split.parameter}


def read_held_out(given: object) -> HeldOut:
    """Read which clients are held out."""
    if isinstance(given, int) and not isinstance(given, bool):
        if given < 0:
            raise ValueError(f"{given} is below 0")
        return HeldOut(given)
    names = given if isinstance(given, list) else []
    wrong = [each for each in names if not isinstance(each, int | str) or isinstance(each, bool)]
    if wrong or not names:
        raise ValueError(f"not {'a client' if wrong else 'clients'}: {show(*wrong[:1] or [given])} ({HELD_OUT_FORM})")
    return HeldOut(names=tuple(str(each) for each in names))


def write_held_out(held_out: HeldOut) -> Any:
    """Return the form that `read_held_out` reads."""
    return list(held_out.names) or held_out.count


def read_validation(given: object) -> Validation:
    """Read where the validation part comes from; a share is above 0 and below 1."""
    if given == "own":
        return Validation()
    if isinstance(given, str) and re.fullmatch(units.PERCENTAGE_PATTERN, given):
        share = units.parse_percentage(given)
    elif isinstance(given, int | float) and not isinstance(given, bool):
        share = float(given)
    else:
        raise ValueError(f"not a validation part: {show(given)} ({VALIDATION_FORM})")
    if not 0.0 < share < 1.0:
        raise ValueError(
            f"a share of the training examples is above 0 and below 100 %, not {given} ({VALIDATION_FORM})"
        )
    return Validation(share)


def write_validation(validation: Validation) -> str | float:
    """Return the form that `read_validation` reads."""
    return "own" if validation.share is None else validation.share


def read_interval(given: object) -> Interval:
    """Read an interval in updates or in time; both above zero."""
    match = re.fullmatch(r"([0-9]+) updates?", given) if isinstance(given, str) else None
    if match:
        if Decimal(match[1]) > units.LARGEST:
            raise ValueError(f"an interval is at most {units.LARGEST:,} updates")
        interval = Interval(updates=int(match[1]))
    elif isinstance(given, str) and re.fullmatch(units.DURATION_PATTERN, given):
        interval = Interval(time_s=units.parse_duration(given))
    else:
        bare = isinstance(given, int) and not isinstance(given, bool)
        hint = f"; did you mean '{given} updates' or {given}s?" if bare else ""
        raise ValueError(f"not an interval: {show(given)} ({EVERY_FORM}{hint})")
    if not (interval.updates or interval.time_s):
        raise ValueError(f"an interval has to be above 0, not '{given}'")
    if interval.time_s is not None and interval.time_s < INTERVAL_MIN_S:
        raise ValueError(f"an interval in time is {units.format_duration(INTERVAL_MIN_S)} or more, not '{given}'")
    return interval


def write_interval(interval: Interval) -> str:
    """Return the form that `read_interval` reads."""
    if interval.time_s is not None:
        return units.format_duration(interval.time_s)
    return f"{interval.updates} updates"


def read_cuts(given: object) -> Any:
    """Read where a model is cut: `auto`, `even`, or numbers of layers that increase."""
    if given in ("auto", "even"):
        return given
    is_list = isinstance(given, list) and all(isinstance(each, int) and not isinstance(each, bool) for each in given)
    if not is_list:
        raise ValueError(f"not cuts: {show(given)} (auto, even, or numbers of layers, e.g. [1, 3])")
    assert isinstance(given, list)
    for before, after in pairwise([0, *given]):
        if after <= before:
            why = f"{after} comes after {before}" if before else "layer 0 begins a shard anyway"
            raise ValueError(f"{given}: cuts rise, e.g. [1, 3]: {why}")
    return given


def read_bound(given: object, parse: Callable[[str], float], example: str) -> Bound:
    """Read a comparison and a value with the unit that `parse` wants."""
    match = re.fullmatch(rf"({'|'.join(COMPARISONS)})\s*(\S+)", given.strip()) if isinstance(given, str) else None
    if match is None:
        raise ValueError(
            f'not a bound: {show(given)} (one of {", ".join(COMPARISONS)} and a value in quotes, e.g. "{example}")'
        )
    comparison = next(each for each in COMPARISONS if each == match[1])
    return Bound(comparison, parse(match[2]), f"{comparison} {match[2]}")


def _only_item(given: object, what: str, form: str, names: tuple[str, ...]) -> tuple[str, Any]:
    """Return the one key and its value."""
    if not isinstance(given, Mapping) or len(given) != 1:
        raise ValueError(f"not {what}: {show(given)} ({form})")
    ((name, value),) = given.items()
    if name not in names:
        raise NotAllowedError(name, names)
    return str(name), value
