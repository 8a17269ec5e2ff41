"""Pages: what a view says is shown by each writer, and no text in any place of a page is taken for markup."""

import html.parser
import io
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.console import Console

from edgebed.core.console import make_console
from edgebed.reports.writing.figures import Chart
from edgebed.reports.writing.html import to_html
from edgebed.reports.writing.markdown import to_markdown, write
from edgebed.reports.writing.page import (
    Bars,
    Facts,
    Figures,
    Grid,
    Listing,
    Notes,
    Page,
    Paragraph,
    Prose,
    Section,
    Sketch,
    Span,
    codes,
    legend,
    shaded,
)
from edgebed.reports.writing.terminal import show

HEIGHT = Chart("Height over time", lambda axes: axes.plot([0, 1], [0, 1]))
WIDTH = Chart("Width over time", lambda axes: axes.plot([0, 1], [1, 0]))
NOTHING = Chart("Nothing", lambda axes: None)
TABLE = Grid(
    ("", "paper", "finding"),
    [
        ("a row of many words", "98.59 %", Span("reproduced", "good")),
        ("b", codes(["c", "d"]), Span("differs", "bad")),
    ],
)
WORDS = st.text(min_size=1).filter(lambda text: re.sub(r"[\x00-\x20\x7f-\x9f\u2028\u2029]", "", text).strip())
PIECES = [*"*_`~|<>&#-+=.)([]!\\\n\t\r1a ", "```", "[a](b)", "<b>", "&lt;", "---", "\x1b[2J"]
NASTY = st.lists(st.sampled_from(PIECES)).map("".join)
TEXTS = WORDS | NASTY.filter(lambda text: re.sub(r"[\x00-\x20]", "", text))


def page(*parts, **more):
    """A page of these parts."""
    return Page(name="tiny", heading="Which of them?", parts=parts, **more)


def everywhere(text):
    """A page with the text in every place that has one."""
    drawn = Chart(text, lambda axes: None)
    drawn.__dict__["svg"] = "<svg></svg>"
    spans = tuple(Span(text, mark) for mark in ("code", "strong", "emphasis", "good", None))
    parts = [
        Paragraph(text),
        *map(Paragraph, spans),
        Paragraph(("a ", Span(text, file=text))),
        legend(text),
        Notes([text, *spans]),
        Grid((text, "b"), [(text, text), *((span, span) for span in spans)]),
        Figures([drawn]),
        Facts({text: text}),
        Bars({text: 1.0}),
        Section(text, [Section(text, [Paragraph(text)]), Section(text, [Paragraph(text)], is_folded=True)]),
        Listing([text.replace("\n", " ").replace("\r", " ")], "sh"),
    ]
    return Page(name=text, heading=text, status=Span(text, "bad"), lead=[Paragraph(text)], parts=parts)


class Elements(html.parser.HTMLParser):
    """The elements of a document with the names of their attributes, and its text."""

    def __init__(self, document):
        super().__init__()
        self.found, self.text = [], []
        self.feed(document)
        self.close()

    def handle_starttag(self, tag, attrs):
        """One more."""
        self.found.append((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data):
        """Any text."""
        self.text.append(data)


def blocks(text):
    """What a reader of Markdown with tables makes of a text: its elements, without their texts."""
    reader = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    tokens = reader.parse(text)
    return [
        (each.type, each.tag, each.level)
        for token in tokens
        for each in (token, *(token.children or ()))
        if each.type not in ("text", "text_special")
    ]


@given(TEXTS)
def test_no_text_becomes_an_element_of_html(text):
    """In whatever place of a page it is; it stays what it was."""
    shown = Elements(to_html(everywhere(text)))

    assert shown.found == Elements(to_html(everywhere("x"))).found
    assert "".join(shown.text).count(text) >= 20


@given(TEXTS)
@example("0\xa0")
def test_no_text_becomes_markup_of_markdown(text):
    """In whatever place of a page it is."""
    assert blocks(to_markdown(everywhere(text))) == blocks(to_markdown(everywhere("x")))


@given(TEXTS)
def test_no_control_character_reaches_a_terminal(text):
    """Nor does a text look like another style."""
    stream = io.StringIO()
    show(everywhere(text).parts, make_console(stream, width=60))

    assert re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", stream.getvalue().replace("\t", "")) == []


def test_charts_are_files_of_the_markdown_and_parts_of_the_html(tmp_path):
    """The HTML file asks for nothing from outside; those of one part are side by side."""
    path = write(page(Paragraph("Text."), Figures([HEIGHT, WIDTH, NOTHING]), Paragraph("More.")), tmp_path)
    text = path.read_text()

    assert path == tmp_path / "tiny.html"
    assert sorted(each.name for each in (tmp_path / "tiny").iterdir()) == [
        "height-over-time.svg", "width-over-time.svg"
    ]  # fmt: skip
    assert (tmp_path / "tiny.md").read_text() == (
        "# tiny\n\nWhich of them?\n\nText.\n\n![Height over time](tiny/height-over-time.svg)\n\n"
        "![Width over time](tiny/width-over-time.svg)\n\nMore.\n"
    )
    assert (text.count("<svg"), text.count("<div class=charts>")) == (2, 1)
    assert "<img" not in text
    assert "<p class=name>tiny</p><h1>Which of them?</h1>" in text


def test_tables_have_names_of_rows_and_shades():
    """In a box that can be scrolled; a short cell is not broken."""
    text = to_html(page(TABLE))

    assert "<div class=wide><table>" in text
    assert '<th scope=row class="long">a row of many words</th>' in text
    assert '<td class="short">98.59 %</td>' in text
    assert '<td class="short good">reproduced</td>' in text
    assert "<code>c</code>, <code>d</code>" in text
    assert text.count("</th>") == 5
    assert to_markdown(page(TABLE)).splitlines()[4:] == [
        "|  | paper | finding |",
        "| --- | --- | --- |",
        "| a row of many words | 98.59 % | reproduced |",
        "| b | `c`, `d` | differs |",
    ]


def test_a_page_without_a_question_has_its_name_as_heading():
    """Once."""
    bare = Page(name="tiny", parts=[Paragraph("Text.")])

    assert to_markdown(bare) == "# tiny\n\nText.\n"
    assert "<header><h1>tiny</h1></header><p>Text.</p>" in to_html(bare)


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[x](javascript:alert(1))"]
)
def test_prose_is_markdown_and_still_no_html(text):
    """Its author may emphasise and list; tags and scripts stay text."""
    shown = to_html(page(Prose(f"It is *tiny*.\n\n- {text}")))

    assert "<em>tiny</em>" in shown
    assert "<li>" in shown
    assert not re.search("<script|<img|href", shown)


