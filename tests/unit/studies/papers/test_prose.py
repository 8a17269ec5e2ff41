"""The prose of a paper, in Markdown beside its declaration: what is read, and what fits nothing that is declared."""

from pathlib import Path

import pytest
from tiny_paper import tiny_paper, write_paper

from edgebed.core.errors import ScenarioError
from edgebed.studies.papers.paper import Cause, Headline
from edgebed.studies.papers.prose import with_prose
from edgebed.studies.papers.registry import find_paper

PROSE = """\
# Somebody 2026, A tiny paper.

It is *tiny*,
and short.

## Stated

On a Sunday.

## Claims

### It learns

Rows: `asgd`, `difference`. Chart: Accuracy over updates.

To {row:asgd}, whatever
it sends.

## Tables

### Table 2: bytes

With {row:push}
a push.

## Causes

### The rate

Rows: `asgd` by `difference`; `push`.

A rate of which
nobody knows.

> the rate is one
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of the tiny paper's prose, beside its declaration."""
    write_paper(tmp_path)
    (tmp_path / "papers_of_mine.py").rename(tmp_path / "scenarios/tiny/paper.py")
    path = tmp_path / "scenarios/tiny/paper.md"
    path.write_text(PROSE)
    return path


def test_all_of_a_file_is_taken_in(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of one paragraph in one line; causes at their rows, each with its switch."""
    monkeypatch.chdir(file.parents[2])
    paper = find_paper("tiny")

    assert (paper.citation, paper.text) == ("Somebody 2026, A tiny paper.", "It is *tiny*,\nand short.\n")
    assert paper.stated == "On a Sunday."
    assert paper.headlines == (
        Headline(
            claim="It learns", rows=("asgd", "difference"), chart="Accuracy over updates",
            found="To {row:asgd}, whatever it sends.",
        ),
    )  # fmt: skip
    assert [table.text for table in paper.tables] == ["", "With {row:push} a push."]
    words = "A rate of which nobody knows.", "the rate is one"
    assert paper.rows["asgd"].cause == Cause(words[0], "difference", words[1])
    assert paper.rows["push"].cause == Cause(words[0], "", words[1])
    assert paper.rows["difference"].cause is None


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            "To {row:asgd}",
            "To {row:asdg}",
            r":16: there is no row 'asdg'; did you mean 'asgd'\? allowed: asgd, ",
        ),
        ("{row:push}", "{push}", r":23: {push} is no placeholder; {row:NAME} stands for a row's value"),
        ("`difference`. Chart", "`nobody`. Chart", ":12: there is no row 'nobody'; allowed: asgd, difference"),
        ("over updates", "over time", r":12: there is no chart 'Accuracy over time'; did you mean 'Accuracy over upd"),
        ("### Table 2: bytes", "### Table 3", ":21: there is no table 'Table 3'; "),
        ("by `difference`", "by `:reading`", ":28: there is no row 'asgd:reading'"),
        ("`push`.\n", "`asgd`.\n", ":28: row 'asgd' has a cause above already; give it one"),
        ("Rows: `asgd` by", "`asgd` by", ":28: 'The rate' begins with no line of its rows, as: Rows: `name`, `name`."),
        ("## Claims", "## Claim", r":10: there is no section 'Claim'; did you mean 'Claims'\? allowed: Stated"),
    ],
)
def test_what_fits_nothing_is_refused_with_its_line(file: Path, before: str, after: str, said: str) -> None:
    """And with what is allowed there."""
    assert before in PROSE
    file.write_text(PROSE.replace(before, after, 1))

    with pytest.raises(ScenarioError, match=f"scenarios/tiny/paper.md{said}"):
        with_prose(tiny_paper(), file)
