"""A section that has a measure of the task among its keys, with the value of it that is to be reached.

Which measures there are, the task's objective says; so such keys are looked at where the task is known.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import ConfigDict, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from edgebed.algorithms.shares import percent_hint
from edgebed.core import units
from edgebed.core.measures.task import Level, TaskMeasure
from edgebed.learning.objectives.registry import declared
from edgebed.scenario.problems import Problem, show, unknown_keys
from edgebed.scenario.section import Section


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
    if is_share and value <= 0.0:
        return f"{value} is not above 0"
    return f"{value} is above 1{percent_hint(value)}" if is_share and value > 1.0 else ""
