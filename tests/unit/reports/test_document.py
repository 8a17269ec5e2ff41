"""Pages of results: Markdown, and HTML that is made of it."""

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.reports.writing.document import Document, image
from edgebed.reports.writing.drawing import Chart
from edgebed.reports.writing.markdown import markdown_table

CHART = Chart("Height over time", lambda axes: axes.plot([0, 1], [0, 1]))
OTHER = Chart("Width over time", lambda axes: axes.plot([0, 1], [1, 0]))
NOTHING = Chart("Nothing", lambda axes: None)
TABLE = markdown_table(
    ("", "paper", "verdict"), [("a row of many words", "98.59 %", "reproduced"), ("b", "–", "differs")]
)


def document(*parts):
    """A page of these parts."""
    return Document.of("tiny", "Which of *them*?", parts)


def test_charts_are_files_of_the_markdown_and_parts_of_the_html(tmp_path):
    """The HTML file asks for nothing from outside; charts that follow each other are side by side."""
    page = document("Text.", image("tiny", CHART), image("tiny", OTHER), image("tiny", NOTHING), "More.")
    path = page.write([CHART, OTHER, NOTHING], tmp_path)
    text = path.read_text()

    assert path == tmp_path / "tiny.html"
    assert sorted(each.name for each in (tmp_path / "tiny").iterdir()) == [
        "height-over-time.svg", "width-over-time.svg"
    ]  # fmt: skip
    assert (tmp_path / "tiny.md").read_text() == (
        "# tiny\n\nWhich of *them*?\n\nText.\n\n![Height over time](tiny/height-over-time.svg)\n\n"
        "![Width over time](tiny/width-over-time.svg)\n\nMore.\n"
    )
    assert (text.count("<svg"), text.count("<div class=charts>")) == (2, 1)
    assert "<img" not in text
    assert "<p class=name>tiny</p><h1>Which of <em>them</em>?</h1>" in text


def test_tables_look_like_those_of_reports():
    """In a box that can be scrolled; their rows have names, their verdicts colours."""
    text = document(TABLE).html([])

    assert re.search(r"<div class=wide>\s*<table>", text)
    assert '<th scope="row" class="long">a row of many words</th>' in text
    assert '<td class="short">98.59 %</td>' in text
    assert '<td class="short good">reproduced</td>' in text
    assert '<td class="short bad">differs</td>' in text
    assert text.count("</th>") == 5


def test_a_page_without_a_question_has_its_name_as_heading():
    """Once."""
    bare = Document.of("tiny", "", ["Text."])

    assert bare.markdown() == "# tiny\n\nText.\n"
    assert "<header><h1>tiny</h1></header><p>Text.</p>" in bare.html([])


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[x](javascript:alert(1))"]
)
def test_what_a_page_says_cannot_become_html(text):
    """Neither in its heading, nor in its text, nor in a table."""
    page = Document.of("tiny", text, [text, f"| a |\n| --- |\n| {text} |"]).html([])

    assert "<script" not in page
    assert "<img" not in page
    assert "href" not in page


@given(st.lists(st.lists(st.text(string.ascii_letters + "|<&.% ", min_size=1).map(str.strip), min_size=2, max_size=2)))
def test_every_cell_of_the_markdown_is_in_the_html(rows):
    """As many rows, and every text."""
    text = document(markdown_table(("a", "b"), rows)).html([])

    assert text.count("<tr>") == 1 + len(rows)
    assert text.count("<td") == len(rows)
