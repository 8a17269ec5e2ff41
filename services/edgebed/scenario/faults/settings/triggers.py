"""When a fault happens: at a time, an update or a measure's value, or where a worker is in its protocol; one of these.

A worker has five points: `before: push`, `during: push`, `after: push`, `during: pull`, `after: pull`. There a fault
happens the first time, or at one `step`, in the first of the node's incarnations; or by chance, with a `probability`
at every push of every incarnation. What happens at a time may be repeated: `at: 10m, every: 10m`.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

import msgspec
from pydantic import Field, WithJsonSchema, model_validator

from edgebed.core import units
from edgebed.core.measures.measure import read_number
from edgebed.core.planned.fault import AtMeasure, Point, Trigger
from edgebed.scenario.choices import read_bound
from edgebed.scenario.mistakes.problems import Problem, show
from edgebed.scenario.section import Duration, DurationFromZero, Form, Section

MOMENTS = ("before", "during", "after")
POINTS: tuple[Point, ...] = get_args(Point)
REPEATS = ("every", "until")
TIMES_MAX = 10_000
"""How often one entry may happen: a plan has each time, with the nodes that are drawn for it."""


def _read_at_measure(given: object) -> AtMeasure:
    form = "a measure of the program and the value that it reaches, e.g. { step: 50, of: home-0 }"
    names = [str(key) for key in given if key != "of"] if isinstance(given, Mapping) else []
    if not isinstance(given, Mapping) or len(names) != 1:
        raise ValueError(f"not a measure's value: {show(given)}; {form}")
    value, of = given[names[0]], given.get("of", "")
    if not isinstance(of, str):
        raise ValueError(f"of: not a node or a class: {show(of)}; {form}")  # noqa: TRY004 - pydantic takes no other
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return AtMeasure(measure=names[0], value=float(value), of=of)
    bound = read_bound(value, read_number, "<= 0.5")
    if bound.comparison not in (">=", "<="):
        raise ValueError(f"{bound.comparison} is reached at no certain value; write >= or <=, or the value alone: >=")
    return AtMeasure(measure=names[0], value=bound.value, comparison=bound.comparison, of=of)


def _write_at_measure(at: AtMeasure) -> dict[str, str | float]:
    value = at.value if at.comparison == ">=" else f"{at.comparison} {at.value!r}"
    return {at.measure: value} | ({"of": at.of} if at.of else {})


MeasureReached = Annotated[
    AtMeasure,
    Form(
        _read_at_measure, _write_at_measure, WithJsonSchema({"type": "object", "title": "{measure: value, of: node}"})
    ),
]


class Timed(Section):
    """A trigger that all nodes can have, and how often."""

    triggers: ClassVar[tuple[str, ...]] = ("at", "at_update", "at_measure")
    """Keys of which exactly one is given."""
    repeats: ClassVar[bool] = True
    """Whether `every` may repeat it; a kind that recurs by itself says in `not_here` how."""

    at: DurationFromZero | None = None
    """Time since training began."""
    at_update: int | None = Field(default=None, ge=1)
    """Number of updates that the server has applied when the fault happens."""
    at_measure: MeasureReached | None = None
    """With programs: the measure whose value is reached when the fault happens, and the node or class that tells it:
    `{ step: 50, of: home-0 }`, or `{ loss: "<= 0.5" }` of any node."""
    every: Duration | None = None
    """With `at`: the fault is repeated, so long after the time before; each time draws its nodes anew."""
    until: Duration | None = None
    """With `every`: time since training began after which it is not repeated; `stop.time` if left out."""

    @classmethod
    def contradictions(cls, given: Mapping[str, Any]) -> Iterable[Problem]:
        """Yield a problem unless there is exactly one trigger, and where what repeats it lacks its time."""
        yield from super().contradictions(given)
        triggers = [key for key in cls.triggers if given.get(key) is not None]
        allowed = (*cls.triggers, *(REPEATS if cls.repeats else ()))
        strangers = [key for key in Timed.model_fields if key not in allowed and given.get(key) is not None]
        if strangers:
            reason = cls.not_here.get(strangers[0]) or f"not a trigger of this kind; give {_one_of(cls.triggers)}"
            yield Problem((strangers[0],), reason, at_key=True)
        elif not triggers:
            yield Problem((), f"when? give {_one_of(cls.triggers)}")
        elif len(triggers) > 1:
            yield Problem((triggers[1],), f"{' and '.join(triggers)}: one fault has one trigger", at_key=True)
        for key, needed, what in (("every", "at", "the first time"), ("until", "every", "the time between two")):
            if key not in strangers and given.get(key) is not None and given.get(needed) is None:
                yield Problem((key,), f"{key} goes with {needed}, {what}; give {needed}, or leave it out", at_key=True)

    @model_validator(mode="after")
    def _ends_after_it_begins(self) -> Self:
        if self.until is not None and self.at is not None and self.until < self.at:
            until, at = units.format_duration(self.until), units.format_duration(self.at)
            raise ValueError(f"until: {until} is before the first time, at {at}")
        return self

    def times(self, end_s: float | None) -> int:
        """Return how often it happens in a trial that ends at `end_s`; 1 where nothing repeats it, or says how long."""
        begin_s, last_s = self.at or 0.0, end_s if self.until is None else self.until
        if self.every is None or last_s is None:
            return 1
        intervals = round((last_s - begin_s) / self.every, 9)
        return math.floor(intervals) + 1 if self.until is not None else max(1, math.ceil(intervals))

    @property
    def point(self) -> Point | None:
        """Return where in its protocol a worker has to be, if that is the trigger."""
        return None

    def trigger(self) -> Trigger:
        """Return the trigger for a plan."""
        return Trigger(at_s=self.at, at_update=self.at_update, at_measure=self.at_measure)


class Triggered(Timed):
    """A trigger that may be a point in a worker's protocol."""

    triggers: ClassVar[tuple[str, ...]] = (*Timed.triggers, *MOMENTS)

    before: Literal["push"] | None = None
    """Before the worker pushes."""
    during: Literal["push", "pull"] | None = None
    """While the push is leaving; or while the model is coming."""
    after: Literal["push", "pull"] | None = None
    """When all of the push has left; or when the model is there and nothing has been done with it."""
    step: int | None = Field(default=None, ge=0)
    """With `before`, `during` or `after`: at this push of the worker, counted from 0, a pull as the push that follows
    it; the first time if left out."""
    probability: float | None = Field(default=None, gt=0.0, le=1.0)
    """With `before`, `during` or `after`: by chance, drawn by the seed at every push."""

    @classmethod
    def contradictions(cls, given: Mapping[str, Any]) -> Iterable[Problem]:
        """Yield a problem where `step` or `probability` lacks its point, or both are given."""
        yield from super().contradictions(given)
        details = [key for key in ("step", "probability") if given.get(key) is not None]
        if details and not any(given.get(key) is not None for key in MOMENTS):
            yield Problem((details[0],), f"{details[0]} goes with {_one_of(MOMENTS)} of a push or pull", at_key=True)
        elif len(details) > 1:
            yield Problem((details[1],), "step and probability exclude each other", at_key=True)

    @property
    def point(self) -> Point | None:
        """Return where in its protocol a worker has to be, if that is the trigger."""
        given = {f"{moment}-{what}" for moment in MOMENTS if (what := getattr(self, moment))}
        return next((point for point in POINTS if point in given), None)

    def trigger(self) -> Trigger:
        """Return the trigger for a plan."""
        point = {"point": self.point, "step": self.step, "probability": self.probability}
        return msgspec.structs.replace(super().trigger(), **point)


def _one_of(keys: Iterable[str]) -> str:
    *most, last = keys
    return f"{', '.join(most)} or {last}" if most else last
