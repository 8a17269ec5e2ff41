"""A page as one HTML file that needs nothing else, for a screen (light or dark, wide or narrow) and for paper.

Its one script, `page.js`, is in the file. It shows what is there already: without it a page lacks values on hover, and
nothing more. The page's policy has a browser run no other script, and load nothing.
"""

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

from edgebed.reports.writing.chart_data import POINTS_MAX
from edgebed.reports.writing.figures import PALETTE, SIZE, Chart
from edgebed.reports.writing.page import SHADES, Bars, Page, Span, Text, grids_in, plain, shade_of, shown, spans

SHORT_MAX = 16
"""Number of characters up to which a cell is not broken, such as a number with its unit."""
NAME_MAX = 12
"""Number of characters up to which a row's name is not broken."""
TAGS = {"code": "code", "strong": "strong", "emphasis": "em"} | dict.fromkeys(SHADES, "span")
"""Elements by mark."""


def to_html(page: Page) -> str:
    """The page as one document, which loads nothing."""
    return TEMPLATE.render(page=page).lstrip()


def brief_html(page: Page) -> str:
    """What a terminal shows of a page, but for sketches, as HTML for a notebook."""
    module: Any = TEMPLATE.make_module({"page": Page(name=page.name, parts=())})
    return str(module.all(page.brief, 3))


def cell_class(text: Text, is_name: bool) -> str:
    """The classes of a cell: a short text is not broken into lines, a long one not into too many; and its shade."""
    length = "short" if len(plain(text)) <= (NAME_MAX if is_name else SHORT_MAX) else "long"
    return f"{length} {shade_of(text) or ''}".strip()


def shares(bars: Bars) -> Iterator[tuple[str, str, str]]:
    """Name, share in per cent and colour of each part."""
    total = sum(bars.parts.values()) or 1.0
    for index, (name, value) in enumerate(bars.parts.items()):
        yield name, f"{100 * value / total:.2f}", PALETTE[index % len(PALETTE)]


def order(text: Text) -> Markup:
    """The attribute that says where a cell is to be sorted; none where its text says so."""
    first = spans(text)[0] if spans(text) else Span("")
    return Markup("" if first.order is None else f' data-order="{first.order:.10g}"')  # noqa: S704


def has_script(page: Page) -> bool:
    """Whether anything on the page answers to a reader: a chart or a table to be sorted."""
    return bool(page.charts) or any(grid.is_sortable for grid in grids_in(page.parts))


def prose(markdown: str) -> Markup:
    """Markdown as HTML; tags in it stay text."""
    return Markup(MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown))  # noqa: S704


def beside(file: str) -> str:
    """A linked file; of a page in Markdown the one in HTML, which is written with it."""
    return f"{file.removesuffix('.md')}.html" if file.endswith(".md") else file


def svg(chart: Chart) -> Markup:
    """A chart's own element."""
    return Markup(chart.svg)  # noqa: S704


def is_wide(chart: Chart) -> bool:
    """Whether a chart takes the whole width."""
    return chart.size[0] > 1.2 * SIZE[0]


SCRIPT = f"\n{Path(__file__).with_name('page.js').read_text()}\n"
"""What stands between the tags of the script, to the byte."""
POLICY = "; ".join((
    "default-src 'none'", "style-src 'unsafe-inline'", "img-src data:",
    f"script-src 'sha256-{base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()}'",
    "base-uri 'none'", "form-action 'none'",
))  # fmt: skip
"""The Content-Security-Policy of a page."""

ENVIRONMENT = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
ENVIRONMENT.globals |= {
    "beside": beside, "cell_class": cell_class, "has_script": has_script, "is_wide": is_wide, "order": order,
    "points_max": POINTS_MAX, "policy": POLICY, "prose": prose, "script": Markup(SCRIPT),  # noqa: S704
    "shade_of": shade_of, "shades": SHADES, "shares": shares, "shown": shown, "spans": spans, "svg": svg, "tags": TAGS,
}  # fmt: skip
TEMPLATE = ENVIRONMENT.from_string(Path(__file__).with_name("page.html").read_text())
