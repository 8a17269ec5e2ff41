"""Writes the documents that are generated from the code, or those that are named: `python -m docs.generate [PATH...]`.

It is run in the repository's root. A document that cannot be made leaves all as they were.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from docs.generate import exporting, methods, metrics, protocol, public, scenario
from edgebed.learning.models import examined

ROOT = Path(__file__).parents[2]
DOCUMENTS: dict[str, Callable[[], str]] = {
    "services/edgebed/learning/models/examined.jsonl": examined.file_text,
    "docs/methods.md": methods.markdown,
    "docs/commands.md": public.commands,
    "docs/python.md": public.python,
    "docs/metrics.md": metrics.markdown,
    "docs/protocol.md": protocol.markdown,
    "docs/exporting.md": exporting.markdown,
    "docs/scenario.md": scenario.markdown,
    "schema/scenario.schema.json": scenario.json_schema,
}
"""What makes each, by its path."""

if __name__ == "__main__":
    made = {path: make() for path, make in DOCUMENTS.items() if path in (sys.argv[1:] or DOCUMENTS)}
    for path, text in made.items():
        (ROOT / path).write_text(text, encoding="utf-8")
