"""A page of results: Markdown with its charts beside it, and one HTML file that needs nothing else.

The Markdown is for repositories; the HTML file, which is made of it, for a browser: it looks like a run's report.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from edgebed.journal.run_folder import write_atomically
from edgebed.reports.writing.drawing import Chart
from edgebed.reports.writing.html import NAME_MAX, SHORT_MAX, escape, figures, length_class, page
from edgebed.reports.writing.markdown import make_folder

CELL_CLASSES = {
    "reproduced": "good",
    "differs": "bad",
    "not distinguishable": "unknown",
    "so far inside": "unknown",
    "so far outside": "unknown",
    "one seed": "quiet",
    "not run": "quiet",
}
"""Classes of texts that a page shows in a colour, where they are all of a cell."""


class Document(NamedTuple):
    """A page by its parts."""

    name: str
    """Name of the page's file and of the folder of its charts."""
    heading: str
    """A sentence on the page's subject; "" if there is none."""
    body: str
    """The page's text in Markdown."""

    @classmethod
    def of(cls, name: str, heading: str, parts: Iterable[str]) -> "Document":
        """A document of these parts, without those that are empty."""
        return cls(name, heading.strip(), "\n\n".join(part.strip() for part in parts if part.strip()))

    def place(self, chart: Chart) -> str:
        """The path of a chart's file, from the page."""
        return f"{self.name}/{chart.name}.svg"

    def markdown(self) -> str:
        """The whole page in Markdown."""
        return "\n\n".join(filter(None, (f"# {self.name}", self.heading, self.body))) + "\n"

    def html(self, charts: Sequence[Chart]) -> str:
        """The whole page as HTML, with these charts where it shows their files."""
        reader = MarkdownIt("commonmark", {"html": False}).enable("table")
        tokens = _tables(_figures(reader.parse(self.body), {self.place(chart): chart for chart in charts}))
        body = reader.renderer.render(list(tokens), reader.options, {})
        heading = reader.renderInline(self.heading or self.name)
        name = f"<p class=name>{escape(self.name)}</p>" if self.heading else ""
        return page(self.name, f"<header>{name}<h1>{heading}</h1></header>{body}")

    def write(self, charts: Sequence[Chart], folder: Path) -> Path:
        """Write `<name>.md`, `<name>.html` and `<name>/<chart>.svg` into `folder`; return the HTML file's path.

        Raises InfrastructureError where that is impossible.
        """
        make_folder(folder, self.name)
        for chart in charts:
            if chart.svg:
                write_atomically(folder / self.place(chart), chart.svg_file, "--output")
        write_atomically(folder / f"{self.name}.md", self.markdown().encode(), "--output")
        shown = folder / f"{self.name}.html"
        write_atomically(shown, self.html(charts).encode(), "--output")
        return shown


def image(document: str, chart: Chart) -> str:
    """A chart in the Markdown of the document of this name; "" where there is nothing to show."""
    return f"![{chart.title}]({document}/{chart.name}.svg)" if chart.svg else ""


def _figures(tokens: Sequence[Token], charts: Mapping[str, Chart]) -> Iterator[Token]:
    """Replace paragraphs that are an image by charts; those that follow each other are grouped."""
    together: list[Chart] = []
    rest = list(tokens)
    while rest:
        chart = _chart_of(rest[:3], charts)
        if chart:
            together.append(chart)
            del rest[:3]
            continue
        if together:
            yield _raw(figures(together))
            together = []
        yield rest.pop(0)
    if together:
        yield _raw(figures(together))


def _chart_of(tokens: Sequence[Token], charts: Mapping[str, Chart]) -> Chart | None:
    if [token.type for token in tokens] != ["paragraph_open", "inline", "paragraph_close"]:
        return None
    children = tokens[1].children or []
    is_image = len(children) == 1 and children[0].type == "image"
    return charts.get(str(children[0].attrs.get("src"))) if is_image else None


def _tables(tokens: Iterable[Token]) -> Iterator[Token]:
    """Put tables in a box of their own that can be scrolled; their first column names the rows."""
    is_first = False
    cells: list[Token] = []
    for token in tokens:
        match token.type:
            case "table_open":
                yield _raw("<div class=wide>")
            case "tr_open":
                is_first = True
            case "td_open":
                if is_first:
                    token.tag = "th"
                    token.attrSet("scope", "row")
                is_first = False
                cells.append(token)
            case "inline" if cells:
                _mark(cells[-1], token.content)
            case "td_close":
                token.tag = cells.pop().tag
        yield token
        if token.type == "table_close":
            yield _raw("</div>")


def _mark(cell: Token, text: str) -> None:
    short_max = NAME_MAX if cell.tag == "th" else SHORT_MAX
    cell.attrSet("class", " ".join(filter(None, (length_class(text, short_max), CELL_CLASSES.get(text)))))


def _raw(text: str) -> Token:
    """A token of HTML, as it is."""
    return Token("html_block", "", 0, content=f"{text}\n")
