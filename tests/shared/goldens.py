"""What a test compares with a file, and writes anew with `UPDATE_GOLDENS=1`, so that `git diff` shows what changed."""

import difflib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

UPDATING = os.environ.get("UPDATE_GOLDENS") == "1"
"""Whether what is found takes the place of what was expected."""


def compare(found: str, golden: Path) -> None:
    """Fail unless `found` is what the file holds."""
    if UPDATING:
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8"), f"{golden} says otherwise; UPDATE_GOLDENS=1 writes it anew"


def changes(text: str, other: str) -> list[str]:
    """The lines that another text has instead, and how many it lacks with none in their place."""
    lines, others, found = text.splitlines(), other.splitlines(), []
    for kind, first, last, begin, end in difflib.SequenceMatcher(None, lines, others, False).get_opcodes():
        if kind == "delete":
            gone = [line for line in lines[first:last] if line]
            found += [f"- {line}" for line in gone[:1]] + [f"- and {len(gone) - 1} lines more"] * (len(gone) > 1)
        elif kind != "equal":
            found += [f"+ {line}" for line in others[begin:end] if line]
    return found


def sections(changed: Mapping[str, Sequence[str]]) -> str:
    """Lines of each name below it."""
    return "".join(f"\n=== {name}" + "".join(f"\n{line}" for line in lines) for name, lines in changed.items()) + "\n"
