"""Merging: a variant into the scenario, and `--set` options into everything.

Mappings merge key by key, anything else replaces what was there, and `null` takes a key away. Two exceptions: values
with several forms (`task.split`, `waiting`) are replaced as a whole, and a method that names another preset, or a part
with another name, brings nothing of the old one along.
"""

import io
from collections.abc import Iterable, Sequence
from typing import Any

from edgebed.algorithms.registry import KINDS
from edgebed.errors import ScenarioError
from edgebed.scenario import source
from edgebed.scenario.methods import part_name
from edgebed.scenario.source import Node, Place

WHOLE = (("task", "split"), ("fleet", "*", "waiting"))
NAMED = ("fleet", "variants")
"""Mappings whose keys are names the user chose."""


def merge(base: Node, over: Node, path: tuple[str, ...] = ()) -> Node:
    """`over` laid over `base`; both stand at `path` of a trial. Nodes keep the place they came from."""
    if path == ("method",):
        return _merge_method(_spelled(base), _spelled(over))
    if not isinstance(base.value, dict) or not isinstance(over.value, dict) or _is_whole(path):
        return over
    merged: dict[str, Node] = dict(base.value)
    for key, child in over.items():
        if key not in merged:
            merged[key] = child
        elif child.value is None:
            del merged[key]
        else:
            merged[key] = merge(merged[key], child, (*path, key))
    return base._replace(value=merged)


def parse_set(option: str) -> tuple[tuple[str, ...], Node]:
    """`a.b.c=value` -> its keys, and a tree that holds nothing but the value; ScenarioError if it is not of that form.

    The value is read as YAML, so `{uniform: [0s, 1s]}` is a mapping and `null` takes the key away.
    """
    place = Place(f"--set {option}")
    text, equals, value = option.partition("=")
    keys = tuple(key.strip() for key in text.split("."))
    if not equals or not all(keys):
        raise ScenarioError(f"{place}: not of the form a.b.c=value, e.g. --set fleet.edge.count=8.")
    leaf = source.from_plain(_plain(source.parse(value, str(place))), place, keys)
    tree = leaf
    for depth in range(len(keys) - 1, -1, -1):
        tree = Node({keys[depth]: tree}, place, keys[:depth], place)
    return keys, tree


def apply_sets(base: Node, sets: Iterable[Node]) -> Node:
    """All `--set` trees laid over `base`, in order."""
    for tree in sets:
        base = merge(base, tree)
    return base


def refuse_new_names(base: Node, keys: Sequence[str]) -> str:
    """What is wrong with setting `keys` in `base`, if they would make half of a new class or variant by mistake."""
    for depth, key in enumerate(keys[:-1]):
        if key in NAMED and len(keys) > depth + 2:
            parent, missing = base.descend(keys[: depth + 1])
            names = [name for name, _ in parent.items()]
            if not missing and keys[depth + 1] not in names:
                path = ".".join(keys[: depth + 2])
                return f"there is no {path}; {key} has {', '.join(names) or 'nothing'}. A new one: --set {path}={{...}}"
    return ""
