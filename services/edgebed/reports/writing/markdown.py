"""The few pieces that Markdown pages of results are made of, and the folder of their charts."""

from collections.abc import Sequence
from pathlib import Path

from edgebed.core.errors import InfrastructureError


def make_folder(folder: Path, name: str) -> Path:
    """Make the folder of a page's charts, beside the page; InfrastructureError where it cannot be made."""
    charts = folder / name
    try:
        charts.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InfrastructureError(f"{charts}: cannot be made: {error.strerror}; choose another --output") from error
    return charts


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with a heading; what stands in a cell is Markdown but for its bars."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def code_block(lines: Sequence[str]) -> str:
    """Commands of a shell, one a line."""
    return "\n".join(("```sh", *lines, "```"))
