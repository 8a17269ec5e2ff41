"""What is typed for texts, paths and choices, taken as it is.

typer has pydantic convert every value, whose import takes longer than all else that a short command does. Numbers are
left to it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from typer._click.core import Context
from typer._click.exceptions import BadParameter
from typer._coercion import RuntimeParam

CONVERSIONS: dict[Any, Callable[[Any], Any]] = {
    bool: bool,
    str: str,
    Path: Path,
    list[str]: list,
    list[Path]: lambda typed: [Path(each) for each in typed],
}
"""What makes a value of each type that needs no check; a flag is a truth value already, or None."""


@dataclass(frozen=True)
class AsTyped(RuntimeParam):
    """The conversion of a parameter whose values need no check."""

    def _coerce_value(self, value: Any, param: Any, ctx: Context) -> Any:
        return CONVERSIONS[self.annotation](value)


@dataclass(frozen=True)
class OneOf(RuntimeParam):
    """The check of a parameter whose value is one of some words."""

    def _coerce_value(self, value: Any, param: Any, ctx: Context) -> Any:
        choices = get_args(self.annotation)
        if value not in choices:
            raise BadParameter(f"{value!r} is not one of {', '.join(map(repr, choices))}.", ctx=ctx, param=param)
        return value


def take_as_typed(params: Iterable[Any]) -> None:
    """Have typer take these parameters as they are typed, where nothing but the choice of a word can be wrong.

    What converts a value is made at its first use, unless it is there already.
    """
    for param in params:
        described = param.type_descriptor
        kind = OneOf if get_origin(described.annotation) is Literal else AsTyped
        if kind is OneOf or described.annotation in CONVERSIONS:
            param._runtime_param = kind(described.parameter_info, described.annotation)  # noqa: SLF001 - typer has no other way
