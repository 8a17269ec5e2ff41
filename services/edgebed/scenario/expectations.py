"""What is expected of a trial: bounds on any of its measures, in their units, and the verdict on its conditions.

The keys are the names of `core/measures/trial.py`; what is declared there can be expected.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Literal

from pydantic import ConfigDict, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from edgebed.core.measures.measure import NUMBER, Family, Measure
from edgebed.core.measures.trial import MEASURES, STRUCTS, all_measures, meanings
from edgebed.learning.objectives.registry import declared
from edgebed.scenario.choices import COMPARISONS, Bound, read_bound
from edgebed.scenario.docstrings import attribute_docstrings
from edgebed.scenario.problems import Problem, unknown_keys
from edgebed.scenario.section import Section

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
        yield from unknown_keys(self.__pydantic_extra__, (*known, "verdict"), "measure")
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
