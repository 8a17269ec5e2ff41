"""A chart of lines in characters: a frame, ticks at the left and below it, and a mark in each cell that a line passes.

Both axes are linear; who wants a logarithmic one gives logarithms and says with its ticks what they stand for.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

CELLS_MIN = 8
"""Columns inside the frame, however narrow the terminal is."""


class Axis(NamedTuple):
    """One of the two axes: the values at its ends, of which the second is larger, and the ticks between them."""

    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    """The value of each tick, in rising order, and what stands beside it."""

    def cell(self, value: float, cells: int) -> int:
        """The one of so many cells, counted from 0 at the low end, that a value is in."""
        return round((value - self.low) / (self.high - self.low) * (cells - 1))


class Line(NamedTuple):
    """A line through points (x, y), and what is written into each cell that it passes."""

    mark: str
    points: Sequence[tuple[float, float]]


def chart_lines(lines: Sequence[Line], x: Axis, y: Axis, *, columns: int, rows: int) -> list[str]:
    """The chart from top to bottom, `columns` wide, with `rows` rows inside its frame; later lines cover earlier ones.

    A tick of `x` whose text would touch the one before it is left out.
    """
    gutter = max(len(text) for _, text in y.ticks)
    width = max(CELLS_MIN, columns - gutter - 2)
    inside = [[" "] * width for _ in range(rows)]
    for line in lines:
        for column, row in _cells([(x.cell(at, width), y.cell(value, rows)) for at, value in line.points]):
            inside[row][column] = line.mark
    beside = {y.cell(value, rows): text for value, text in y.ticks}
    edge, below = ["─"] * width, ""
    for value, text in x.ticks:
        column = x.cell(value, width)
        start = min(gutter + 1 + column - len(text) // 2, gutter + 2 + width - len(text))
        if not below or start > len(below):
            edge[column] = "┬"
            below = f"{below:<{start}}{text}"
    return [
        f"{'':{gutter}}┌{'─' * width}┐",
        *(
            f"{beside.get(row, ''):>{gutter}}{'┤' if row in beside else '│'}{''.join(inside[row])}│"
            for row in reversed(range(rows))
        ),
        f"{'':{gutter}}└{''.join(edge)}┘",
        below,
    ]


def _cells(corners: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    """The cells that a line passes on its way from corner to corner."""
    passed = set(corners)
    for (column, row), (to_column, to_row) in itertools.pairwise(corners):
        steps = max(abs(to_column - column), abs(to_row - row))
        for step in range(1, steps):
            share = step / steps
            passed.add((round(column + share * (to_column - column)), round(row + share * (to_row - row))))
    return passed
