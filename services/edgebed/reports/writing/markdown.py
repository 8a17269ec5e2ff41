"""A page in Markdown for repositories, with its charts beside it; and the folder that has these and the HTML."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote

from edgebed.core.errors import InfrastructureError
from edgebed.journal.run_folder import write_atomically
from edgebed.reports.writing.figures import Chart
from edgebed.reports.writing.html import to_html
from edgebed.reports.writing.page import (
    Bars,
    Facts,
    Figures,
    Grid,
    Listing,
    Notes,
    Page,
    Paragraph,
    Part,
    Prose,
    Section,
    Sketch,
    Span,
    Text,
    shown,
    spans,
)

BLANKS = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029]+")
SPECIAL = re.compile(r"[\\`*\[\]<>|~]|_(?![^\W_])|(?<![^\W_])_|&(?=[#\w])|(?<!\S)#")
"""What Markdown may take for markup anywhere in a line; a backslash before it prevents that."""
LEADING = re.compile(r"^(\d*)([-+.)])(?=[-+ ]|$)")
"""What it may take for an item of a list, or a rule, at the start of a line."""
FENCES = {"strong": "**", "emphasis": "*"}


def make_folder(folder: Path, name: str) -> Path:
    """Make the folder of a page's charts, beside the page; InfrastructureError where it cannot be made."""
    charts = folder / name
    try:
        charts.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InfrastructureError(f"{charts}: cannot be made: {error.strerror}; choose another --output") from error
    return charts


def write(page: Page, folder: Path) -> Path:
    """Write `<name>.md`, `<name>.html` and `<name>/<chart>.svg` into `folder`; return the HTML file's path.

    Raises InfrastructureError where that is impossible.
    """
    make_folder(folder, page.name)
    for chart in page.charts:
        write_atomically(folder / page.name / f"{chart.name}.svg", chart.svg_file, "--output")
    write_atomically(folder / f"{page.name}.md", to_markdown(page).encode(), "--output")
    place = folder / f"{page.name}.html"
    write_atomically(place, to_html(page).encode(), "--output")
    return place


def to_markdown(page: Page) -> str:
    """The whole page."""
    status = Paragraph(Span(page.status.text, "strong")) if page.status else Paragraph("")
    body = _parts((Paragraph(page.heading), status, *page.lead, *page.parts), page, 2)
    return f"# {_line(page.title or page.name)}\n\n{body}\n"


def _parts(parts: Iterable[Part], page: Page, level: int) -> str:
    return "\n\n".join(filter(None, (_part(part, page, level) for part in shown(parts))))


def _part(part: Part, page: Page, level: int) -> str:
    match part:
        case Paragraph(text):
            return _line(text)
        case Prose(text):
            return text.strip()
        case Notes() | Facts() | Bars():
            return "\n".join(f"- {_line(line)}" for line in part.lines)
        case Grid():
            return _table(part)
        case Figures(charts, folder):
            place = folder or page.name
            return "\n\n".join(f"![{_line(each.title)}]({_file(place, each)})" for each in charts if each.svg)
        case Listing(lines, language):
            return _listing(lines, language)
        case Section(title, parts):
            return f"{'#' * level} {_line(title)}\n\n{_parts(parts, page, level + 1)}"
        case Sketch():
            return ""


def _file(folder: str, chart: Chart) -> str:
    return f"{quote(folder)}/{chart.name}.svg"


def _table(grid: Grid) -> str:
    lines = [[_inline(cell) for cell in row] for row in (grid.head, *grid.rows)]
    lines.insert(1, ["---"] * len(grid.head))
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _listing(lines: Sequence[str], language: str) -> str:
    fence = _fence("\n".join(lines), 3)
    return "\n".join((fence + language, *lines, fence))


def _line(text: Text) -> str:
    """A text that begins a line."""
    return LEADING.sub(r"\1\\\2", _inline(text))


def _inline(text: Text) -> str:
    return "".join(map(_span, spans(text))).strip(" ")


def _span(span: Span) -> str:
    text = BLANKS.sub(" ", span.text)
    if span.mark == "code" and text.strip():
        fence = _fence(text, 1)
        space = " " if len(fence) > 1 else ""
        return f"{fence}{space}{text.strip()}{space}{fence}".replace("|", "\\|")
    written = SPECIAL.sub(r"\\\g<0>", text)
    if span.file:
        written = f"[{written}]({quote(span.file)})"
    mark = FENCES.get(span.mark or "", "")
    return re.sub(r"^(\s*)(.*?)(\s*)$", rf"\1{mark}\2{mark}\3", written) if mark and text.strip() else written


def _fence(text: str, least: int) -> str:
    """Backticks, more than there are in a row in the text."""
    return "`" * max(least, 1 + max(map(len, re.findall("`+", text)), default=0))
