"""Merging: a variant into the scenario, and `--set` options into everything.

Mappings merge key by key, and into a list by the places of its entries; anything else replaces what was there, and
`null` takes a key away, a section also where there is none. Two exceptions: values with several forms (`task.split`,
`waiting`) are replaced as a whole, and a method that names another preset, or a part with another name, brings nothing
of the old one along. Options that name presets or parts are therefore laid first: the order in which options are given
decides only between two that set the same key.
"""

import functools
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from edgebed.algorithms.registry import KINDS
from edgebed.core.errors import OPTION, Place, ScenarioError
from edgebed.scenario import source
from edgebed.scenario.methods import part_name
from edgebed.scenario.source import SourceNode

PLAIN = re.compile(r"[A-Za-z_][\w./:-]*[\w]|[0-9.]+[a-zA-Z]+", re.ASCII)
"""Texts that YAML reads as they are, such as names, import paths, rates and times; others are put into quotes."""
WORDS = {"null", "true", "false"}
OPTIONS_KEPT = 256
"""Options that are not parsed again."""
WHOLE = (("task", "split"), ("fleet", "*", "waiting"))  # paths of the mappings that are a choice of one key

Settings: TypeAlias = Mapping[str, Any] | Sequence[str]
"""Overrides as Python gives them: values by their dotted keys, `{"fleet.edge.count": 8}`, or options as text,
`["fleet.edge.count=8"]`."""


class Option(NamedTuple):
    """A `--set` option that changes trials."""

    variant: str | None
    """Variant that the option is for; None: all."""
    keys: tuple[str, ...]
    """Path of the option within a trial."""
    tree: SourceNode
    """Tree of a trial with nothing but the option's value in it."""

    @property
    def rank(self) -> tuple[int, bool]:
        """Rank by which options are laid over a trial; options of the same rank are laid as on the command line.

        First comes what replaces the whole method (a preset), then a part (its name), then what replaces nothing, so
        that nothing another option says is lost; what is for one variant after what is for all. Outside of the method
        an option replaces only what it names.
        """
        method = _spelled(self.tree.descend(("method",))[0]).plain() if self.keys[0] == "method" else None
        if not isinstance(method, dict) or "preset" in method:
            replaced = 0
        else:
            replaced = 1 if any(isinstance(part, dict) and "name" in part for part in method.values()) else 2
        return replaced, self.variant is not None

    @property
    def is_within_class(self) -> bool:
        """Whether the option is a setting of a device class, which has to exist."""
        return self.keys[0] == "fleet" and len(self.keys) > 2

    def is_within(self, path: Sequence[str]) -> bool:
        """Whether the option sets what is at `path` of a trial, or something in it."""
        return self.keys[: len(path)] == tuple(path)

    @property
    def leaf(self) -> SourceNode:
        """Return the option's value."""
        return self.tree.descend(self.keys)[0]


def merge(base: SourceNode, over: SourceNode, path: tuple[str, ...] = ()) -> SourceNode:
    """Lay `over` over `base`; both stand at `path` of a trial. Every node keeps the place it came from."""
    if path == ("method",):
        return _merge_method(_spelled(base), _spelled(over))
    if isinstance(base.value, list) and _is_by_place(over, len(base.value)):
        changes = {int(key): child for key, child in over.items()}
        items = [
            merge(item, changes[k], (*path, str(k))) if k in changes else item for k, item in enumerate(base.value)
        ]
        return base._replace(value=items)
    if not isinstance(base.value, dict) or not isinstance(over.value, dict) or is_whole(path):
        return over
    merged: dict[str, SourceNode] = dict(base.value)
    for key, child in over.items():
        if child.value is None and (key in merged or not path):  # whole sections are known by their names
            merged.pop(key, None)
        elif key not in merged:
            merged[key] = child
        else:
            merged[key] = merge(merged[key], child, (*path, key))
    return base._replace(value=merged)


