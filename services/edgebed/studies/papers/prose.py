"""A paper in words: the Markdown file beside its declaration, `paper.md` of `paper.py`.

    # The citation
    How the paper was read where it leaves something open.
    ## Stated
    When the numbers of seeds, the first readings and the rows that count were stated.
    ## Claims
    ### One of the things that the paper is read for
    Rows: `name`, `name`. Chart: Its title.
    What came of it here, and why it differs, if it does.
    ## Tables
    ### A table's title
    What the table is about and how it is measured here.
    ## Causes
    ### What may be why something was found that differs
    Rows: `name`, `name` by `switched`; `name` by `:reading`; `name`.
    The cause in a sentence or two.
    > The paper's words that it contradicts, if it does.

An empty line is between any two of these. The switch of a row is another row, or itself by a reading of its table; a
cause without one was not tried. In each text `{row:name}` stands for the value that the row has in the runs there are,
so that no figure is typed by hand.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from edgebed.core.errors import ScenarioError
from edgebed.scenario.mistakes.problems import choose
from edgebed.studies.papers.paper import ROW, Cause, Headline, Paper, Table

HEADING = re.compile(r"^(#{1,3}) (.+)$", re.MULTILINE)
BRACES = re.compile(r"\{[^{}]*\}")
ROWS = re.compile(r"Rows: (?P<rows>[^.]*(?:\.[^.\s][^.]*)*)\.(?: Chart: (?P<chart>.+)\.)?")
NAMED = re.compile(r"`([^`]+)`")
CLAIMS, TABLES, CAUSES, STATED = "Claims", "Tables", "Causes", "Stated"


class _Part(NamedTuple):
    """A heading and what is below it, until the next one."""

    section: str
    """The heading of the second level that it is or lies below; empty: before the first."""
    title: str
    """The heading itself; empty where it is that of the section."""
    text: str
    line: int

    @property
    def paragraphs(self) -> list[str]:
        """The paragraphs of the text, each in one line but for lists."""
        each = self.text.split("\n\n") if self.text else []
        return [text if text.startswith("- ") else " ".join(text.split()) for text in each]


def with_prose(paper: Paper, path: Path) -> Paper:
    """The paper with what its Markdown file says; ScenarioError with the lines that fit nothing in the declaration."""
    text = path.read_text(encoding="utf-8")
    reader = _Reader(paper, path)
    reader.check_braces(text)
    for part in _parts(text):
        reader.read(part)
    if reader.mistakes:
        raise ScenarioError(*reader.mistakes)
    return reader.told()


@dataclass
class _Reader:
    paper: Paper
    path: Path
    mistakes: list[str] = field(default_factory=list)
    citation: str = ""
    text: str = ""
    stated: str = ""
    headlines: list[Headline] = field(default_factory=list)
    tables: dict[str, str] = field(default_factory=dict)
    causes: dict[str, Cause] = field(default_factory=dict)

    def told(self) -> Paper:
        """The paper with all that was read."""
        return replace(
            self.paper,
            citation=self.citation,
            text=self.text,
            stated=self.stated,
            headlines=tuple(self.headlines),
            tables=tuple(self._table(each) for each in self.paper.tables),
        )

    def _table(self, table: Table) -> Table:
        rows = {name: replace(row, cause=self.causes.get(name)) for name, row in table.rows.items()}
        return replace(table, text=self.tables.get(table.title, ""), rows=rows)

    def check_braces(self, text: str) -> None:
        """Note each placeholder that stands for no row."""
        for number, line in enumerate(text.splitlines(), start=1):
            for found in BRACES.findall(line):
                row = ROW.fullmatch(found)
                if row is None:
                    self._mistake(number, f"{found} is no placeholder; {{row:NAME}} stands for a row's value")
                else:
                    self._check("row", row[1], self.paper.rows, number)

    def read(self, part: _Part) -> None:
        """Take in a part of the file."""
        match part.section, part.title:
            case "", title:
                self.citation, self.text = title, f"{part.text}\n"
            case (str(section), "") if section in (CLAIMS, TABLES, CAUSES):
                pass
            case (str(section), "") if section == STATED:
                self.stated = " ".join(part.paragraphs)
            case (str(section), title) if section == CLAIMS:
                self._claim(title, part)
            case (str(section), title) if section == TABLES:
                self._check("table", title, [table.title for table in self.paper.tables], part.line)
                self.tables[title] = part.text if len(part.paragraphs) > 1 else "".join(part.paragraphs)
            case (str(section), _) if section == CAUSES:
                self._cause(part)
            case section, _:
                self._check("section", section, (STATED, CLAIMS, TABLES, CAUSES), part.line)

    def _claim(self, title: str, part: _Part) -> None:
        found = self._rows(part)
        if found is None:
            return
        rows, chart = tuple(NAMED.findall(found["rows"])), found["chart"] or ""
        for row in rows:
            self._check("row", row, self.paper.rows, part.line)
        titles = [curve.title for table in self.paper.tables for curve in table.curves]
        self._check("chart", chart, ("", *titles), part.line)
        self.headlines.append(Headline(claim=title, rows=rows, chart=chart, found="\n\n".join(part.paragraphs[1:])))

    def _cause(self, part: _Part) -> None:
        found = self._rows(part)
        if found is None:
            return
        against = [each.removeprefix("> ") for each in part.paragraphs if each.startswith("> ")]
        text = "\n\n".join(each for each in part.paragraphs[1:] if not each.startswith("> "))
        for group in found["rows"].split("; "):
            rows, _, switched = (NAMED.findall(each) for each in group.partition(" by "))
            for row in rows:
                by = "".join(switched)
                switch = f"{row}{by}" if by.startswith(":") else by
                for each in (row, switch) if switch else (row,):
                    self._check("row", each, self.paper.rows, part.line)
                if row in self.causes:
                    self._mistake(part.line, f"row '{row}' has a cause above already; give it one")
                self.causes[row] = Cause(text, switch, "".join(against))

    def _rows(self, part: _Part) -> re.Match[str] | None:
        found = ROWS.fullmatch(part.paragraphs[0]) if part.paragraphs else None
        if found is None:
            self._mistake(part.line, f"'{part.title}' begins with no line of its rows, as: Rows: `name`, `name`.")
        return found

    def _check(self, what: str, name: str, allowed: Collection[str], line: int) -> None:
        if name not in allowed:
            self._mistake(line, f"there is no {what} '{name}'; {choose(name, allowed)}")

    def _mistake(self, line: int, words: str) -> None:
        self.mistakes.append(f"{self.path}:{line}: {words}")


def _parts(text: str) -> Iterator[_Part]:
    section = ""
    found = list(HEADING.finditer(text))
    for heading, end in zip(found, [*(each.start() for each in found[1:]), len(text)], strict=True):
        title = heading[2]
        if len(heading[1]) == len("##"):
            section, title = title, ""
        yield _Part(section, title, text[heading.end() : end].strip(), text.count("\n", 0, heading.start()) + 1)
