"""Parts of a page in a terminal, or in a file: lines, and tables as wide as fit.

In a file no column of a table is left out, unless the environment says how many columns there are.
"""

import os
import re
from collections.abc import Iterable, Sequence
from typing import Literal

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text as RichText

from edgebed.core.quantities import UNMEASURED
from edgebed.reports.writing.page import (
    Bars,
    Facts,
    Grid,
    Listing,
    Notes,
    Paragraph,
    Part,
    Prose,
    Section,
    Sketch,
    Span,
    Text,
    plain,
    shade_of,
    shown,
    spans,
)

STYLES = {"good": "green", "bad": "red", "unknown": "yellow", "quiet": "dim", "strong": "bold", "emphasis": "italic"}
"""Styles by mark."""
LEADS = {"good": "✓ ", "bad": "! ", "unknown": "! ", "quiet": ""}
"""What stands before the lines of a list, by their shade."""
NOTES_MAX = 12
"""Lines of a list; the page has the rest."""
SKETCH_MAX = 100
"""Columns of a chart of characters."""
GAP = 2
"""Characters between two columns of a table."""
FLEXIBLE_MIN = 8
"""Least width of a column that may be cut, in characters."""
NUMBER = re.compile(r"[-+±≈<>]? ?\d")


def show(parts: Iterable[Part], console: Console) -> None:
    """Print the parts, one below the other, with an empty line between two sections; figures are for pages alone."""
    for place, part in enumerate(shown(parts)):
        match part:
            case Paragraph(text) | Prose(text):
                _print(text, console)
            case Notes() | Facts() | Bars():
                _print_notes(part.lines, console)
            case Listing(lines):
                _print("\n".join(lines), console)
            case Grid():
                _print_grid(part, console)
            case Sketch(draw):
                has_colours = console.color_system is not None and not console.no_color
                drawn = draw(min(console.width, SKETCH_MAX), has_colours)
                console.print(RichText.from_ansi(drawn), no_wrap=True, crop=False)
            case Section(title, inner):
                if place:
                    console.print()
                _print(Span(title, "strong"), console)
                show(inner, console)


def _print(text: Text, console: Console) -> None:
    console.print(_rich(text), soft_wrap=True)


def _print_notes(lines: Sequence[Text], console: Console) -> None:
    told = lines if len(lines) <= NOTES_MAX + 1 else lines[:NOTES_MAX]
    for line in told:
        _print((Span(LEADS.get(shade_of(line) or "", "  "), shade_of(line)), *spans(line)), console)
    if len(told) < len(lines):
        _print(Span(f"{len(lines) - len(told)} more on the page", "quiet"), console)


def _rich(text: Text) -> RichText:
    return RichText.assemble(*((span.text, STYLES.get(span.mark or "", "")) for span in spans(text)))


def _print_grid(grid: Grid, console: Console) -> None:
    """Print a table of the columns that fit, or where even those that have to stay do not, a block of lines a row."""
    cells = [list(map(plain, row)) for row in (grid.head, *grid.rows)]
    columns = list(zip(*cells, strict=True))
    widths = [max(map(len, column)) for column in columns]
    width = console.width
    if not console.is_terminal and "COLUMNS" not in os.environ:
        width = max(width, _total(widths))
    cut = grid.head.index(grid.flexible) if grid.flexible else -1
    least = [min(size, FLEXIBLE_MIN) if place == cut else size for place, size in enumerate(widths)]
    kept = list(range(len(columns)))
    for name in grid.dispensable:
        if _total([least[place] for place in kept]) > width and name in grid.head:
            kept.remove(grid.head.index(name))
    spare = width - _total([least[place] for place in kept])
    if spare < 0:
        for first, *others in cells:
            _print(first, console)
            console.print(Padding(RichText(" | ".join(others), style="dim"), (0, 0, 0, GAP)))
        return
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, collapse_padding=True, pad_edge=False)
    for place in kept:
        table.add_column(RichText(cells[0][place]), justify=_side(columns[place][1:]), no_wrap=True)
    for row, texts in zip(grid.rows, cells[1:], strict=True):
        table.add_row(*(
            RichText(_shortened(texts[place], least[place] + spare)) if place == cut else _rich(row[place])
            for place in kept
        ))  # fmt: skip
    before, console.width = console.width, width
    console.print(table)
    console.width = before


def _side(column: Sequence[str]) -> Literal["left", "right"]:
    """The side of a column's texts: numbers are on the right."""
    return "right" if all(text in ("", UNMEASURED) or NUMBER.match(text) for text in column) else "left"


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
