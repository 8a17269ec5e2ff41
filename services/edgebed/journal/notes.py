"""The controller's notes as a person wants to read them at the end of a run; the journals keep every one."""

import re
from collections.abc import Collection, Iterable

TOO_LATE = re.compile(r"refused .*: the trial is over")
"""A note on a node that came up while the others were being stopped."""


def gathered_notes(notes: Iterable[str], nodes: Collection[str]) -> list[str]:
    """Notes that are worth reading, in order; of notes that differ in the name of one of `nodes` alone, the first.

    The first of several says how many there were: `refused edge-0~f00d: … (and 5 like it)`.
    """
    names = "|".join(map(re.escape, nodes))
    node = re.compile(rf"(?<=^refused )\S+(?=:)|(?<![\w-])(?:{names})(?![\w-])")  # an identity, or a name
    alike: dict[str, list[str]] = {}
    for note in notes:
        if not TOO_LATE.fullmatch(note):
            alike.setdefault(node.sub("", note), []).append(note)
    return [f"{first} (and {len(others)} like it)" if others else first for first, *others in alike.values()]
