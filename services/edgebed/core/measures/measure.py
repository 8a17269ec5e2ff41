"""What a measure of a trial is: its unit, how a value of it is written and a bound is read, and in which words.

A measure is declared once, as a field of a struct of numbers: its type, a `Measure` beside the type, and its meaning
below it. Tables, comparisons, expectations, exports and documents read that declaration.
"""

import re
import typing
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import msgspec

from edgebed.core import units
from edgebed.core.measures.task import TaskMeasure
from edgebed.core.quantities import (
    UNMEASURED,
    bytes_text,
    ms_text,
    number_text,
    percent_text,
    seconds_text,
    verdict_text,
)

Family = Literal["all", "server", "shards", "program"]
"""The trials that have a measure: all, those with a parameter server, with shards of a model, or of programs."""
Better = Literal["more", "less", ""]
"""Which direction is better; "" where neither is by itself."""


class Unit(NamedTuple):
    """The unit of a measure."""

    name: str
    text: Callable[[float | None], str]
    """How a value is written for people."""
    read: Callable[[str], float]
    """How a bound on a value is read; ValueError with what is allowed."""
    example: str
    """A bound."""
    by: Literal["difference", "ratio"] = "ratio"
    """How two values are compared: shares, and numbers that may be 0 or less, by their difference; bytes, times and
    errors of two methods differ by factors."""

    def change_text(self, difference: float) -> str:
        """A difference of two values with its sign; of shares in points."""
        return f"{100 * difference:+.2f}" if self.is_share else f"{'+' * (difference >= 0)}{number_text(difference)}"

    @property
    def is_share(self) -> bool:
        """Whether values are shares, whose differences are points."""
        return self.text is percent_text


def read_number(text: str) -> float:
    """A finite number without unit; ValueError otherwise."""
    if not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?", text):
        raise ValueError(f"not a number: '{text}'")
    return float(text)


def read_fraction(text: str) -> float:
    """A number from 0 to 1, or a percentage; ValueError otherwise."""
    if text.endswith("%"):
        return units.parse_percentage(text)
    number = read_number(text)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"not a fraction from 0 to 1: '{text}' (97 % is 0.97, or 97%)")
    return number


SHARE = Unit("a fraction or percentage", percent_text, read_fraction, ">= 0.97", "difference")
NUMBER = Unit("a number", number_text, read_number, "<= 0.2")
COUNT = Unit("a count", number_text, read_number, ">= 1000")
SECONDS = Unit("a duration", seconds_text, units.parse_duration, "<= 60s")
MOMENTS = SECONDS._replace(text=lambda value: UNMEASURED if value is None else ms_text(value))
"""Durations of far less than a second."""
BYTES = Unit("a size", bytes_text, units.parse_memory, "<= 10MB")
_VERDICT = Unit("a verdict", verdict_text, read_number, "")


def unit_of(measure: TaskMeasure) -> Unit:
    """The unit of a task's measure. What is to be large, as R2, may be 0 or less: a ratio of it says nothing."""
    if measure.is_share:
        return SHARE
    return NUMBER._replace(text=measure.text, by="difference" if measure.better == "more" else "ratio")


class Measure(NamedTuple):
    """A measure of a trial."""

    unit: Unit
    better: Better = ""
    words: str = ""
    """What the report's table of measures calls it; "": that table has no row of it."""
    column: str = ""
    """Heading of its column in the terminal's table of trials; "": none."""
    compared: str = ""
    """Heading of its column where runs are compared; "": none."""
    name: str = ""
    family: Family = "all"
    is_whole: bool = False
    """Whether values are whole numbers."""
    label: str = ""
    """What it is called elsewhere, where no table of the report has a row of it; "": its name."""

    @property
    def title(self) -> str:
        """The measure in words."""
        return self.words or self.label or self.name.removesuffix("_s").removesuffix("_bytes").replace("_", " ")

    def text(self, value: float | None) -> str:
        """A value in its unit."""
        return self.unit.text(value)

    def beside(self, measured: float | None, bound: float) -> tuple[str, str]:
        """A measured value and its bound; with all their digits where rounding would make them look the same."""
        texts = self.text(measured), self.text(bound)
        if texts[0] == texts[1] and measured is not None and measured != bound:
            return f"{measured:.10g}", f"{bound:.10g}"
        return texts


VERDICT = Measure(_VERDICT, words="conditions", name="verdict")
"""The verdict on a trial's conditions, which may be expected as a measure is."""


def measures_of(struct: type[msgspec.Struct], family: Family) -> Iterator[Measure]:
    """The measures that a struct declares, in its order."""
    for field in msgspec.structs.fields(struct):
        type_, *others = typing.get_args(field.type) or (None,)
        for declared in others:
            if isinstance(declared, Measure):
                is_whole = float not in (type_, *typing.get_args(type_))
                yield declared._replace(name=field.name, family=family, is_whole=is_whole)