def test_what_has_nothing_to_show_is_left_out():
    """A section of legends alone as well, and what is in it."""
    empty = page(
        Section("Charts", [legend("How to read them."), Figures([NOTHING])]),
        Section("Tables", [Section("One", [Grid(("a",), [])])]),
        Section("Notes", [Notes([]), Paragraph("")]),
    )

    assert to_markdown(empty) == "# tiny\n\nWhich of them?\n"
    assert "<section" not in to_html(empty)
    assert empty.charts == []


def printed(*parts, width=40, terminal=True):
    """The lines that a terminal, or a file, shows of these parts."""
    stream = io.StringIO()
    show(parts, Console(file=stream, width=width, force_terminal=terminal, color_system=None))
    return stream.getvalue().splitlines()


def test_a_flexible_column_is_cut_before_others_go():
    """Its end is marked."""
    grid = Grid(
        ("run", "trials", "verdict"), [("tiny/0001", "a, b, c, d, e, f, g", "met")],
        dispensable=("trials",), flexible="trials",
    )  # fmt: skip

    assert printed(grid, width=30)[-1].strip() == "tiny/0001  a, b, c, …  met"
    assert printed(grid, width=20)[-1].strip() == "tiny/0001  met"


def test_what_does_not_fit_goes_on_below():
    """Each row is a block of lines, and no end of a verdict is cut off."""
    lines = printed(Grid(("judged", "verdict"), [("accuracy, updates 100 to 500", "not distinguishable")]))

    assert {"accuracy,", "updates", "500", "not", "distinguishable"} <= set(" ".join(lines).split())
    assert max(map(len, lines)) <= 40


def test_in_a_file_no_column_is_left_out(monkeypatch):
    """Unless the environment says how wide it is."""
    monkeypatch.delenv("COLUMNS", raising=False)
    grid = Grid(("run", "trials"), [("tiny/0001", "a long list of trials")], dispensable=("trials",))

    assert "a long list of trials" in printed(grid, width=20, terminal=False)[-1]
    monkeypatch.setenv("COLUMNS", "20")
    assert printed(grid, width=20, terminal=False)[-1].strip() == "tiny/0001"


def test_numbers_are_on_the_right():
    """What was not measured does not change that; a column of words is on the left."""
    grid = Grid(("arm", "updates", "time"), [("a", "5", "never"), ("bc", "1,200", "12.3 s"), ("d", "–", "1 s")])

    rows = [line.rstrip() for line in printed(grid)][2:]
    assert rows == ["a          5  never", "bc     1,200  12.3 s", "d          –  1 s"]


def test_a_long_list_says_how_much_more_there_is():
    """Its lines are marked, so that they can be told without colours."""
    lines = printed(Notes(shaded(map(str, range(20)), "unknown")))

    assert (lines[0], lines[11:]) == ("! 0", ["! 11", "8 more on the page"])


def test_a_chart_of_characters_has_the_width_of_the_terminal():
    """It is for terminals alone."""
    sketch = Sketch(lambda columns, colours: ("y" if colours else "x") * columns)

    assert printed(sketch, width=20) == ["x" * 20]
    assert to_markdown(page(sketch)) == "# tiny\n\nWhich of them?\n"
    assert "xxx" not in to_html(page(sketch))
