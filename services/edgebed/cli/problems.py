"""Mistakes as a person reads them: a sentence each, and below it the line with a mark under what is meant."""

import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from edgebed.core.console import line_width, say, say_as_is
from edgebed.core.errors import LocatedProblem, Place

WORD = re.compile(r'"[^"]*"?|\'[^\']*\'?|[^\s,{}\[\]:]+(?::[^\s,{}\[\]:]+)*|.')
"""What is marked: a quoted text, a word with all its colons, or a single character."""
START = (1, 1)
"""Line and column of a whole file."""
READ_MAX = 10_000_000
"""Bytes of the largest file that is read again for the line of a mistake."""


def say_problems(problems: Iterable[LocatedProblem]) -> None:
    """Write mistakes to standard error, each with the line that it is in, where that can be read."""
    for problem in problems:
        say(f"error: {problem}")
        if problem.location.path or problem.location.place[1:] != START:  # what is missing from a file is on no line
            say_as_is(excerpt(problem.location.place, line_width()))


def excerpt(place: Place, width: int) -> str:
    """Return the line of a place and a mark below, in at most `width` columns; empty where there is no line to show."""
    line = _line(place)
    start = place.column - 1
    if not line.strip() or start >= len(line):
        return ""
    found = WORD.match(line, start)
    end = found.end() if found else start + 1
    gutter = f"{place.line:>5} | "
    room = max(10, width - len(gutter))
    first, last = 0, len(line)
    if _columns(line) > room:  # a part of the line, with what is meant in it
        first = max(0, min(start - room // 3, len(line) - room))
        last = first + room
    end = min(end, last)
    blank = "".join(each if each == "\t" else " " * _columns(each) for each in line[first:start])
    return f"{gutter}{line[first:last].rstrip()}\n{' ' * 5} | {blank}{'^' * max(1, _columns(line[start:end]))}"


def _line(place: Place) -> str:
    """Return the line of a place; empty where there is none, or the file is one that cannot be read twice."""
    path = Path(place.source)
    try:
        if not place.line or not path.is_file() or path.stat().st_size > READ_MAX:
            return ""
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, ValueError):
        return ""
    return lines[place.line - 1].rstrip("\r") if place.line <= len(lines) else ""


def _columns(text: str) -> int:
    """Return the columns that a text takes in a terminal, where no tab is in it."""
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text
    )
