"""What the sections of a scenario share: known keys alone, every mistake reported at once, and times with a unit."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    PlainSerializer,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from edgebed.scenario import units
from edgebed.scenario.problems import Problem, Problems, problems_of, show, unknown_keys


class Section(BaseModel):
    """A mapping of known keys. All its mistakes are reported together, unknown keys with the closest known one."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    not_here: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Keys of other sections that may be looked for here -> why there are none."""

    @model_validator(mode="wrap")
    @classmethod
    def _all_problems(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(given, cls):
            return given
        if not isinstance(given, dict):
            raise Problems([Problem((), f"not a mapping: {show(given)}; keys: {', '.join(cls.model_fields)}")])
        problems = unknown_keys(given, cls.model_fields, reasons=cls.not_here)
        try:
            section = handler({key: value for key, value in given.items() if key in cls.model_fields})
        except ValidationError as error:
            raise Problems([*problems, *problems_of(error)]) from None
        if problems:
            raise Problems(problems)
        return section


def of_pattern(title: str, pattern: str, *examples: str) -> WithJsonSchema:
    """The JSON schema of a text that has a form."""
    return WithJsonSchema({"type": "string", "title": title, "pattern": pattern, "examples": list(examples)})


def _above_zero(seconds: float) -> float:
    if seconds <= 0.0:
        raise ValueError("0s is not above 0s")
    return seconds


DurationFromZero = Annotated[
    float,
    PlainValidator(units.parse_duration),
    PlainSerializer(units.format_duration, return_type=str, when_used="json"),
    of_pattern("duration", units.DURATION_PATTERN, "500ms", "1m30s"),
]
Duration = Annotated[DurationFromZero, AfterValidator(_above_zero)]
