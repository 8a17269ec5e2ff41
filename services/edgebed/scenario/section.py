"""What the sections of a scenario share: known keys alone, all mistakes reported at once, quantities with a unit."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Self

from annotated_types import GroupedMetadata
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    PlainSerializer,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema

from edgebed.core import units
from edgebed.scenario.docstrings import attribute_docstrings
from edgebed.scenario.mistakes.problems import Problem, Problems, not_a, problems_of, show, unknown_keys

FOLDER = "folder"
"""Key of the validation context: the folder that paths in a scenario are relative to."""


def folder_of(info: ValidationInfo) -> Path:
    """Return the folder that paths are relative to."""
    folder: Path = (info.context or {}).get(FOLDER, Path())
    return folder


def file_name(given: object, allowed: str) -> str:
    """Return the name of a file that was given; ValueError, with what is `allowed`, where it is none."""
    if not isinstance(given, str) or not given:
        raise ValueError(f"not the name of a file: {show(given)}; {allowed}")
    return given


class Section(BaseModel):
    """A mapping of known keys. All its mistakes are reported together, unknown keys with the closest known one."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False,
        serialize_by_alias=True, defer_build=True,
    )  # fmt: skip

    not_here: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Keys of other sections that may be looked for here -> why there are none."""

    @classmethod
    def known_keys(cls) -> tuple[str, ...]:
        """Return the keys as a scenario writes them, where some are Python's own words, as `for` is."""
        return tuple(field.alias or name for name, field in cls.model_fields.items())

    @classmethod
    def contradictions(cls, given: Mapping[str, Any]) -> Iterable[Problem]:
        """Yield what is wrong with the choice of keys, whatever their values; reported beside mistakes in those."""
        return ()

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the JSON schema of the section, with the texts below its fields."""
        found = handler(schema)
        properties, docs = handler.resolve_ref_schema(found).get("properties", {}), attribute_docstrings(cls)
        for name, field in cls.model_fields.items():
            if name in docs and (key := field.alias or name) in properties:
                properties[key].setdefault("description", docs[name])
        return found

    @model_validator(mode="wrap")
    @classmethod
    def _all_problems(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(given, cls):
            return given
        if not isinstance(given, dict):
            raise Problems([Problem((), f"{not_a('mapping', given)}; keys: {', '.join(cls.known_keys())}")])
        is_open = cls.model_config.get("extra") == "allow"
        reasons = {key: why for key, why in cls.not_here.items() if key in given}
        problems = unknown_keys(reasons if is_open else given, cls.known_keys(), reasons=cls.not_here)
        problems += cls.contradictions(given)
        try:
            section = handler({key: value for key, value in given.items() if is_open or key in cls.known_keys()})
        except ValidationError as error:
            raise Problems([*problems, *problems_of(error)]) from None
        if problems:
            raise Problems(problems)
        return section


class LazyJsonSchema:
    """Annotation that gives a type a JSON schema, which is made when it is asked for."""

    def __init__(self, make: Callable[[], dict[str, Any]]) -> None:
        self.make = make

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return self.make()


def of_pattern(title: str, pattern: str, *examples: str) -> WithJsonSchema:
    """Return the JSON schema of a text that has a form."""
    return WithJsonSchema({"type": "string", "title": title, "pattern": pattern, "examples": list(examples)})


@dataclass(frozen=True)
class Form(GroupedMetadata):
    """How a value of a scenario is written: annotates its type."""

    read: Callable[..., Any]
    """Makes the value of what was given, and perhaps of the validation's context; ValueError says what is allowed."""
    write: Callable[[Any], Any]
    """Returns what reads as the value."""
    schema: Any
    """Annotation that gives the JSON schema."""

    def __iter__(self) -> Iterator[Any]:
        """Yield the annotations that pydantic knows."""
        yield from (PlainValidator(self.read), PlainSerializer(self.write, when_used="json"), self.schema)


def _above_zero(seconds: float) -> float:
    if seconds <= 0.0:
        raise ValueError("0s is not above 0s")
    return seconds


DurationFromZero = Annotated[
    float,
    Form(units.parse_duration, units.format_duration, of_pattern("duration", units.DURATION_PATTERN, "500ms", "1m30s")),
]
Duration = Annotated[DurationFromZero, AfterValidator(_above_zero)]
Memory = Annotated[
    int,
    Form(units.parse_memory, units.format_memory, of_pattern("memory size", units.MEMORY_PATTERN, "512MiB", "1GiB")),
]
