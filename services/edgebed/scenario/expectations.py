"""Sections whose keys are measures: what is expected of a trial, and the value of a measure at which something ends.

Expectations may name any number that `core/measures/trial.py` declares, and what the task's objective declares. Which
measures there are is known where the task is: such keys are looked at there.
"""

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, GetJsonSchemaHandler, PlainValidator, WithJsonSchema
from pydantic_core import CoreSchema

from edgebed.algorithms.shares import percent_hint
from edgebed.core import units
from edgebed.core.measures.clients import of_clients
from edgebed.core.measures.measure import NUMBER, Family, Measure
from edgebed.core.measures.task import Level, TaskMeasure
from edgebed.core.measures.trial import (
    MEASURES,
    OF_PROGRAMS,
    STRUCTS,
    ProgramMeasures,
    all_measures,
    meanings,
    of_task,
)
from edgebed.learning.objectives.classification import ACCURACY
from edgebed.learning.objectives.registry import all_declared, whose_told
from edgebed.scenario.choices import COMPARISONS, Bound, read_bound
from edgebed.scenario.docstrings import attribute_docstrings
from edgebed.scenario.mistakes.problems import Problem, choose, show
from edgebed.scenario.section import Section

NEAR = 5
"""Number of measures that are named where one is unknown."""
LACKS: dict[Family, str] = {
    "server": "workers have the whole model, and make no steps of shards",
    "shards": "shards push no updates, and pull no models",
}
"""Why trials of a family have no measures of the other one."""


class Expectations(Section):
    """What the trial's outcome is judged by: comparisons in quotes. A run fails if one is not met."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Any] = Field(init=False)

    verdict: Literal["trusted"] | None = None
    """`trusted`: links and caps were what was asked for, as far as was measured, and this machine was fast enough. Not
    judged in a simulation, which measures none of that."""

    @cached_property
    def bounds(self) -> dict[str, Bound]:
        """Return the bounds by measure, once `problems` has found none."""
        return {name: _read(name, given) for name, given in self.__pydantic_extra__.items() if given is not None}

    def problems(self, known: Mapping[str, Measure]) -> Iterator[Problem]:
        """Yield what is wrong with measures and bounds; `known` are all that the trial may have."""
        for name in [name for name in self.__pydantic_extra__ if name not in known]:
            choice = choose(name, known)
            if f"final_{name}" in known:
                choice = choice._replace(meant=(f"final_{name}",))
            alike = choice._replace(allowed=tuple(difflib.get_close_matches(name, known, NEAR, 0.4)))
            told = f"{str(alike).replace('allowed', 'alike')}{self._whose(name, known)}"
            message = f"unknown measure; {told}; docs/scenario.md has all"
            yield Problem((name,), message, at_key=True, choice=choice)
        for name, given in self.__pydantic_extra__.items():
            if name in known and given is not None:
                try:
                    _read(name, given, known[name])
                except ValueError as error:
                    yield Problem((name,), str(error))

    def _whose(self, name: str, known: Mapping[str, Measure]) -> str:
        """Say whose measure it is, where there is one that this task has not."""
        return whose_told(name, known, lambda measures: (*of_task(measures), *of_clients(measures)))

    def of_others(self, family: Family) -> Iterator[tuple[str, str]]:
        """Yield each measure that trials of this family have not, and why."""
        for name in self.bounds:
            if name in MEASURES and MEASURES[name].family not in ("all", family):
                yield name, LACKS[family]

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the JSON schema, with a property for each measure."""
        found = super().__get_pydantic_json_schema__(schema, handler)
        section = handler.resolve_ref_schema(found)
        docs = {name: text for struct in STRUCTS.values() for name, text in attribute_docstrings(struct).items()}
        docs |= meanings(all_declared())
        if issubclass(cls, ProgramExpectations):
            docs |= attribute_docstrings(ProgramMeasures)
        measures, others = cls.declared()
        section["properties"] = {
            **{name: _schema_of(each, docs[name]) for name, each in measures.items()},
            **section["properties"],
        }
        section["additionalProperties"] = {"type": "string", "title": f"of a measure of {others}"}
        return found

    @classmethod
    def declared(cls) -> tuple[Mapping[str, Measure], str]:
        """Return the measures that are known beforehand, and what has others."""
        return all_measures(all_declared()), "an own objective"


class ProgramExpectations(Expectations):
    """What the outcome of a trial of programs is judged by: comparisons in quotes. A run fails if one is not met.

    Of each number that output tells there are three: `final_loss`, the last value; `min_loss` and `max_loss`.
    """

    def _whose(self, name: str, known: Mapping[str, Measure]) -> str:
        return ""

    @classmethod
    def declared(cls) -> tuple[Mapping[str, Measure], str]:
        """Return the measures that are known beforehand, and what has others."""
        return OF_PROGRAMS, "the program's output: final_NAME, min_NAME, max_NAME"


