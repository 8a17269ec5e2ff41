"""A page as values: what a view has to say, without a word on how it looks.

    view ---> Page ---> html.py and markdown.py show all of it, terminal.py its brief

Text is a string, or strings and spans in a row; no writer takes a character of it for markup. What has nothing to show
is left out.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

from edgebed.core.quantities import UNMEASURED

if TYPE_CHECKING:
    from edgebed.reports.writing.figures import Chart

Shade = Literal["good", "bad", "unknown", "quiet"]
Mark = Literal["code", "strong", "emphasis"] | Shade
SHADES: tuple[Shade, ...] = get_args(Shade)


@dataclass(frozen=True)
class Span:
    """A piece of text with a mark, or a link to a file beside the page."""

    text: str
    mark: Mark | None = None
    file: str = ""
    """Path of the linked file, from the page; "" for no link."""
    order: float | None = None
    """In a table to be sorted, the place of a cell among those of its column; None: as its text says."""


Text: TypeAlias = str | Span | tuple[str | Span, ...]


def spans(text: Text) -> tuple[Span, ...]:
    """The pieces of a text."""
    pieces = text if isinstance(text, tuple) else (text,)
    return tuple(piece if isinstance(piece, Span) else Span(piece) for piece in pieces)


def plain(text: Text) -> str:
    """The characters of a text."""
    return "".join(piece.text for piece in spans(text))


def shade_of(text: Text) -> Shade | None:
    """The shade of a text that has one as a whole."""
    return text.mark if isinstance(text, Span) and text.mark in SHADES else None


def shaded(lines: Iterable[str], shade: Shade) -> tuple[Span, ...]:
    """Lines of one shade."""
    return tuple(Span(line, shade) for line in lines)


def coded(text: str) -> tuple[Span, ...]:
    """A text in which backticks enclose code."""
    return tuple(Span(piece, "code" if place % 2 else None) for place, piece in enumerate(text.split("`")))


def codes(names: Iterable[str]) -> tuple[str | Span, ...]:
    """Names in the letters of code, with commas between them."""
    return tuple(piece for name in names for piece in (", ", Span(name, "code")))[1:]


class Paragraph(NamedTuple):
    """A sentence, or several."""

    text: Text


def legend(text: str) -> Paragraph:
    """Words on how to read what stands beside them; a section of nothing else has nothing to show."""
    return Paragraph(Span(text, "quiet") if text else "")


class Prose(NamedTuple):
    """Text that its author, of a paper or of this package, wrote in Markdown; nothing from outside may be in it."""

    markdown: str


class Notes(NamedTuple):
    """A list of sentences."""

    lines: Sequence[Text]


@dataclass(frozen=True)
class Grid:
    """A table whose first column names the rows."""

    head: Sequence[str]
    rows: Sequence[Sequence[Text]]
    dispensable: Sequence[str] = ()
    """Columns that a narrow terminal leaves out, first to last."""
    flexible: str = ""
    """The column that a narrow terminal may cut."""
    is_sortable: bool = False
    """Whether a reader of the HTML page can sort the rows, and search them."""

    def only(self, *names: str) -> "Grid":
        """A table of these columns alone, in this order."""
        places = [list(self.head).index(name) for name in names]
        return Grid(names, [[row[place] for place in places] for row in self.rows], self.dispensable)

    def without_empty_columns(self) -> "Grid":
        """A table without the columns in which no row has a value."""
        kept = [
            place
            for place in range(len(self.head))
            if any(plain(row[place]) not in ("", UNMEASURED) for row in self.rows)
        ]
        rows = [tuple(row[place] for place in kept) for row in self.rows]
        return Grid(tuple(self.head[place] for place in kept), rows, self.dispensable, self.flexible, self.is_sortable)


class Figures(NamedTuple):
    """Charts side by side, where there is room."""

    charts: "Sequence[Chart]"
    folder: str = ""
    """Folder of another page, beside this one, that has the charts' files; "": they are this page's own."""


class Sketch(NamedTuple):
    """A chart made of characters."""

    draw: Callable[[int, bool], str]
    """Function from a width in characters, and whether there are colours (as escape sequences), to the chart."""


class Listing(NamedTuple):
    """Lines as they are: commands, a log, a file."""

    lines: Sequence[str]
    language: str = ""
    """Name of their language in Markdown, e.g. `sh`."""


class Facts(NamedTuple):
    """Names and values."""

    values: Mapping[str, str]

    @property
    def lines(self) -> Sequence[Text]:
        """Each name with its value."""
        return [f"{name}: {value}" for name, value in self.values.items()]


class Bars(NamedTuple):
    """One bar cut into parts in proportion to their values, which the parts' names say in words."""

    parts: Mapping[str, float]

    @property
    def lines(self) -> Sequence[Text]:
        """The names of the parts."""
        return list(self.parts)


class Section(NamedTuple):
    """Parts under a title; in a section, under a smaller one."""

    title: str
    parts: "Sequence[Part]"
    is_folded: bool = False
    """Whether a reader has to unfold it."""


Part: TypeAlias = Paragraph | Prose | Notes | Grid | Figures | Sketch | Listing | Facts | Bars | Section


def shown(parts: Iterable[Part]) -> Iterator[Part]:
    """The parts that have anything to show, each as soon as it is there."""
    return (part for part in parts if _has_content(part))


def _has_content(part: Part) -> bool:
    match part:
        case Figures(charts):
            return any(chart.svg for chart in charts)
        case Section(_, parts):
            return any(not _is_legend(each) for each in shown(parts))
        case Grid():
            return bool(part.rows)
        case Paragraph(text):
            return bool(plain(text))
        case _:
            return bool(part[0])


def _is_legend(part: Part) -> bool:
    return isinstance(part, Paragraph) and shade_of(part.text) == "quiet"


@dataclass(frozen=True, kw_only=True)
class Page:
    """One page, and what a terminal shows of it."""

    name: str
    """Name of the page; in Markdown, also that of its file and of the folder of its charts."""
    title: str = ""
    """Title of the document, where it is not the name."""
    heading: str = ""
    """The question, or the sentence, that the page is on; "" if there is none."""
    status: Span | None = None
    """What came of it."""
    lead: Sequence[Part] = ()
    """Parts that belong to the heading."""
    parts: Sequence[Part]
    brief: Sequence[Part] = ()
    """What a terminal shows."""

    @property
    def charts(self) -> "list[Chart]":
        """The charts of the page that show anything, in its order."""
        return [chart for chart in charts_in((*self.lead, *self.parts)) if chart.svg]


def charts_in(parts: Iterable[Part]) -> "Iterator[Chart]":
    """All charts of the parts and of what is in them, but for those of other pages."""
    for part in parts:
        if isinstance(part, Figures):
            yield from part.charts if not part.folder else ()
        elif isinstance(part, Section):
            yield from charts_in(part.parts)


def grids_in(parts: Iterable[Part]) -> Iterator[Grid]:
    """All tables of the parts and of what is in them."""
    for part in parts:
        if isinstance(part, Grid):
            yield part
        elif isinstance(part, Section):
            yield from grids_in(part.parts)
