"""What a test compares with a file, and writes anew with `UPDATE_GOLDENS=1`, so that `git diff` shows what changed."""

import os
from pathlib import Path

UPDATING = os.environ.get("UPDATE_GOLDENS") == "1"
"""Whether what is found takes the place of what was expected."""


def compare(found: str, golden: Path) -> None:
    """Fail unless `found` is what the file holds."""
    if UPDATING:
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8"), f"{golden} says otherwise; UPDATE_GOLDENS=1 writes it anew"
