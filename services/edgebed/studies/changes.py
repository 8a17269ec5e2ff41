"""What differs between the settings of two trials: the paths of what was set, with both values."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

Settings = Mapping[str, Any]
"""Nested mappings, lists and values, as a scenario is written."""
ABSENT = "not set"
TEXT_MAX = 60
"""Number of characters to which a value is cut where all is in a line."""


class SettingChange(msgspec.Struct, frozen=True, kw_only=True):
    """One setting that differs."""

    path: str
    """Path of the setting, e.g. `method.compression`."""
    before: str
    """The value before as a scenario writes it, in one line; ABSENT where it is not set."""
    after: str

    def __str__(self) -> str:
        """The change in a line, e.g. `task.batch_size: 10 → 20`; long values are cut."""
        return f"{self.path}: {_cut(self.before)} → {_cut(self.after)}"


def changes_between(before: Settings, after: Settings) -> tuple[SettingChange, ...]:
    """The settings that differ, in the order of `before`; as few as describe the difference.

    A part with another name differs as a whole, and so does a mapping that shares no key with the one before.
    """
    return tuple(
        SettingChange(path=".".join(path), before=value_text(one), after=value_text(other))
        for path, one, other in _differences(before, after, ())
    )


def value_text(value: Any) -> str:
    """A value in one line, e.g. `top-k {fraction: 0.1, scope: tensor}`."""
    return ABSENT if value is None else _flow(value)


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"


def _differences(one: Any, other: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    if isinstance(one, Mapping) and isinstance(other, Mapping) and (not path or _are_alike(one, other)):
        for key in (*one, *(key for key in other if key not in one)):
            yield from _differences(one.get(key), other.get(key), (*path, str(key)))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for place, (entry, entry_after) in enumerate(zip(one, other, strict=True)):
            yield from _differences(entry, entry_after, (*path, str(place)))
    elif one != other:
        yield path, one, other


def _are_alike(one: Settings, other: Settings) -> bool:
    """Whether the parts of two mappings are to be compared one by one."""
    return one.get("name") == other.get("name") and not one.keys().isdisjoint(other)


def _flow(value: Any) -> str:
    match value:
        case {"name": str(name), **rest}:
            return f"{name} {_flow(rest)}" if rest else name
        case Mapping():
            return f"{{{', '.join(f'{key}: {_flow(each)}' for key, each in value.items())}}}"
        case list():
            return f"[{', '.join(map(_flow, value))}]"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case _:
            return str(value)
