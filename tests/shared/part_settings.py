"""Settings to try a part with, made from its `Config`, so that a part that is added is tried without a word."""

import dataclasses
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal

NEEDED: dict[str, dict[str, Any]] = {"nesterov": {"momentum": 0.9}}
"""What a switch says nothing without."""


def variants(config: type, tried: Mapping[str, tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    """The defaults; each switch turned, each choice, and each of the numbers to be `tried`, one at a time.

    What a part refuses by the name of a setting is left out; of its defaults that is nothing.
    """
    for settings in _variants(config, tried):
        try:
            config(**settings)
        except ValueError as error:
            if str(error).partition(":")[0] not in settings:
                raise
        else:
            yield settings


def _variants(config: type, tried: Mapping[str, tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    types = typing.get_type_hints(config)
    yield {}
    for field in dataclasses.fields(config):
        declared = types[field.name]
        if declared is bool:
            yield {field.name: not field.default} | NEEDED.get(field.name, {})
        elif typing.get_origin(declared) is Literal and field.name != "name":
            yield from ({field.name: choice} for choice in typing.get_args(declared) if choice != field.default)
        else:
            yield from ({field.name: number} for number in tried.get(field.name, ()))
