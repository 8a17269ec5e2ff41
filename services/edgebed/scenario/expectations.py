"""Sections whose keys are measures: what is expected of a trial, and the value of a measure at which something ends.

Expectations may name any number that `core/measures/trial.py` declares, and what the task's objective declares. Which
measures there are is known where the task is: such keys are looked at there.
"""

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from pydantic import ConfigDict, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from edgebed.algorithms.shares import percent_hint
from edgebed.core import units
from edgebed.core.measures.measure import NUMBER, Family, Measure
from edgebed.core.measures.task import Level, TaskMeasure
from edgebed.core.measures.trial import MEASURES, STRUCTS, all_measures, meanings
from edgebed.learning.objectives.registry import declared
from edgebed.scenario.choices import COMPARISONS, Bound, read_bound
from edgebed.scenario.docstrings import attribute_docstrings
from edgebed.scenario.mistakes.problems import Problem, choose, show, unknown_keys
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
            alike = choice._replace(allowed=tuple(difflib.get_close_matches(name, known, NEAR, 0.4)))
            message = f"unknown measure; {str(alike).replace('allowed', 'alike')}; docs/scenario.md has all"
            yield Problem((name,), message, at_key=True, choice=choice)
        for name, given in self.__pydantic_extra__.items():
            if name in known and given is not None:
                try:
                    _read(name, given, known[name])
                except ValueError as error:
                    yield Problem((name,), str(error))

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
        docs |= meanings(declared(()))
        section["properties"] = {
            **{name: _schema_of(each, docs[name]) for name, each in all_measures(declared(())).items()},
            **section["properties"],
        }
        section["additionalProperties"] = {"type": "string", "title": "of a measure of an own objective"}
        return found


def _read(name: str, given: object, measure: Measure | None = None) -> Bound:
    unit = (measure or MEASURES.get(name, Measure(NUMBER))).unit
    return read_bound(given, unit.read, unit.example)


def _schema_of(measure: Measure, text: str) -> dict[str, Any]:
    whose = {"shards": "Layer-wise training: ", "server": "Workers that push: ", "all": ""}[measure.family]
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


class LevelSection(Section):
    """A section whose other keys are measures of the task."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Any] = Field(init=False)

    window: int = Field(default=1, ge=1)
    """Evaluations whose mean must reach the measure's value; with more, a single lucky one ends nothing."""

    @property
    def given_levels(self) -> dict[str, Any]:
        """Return the values by measure, as they are given; also a key with which its value has grown together."""
        return {name: value for name, value in self.__pydantic_extra__.items() if value is not None or ":" in name}

    @property
    def level(self) -> Level | None:
        """Return what is to be reached; None: nothing is given."""
        for name, value in self.given_levels.items():
            return Level(name, units.parse_percentage(value) if isinstance(value, str) else float(value), self.window)
        return None

    def level_problems(self, measures: Sequence[TaskMeasure]) -> Iterator[Problem]:
        """Yield what is wrong with the key and its value for a task that measures this."""
        known = {each.name: each for each in measures}
        for name, value in self.given_levels.items():
            if name not in known:
                keys = [key for key in self.known_keys() if key != "window"]
                yield from unknown_keys({name: value}, (*keys, *known, "window"))
            elif len(self.given_levels) > 1:
                yield Problem((name,), f"one of several values; give one of {', '.join(known)}", at_key=True)
            elif problem := _wrong(value, is_share=known[name].unit == "share"):
                yield Problem((name,), problem)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the JSON schema with the measures of built-in objectives."""
        found = super().__get_pydantic_json_schema__(schema, handler)
        section = handler.resolve_ref_schema(found)
        section["additionalProperties"] = {"type": ["number", "string"], "title": "a measure of an own objective"}
        window = section["properties"].pop("window")
        for each in declared(()):
            limits = {"exclusiveMinimum": 0, "maximum": 1} if each.unit == "share" else {}
            section["properties"][each.name] = {"type": "number", "description": each.meaning, **limits}
        section["properties"]["window"] = window
        return found


def _wrong(value: object, *, is_share: bool) -> str:
    """Say what is wrong with a value that is to be reached; empty if nothing is."""
    if isinstance(value, str) and is_share:
        try:
            value = units.parse_percentage(value)
        except ValueError as error:
            return str(error)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"not a number: {show(value)}"
    if not math.isfinite(value):
        return f"not a finite number: {show(value)}"
    if is_share and value <= 0.0:
        return f"{value} is not above 0"
    return f"{value} is above 1{percent_hint(value)}" if is_share and value > 1.0 else ""
