"""What is typed for texts and paths, taken as it is.

typer has pydantic convert every value, whose import takes longer than all else that a short command does. Numbers and
choices, which can be wrong, are left to it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer._click.core import Context
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


def take_as_typed(params: Iterable[Any]) -> None:
    """Have typer take these parameters as they are typed, where nothing about them can be wrong.

    What converts a value is made at its first use, unless it is there already.
    """
    for param in params:
        described = param.type_descriptor
        if described.annotation in CONVERSIONS:
            param._runtime_param = AsTyped(described.parameter_info, described.annotation)  # noqa: SLF001 - typer has no other way