def _is_by_place(over: SourceNode, length: int) -> bool:
    """Whether `over` changes entries of a list by their places, from 0, e.g. `{0: {at: 5s}}`."""
    keys = [key for key, _ in over.items()]
    return bool(keys) and all(key.isdecimal() and int(key) < length for key in keys)


def options_of(settings: Settings) -> tuple[str, ...]:
    """The `--set` options that say the same; ScenarioError where `settings` are one string, or hold what no file can.

    A key may be dotted; its value, a mapping too, is merged as that of an option.
    """
    if isinstance(settings, str):
        key, _, value = settings.partition("=")
        raise ScenarioError(
            f"set: {settings!r} is one string; give a mapping, e.g. {{'{key}': {value or 8}}}, or a list of strings"
        )
    if not isinstance(settings, Mapping):
        return tuple(settings)
    return tuple(f"{key}={_flow(_plain(key, value))}" for key, value in settings.items())


def _plain(key: str, value: object) -> Any:
    return source.from_plain(value, Place("set"), tuple(str(key).split("."))).plain()


def _flow(value: Any) -> str:
    """A plain value as YAML on one line, which reads as the same value."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(key)}: {_flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, str):
        return value if PLAIN.fullmatch(value) and value.lower() not in WORDS else _quoted(value)
    raise ScenarioError(f"set: {value!r} is a {type(value).__name__}; give a number, a text, a list or a mapping")


def _quoted(text: str) -> str:
    """A text in double quotes; what cannot be printed is escaped as YAML escapes it."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in quoted)


@functools.lru_cache(OPTIONS_KEPT)
def parse_set(option: str) -> tuple[tuple[str, ...], SourceNode]:
    """`a.b.c=value` -> its keys, and the tree `{a: {b: {c: value}}}`; ScenarioError if it is not of that form.

    The value is read as YAML, so `{uniform: [0s, 1s]}` is a mapping and `null` takes the key away.
    """
    place = Place(f"{OPTION}{option}")
    text, equals, value = option.partition("=")
    keys = tuple(key.strip() for key in text.split("."))
    if not equals or not all(keys):
        raise ScenarioError(f"{place}: not of the form a.b.c=value, e.g. --set fleet.edge.count=8.")
    return keys, nest(source.from_plain(source.parse(value, str(place), lines=False), place, keys), keys)


def nest(leaf: SourceNode, keys: Sequence[str]) -> SourceNode:
    """Return the tree that holds nothing but `leaf`, at `keys`."""
    for depth in range(len(keys) - 1, -1, -1):
        leaf = SourceNode({keys[depth]: leaf}, leaf.place, tuple(keys[:depth]), leaf.place)
    return leaf


def is_whole(path: Sequence[str]) -> bool:
    """Whether the value at `path` of a trial is a choice, which is replaced as a whole."""
    return any(
        len(path) == len(whole) and all(key in ("*", given) for key, given in zip(whole, path, strict=True))
        for whole in WHOLE
    )


def _merge_method(base: SourceNode, over: SourceNode) -> SourceNode:
    if not isinstance(base.value, dict) or not isinstance(over.value, dict):
        return over
    before, after = base.plain(), over.plain()
    if after.get("preset") is not None and after["preset"] != before.get("preset"):
        return over
    merged: dict[str, SourceNode] = dict(base.value)
    for key, child in over.items():
        new_name = child.plain().get("name") if key in KINDS and isinstance(child.value, dict) else None
        if key not in merged or (new_name is not None and new_name != part_name(key, before)):
            merged[key] = child
        elif child.value is None:
            del merged[key]
        else:
            merged[key] = merge(merged[key], child, ("method", key))
    return base._replace(value=merged)


def _spelled(method: SourceNode) -> SourceNode:
    """`method: asgd` as `method: {preset: asgd}`, and a part's name alone as `{name: ...}`."""
    if isinstance(method.value, str):
        return method._replace(value={"preset": method})
    if not isinstance(method.value, dict):
        return method
    parts = {
        key: part._replace(value={"name": part}) if key in KINDS and isinstance(part.value, str) else part
        for key, part in method.value.items()
    }
    return method._replace(value=parts)