def _read(name: str, given: object, measure: Measure | None = None) -> Bound:
    unit = (measure or MEASURES.get(name) or OF_PROGRAMS.get(name) or Measure(NUMBER)).unit
    return read_bound(given, unit.read, unit.example)


def _schema_of(measure: Measure, text: str) -> dict[str, Any]:
    whose = {"shards": "Layer-wise training: ", "server": "Workers that push: "}.get(measure.family, "")
    return {
        "anyOf": [
            {
                "type": "string", "title": f"comparison with {measure.unit.name}",
                "pattern": f"^({'|'.join(COMPARISONS)}) *[^ ]+$", "examples": [measure.unit.example],
            },
            {"type": "null"},
        ],
        "default": None,
        "description": f"{whose}{text}",
    }  # fmt: skip


def _read_level(given: object) -> float:
    """A number, or a share in per cent."""
    if isinstance(given, str) and given.endswith("%"):
        return units.parse_percentage(given)
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise ValueError(f"not a number: {show(given)}")  # noqa: TRY004 - pydantic takes no other
    if not math.isfinite(given):
        raise ValueError(f"not a finite number: {show(given)}")
    return float(given)


def _level_schema(**limits: float) -> WithJsonSchema:
    percentage = {"type": "string", "title": "percentage", "pattern": units.PERCENTAGE_PATTERN}
    return WithJsonSchema({"anyOf": [{"type": "number", **limits}, percentage]})


LevelValue = Annotated[float, PlainValidator(_read_level), _level_schema()]
ShareValue = Annotated[float, PlainValidator(_read_level), _level_schema(exclusiveMinimum=0, maximum=1)]


LEVEL_KEYS = ("accuracy", "measure", "at", "window")


class LevelSection(Section):
    """A section with a value that a measure of the task is to reach."""

    not_here = MappingProxyType(
        {
            each.name: f"give the measure and its value; write measure: {each.name}, at: ..."
            for each in all_declared()
            if each.name != ACCURACY.name
        }
    )

    accuracy: ShareValue | None = None
    """The accuracy that is to be reached, e.g. 0.9: short for `measure: accuracy, at: 0.9`."""
    measure: str | None = None
    """The measure of the task's objective that is to be as good as `at`, e.g. `perplexity`."""
    at: LevelValue | None = None
    """The measure's value: at most this where less is better, and at least this where more is."""
    window: int = Field(default=1, ge=1)
    """Evaluations whose mean must reach the measure's value; with more, a single lucky one ends nothing."""

    @property
    def level(self) -> Level | None:
        """Return what is to be reached; None: nothing is given."""
        if self.accuracy is not None:
            return Level(ACCURACY.name, self.accuracy, self.window)
        return None if self.measure is None or self.at is None else Level(self.measure, self.at, self.window)

    @property
    def level_values(self) -> dict[str, Any]:
        """Return the keys that say so, with their values."""
        return {key: value for key in LEVEL_KEYS if (value := getattr(self, key)) is not None}

    @property
    def level_key(self) -> str:
        """Return the key of the value that is to be reached."""
        return ACCURACY.name if self.accuracy is not None else "at"

    @classmethod
    def contradictions(cls, given: Mapping[str, Any]) -> Iterable[Problem]:
        """Yield what is wrong with the choice of keys."""
        has = {key: given.get(key) is not None for key in (ACCURACY.name, "measure", "at")}
        if has["accuracy"] and (has["measure"] or has["at"]):
            other = "measure" if has["measure"] else "at"
            yield Problem((other,), "accuracy is short for a measure and its value; give one of the two", at_key=True)
        elif has["measure"] != has["at"]:
            lacks, there = ("at", "measure") if has["measure"] else ("measure", "at")
            what = "the value that it is to reach" if has["measure"] else "what is to reach that value"
            yield Problem((there,), f"give {lacks} as well: {what}", at_key=True)

    def level_problems(self, measures: Sequence[TaskMeasure]) -> Iterator[Problem]:
        """Yield what is wrong with the measure and its value for a task that measures this."""
        level, known = self.level, {each.name: each for each in measures}
        if level is None:
            return
        if level.measure not in known:
            choice = choose(level.measure, known)
            if self.accuracy is not None:
                message = f"the task measures no accuracy; write measure: {measures[0].name}, at: ...; {choice}"
                yield Problem((ACCURACY.name,), message, at_key=True, choice=choice)
            else:
                whose = whose_told(level.measure, known, lambda declared: (each.name for each in declared))
                message = f"unknown measure: {show(level.measure)}; {choice}{whose}"
                yield Problem(("measure",), message, choice=choice)
        elif known[level.measure].is_share and not 0.0 < level.value <= 1.0:
            hint = percent_hint(level.value)
            wrong = "is not above 0" if level.value <= 0.0 else f"is above 1{hint}"
            yield Problem((self.level_key,), f"{level.value:.10g} {wrong}")
