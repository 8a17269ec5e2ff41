"""What a test compares with a file, and writes anew with `UPDATE_GOLDENS=1`, so that `git diff` shows what changed."""

import difflib
import os
from collections.abc import Mapping
from pathlib import Path

UPDATING = os.environ.get("UPDATE_GOLDENS") == "1"
"""Whether what is found takes the place of what was expected."""


def compare(found: str, golden: Path) -> None:
    """Fail unless `found` is what the file holds."""
    if UPDATING:
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8"), f"{golden} says otherwise; UPDATE_GOLDENS=1 writes it anew"


def with_changes(text: str, changed: Mapping[str, str]) -> str:
    """A text, and for each other one the lines that it has instead, or lacks with none in their place."""
    parts, lines = [text.rstrip()], text.splitlines()
    for name, other in changed.items():
        parts.append(f"=== {name}")
        others = other.splitlines()
        for kind, first, last, begin, end in difflib.SequenceMatcher(None, lines, others, False).get_opcodes():
            if kind == "delete":
                gone = [line for line in lines[first:last] if line]
                parts += [f"- {line}" for line in gone[:2]] + [f"- and {len(gone) - 2} lines more"] * (len(gone) > 2)
            elif kind != "equal":
                parts += [f"+ {line}" for line in others[begin:end] if line]
    return "\n".join(parts) + "\n"
