"""The maps of a sweep: who wins where.

A map can be read without its colours: each cell has the winner's letter and name. Methods beyond the palette's
colours get hatching. Everything is drawn from a result alone.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from edgebed.core.quantities import factor_text, seconds_text
from edgebed.reports.studies.sweep_curves import where_text
from edgebed.reports.writing.figures import INK, PALETTE, Chart
from edgebed.studies.sweep.points import Axis, axes_of
from edgebed.studies.sweep.sweep_result import SweepResult, WinAt

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
HATCHES = ("", "//", "..", "xx")
CELL = (1.6, 0.86)
"""Width and height of a cell of the map in inches."""
BORDER = (1.2, 0.85)
LETTER_WIDTH = 0.082
CELL_WIDTHS_MIN = 4
ALPHA = 0.38
"""Opacity of a cell's colour, so that its text is readable on light and on dark."""
NOBODY = "nobody"


class Layout(NamedTuple):
    """Directions of the axes in the map: one to the right, one downwards, a map for each value of the others."""

    columns: Axis
    rows: Axis | None
    others: tuple[Axis, ...]


def layout_of(axes: Sequence[Axis]) -> Layout:
    """The layout of axes: rates go to the right, as does the last axis without rates; the first other one downwards."""
    columns = next((axis for axis in axes if axis.is_rate), axes[-1])
    others = [axis for axis in axes if axis is not columns]
    return Layout(columns, others[0] if others else None, tuple(others[1:]))


def letters(methods: Sequence[str]) -> dict[str, str]:
    """A letter for each method; two where there are more than letters."""
    names = [*LETTERS, *map("".join, product(LETTERS, repeat=2))]
    return dict(zip(methods, names, strict=False))


def maps_of(result: SweepResult) -> list[Chart]:
    """The maps, one for each value of the axes that have no direction in it."""
    layout = layout_of(axes_of(result.axes))
    found = []
    for fixed in product(*(axis.values for axis in layout.others)):
        where = dict(zip((axis.key for axis in layout.others), fixed, strict=True))
        found.append(_map("Who is first" + where_text(layout.others, fixed), result, layout, where))
    return found


def style_of(place: int) -> dict[str, Any]:
    """Style of the cells of the method at this place."""
    return {
        "facecolor": PALETTE[place % len(PALETTE)],
        "hatch": HATCHES[place // len(PALETTE) % len(HATCHES)],
        "alpha": ALPHA,
        "edgecolor": INK,
        "linewidth": 0.0,
    }


def cell_lines(win: WinAt | None, letter_of: Mapping[str, str]) -> tuple[str, ...]:
    """The lines in a cell of the map: the winner, its time, and its factor; pure."""
    if win is None or win.time is None:
        return ("not run" if win and win.not_run else NOBODY,)
    found = win.time
    if found.factor is None:
        by = "alone"
    else:
        by = f"{'≈ ' * found.is_coarse}{factor_text(found.factor)} × {letter_of[found.second or '']}"
        by += ", decided" * bool(found.is_decided)
    if win.not_run:
        by = f"{win.not_run} not run"
    return (f"{letter_of[found.method]} {found.method}", seconds_text(found.mean), by)


def _map(title: str, result: SweepResult, layout: Layout, where: Mapping[str, str]) -> Chart:
    columns, rows = layout.columns, layout.rows
    row_values = rows.values if rows else ("",)
    letter_of = letters(result.methods)
    wins = {tuple(each.values.items()): each for each in result.wins}
    winners: dict[str, None] = {}

    def plot(axes: Axes) -> None:
        for (y, row), (x, column) in product(enumerate(row_values), enumerate(columns.values)):
            values = {columns.key: column, **({rows.key: row} if rows else {}), **where}
            win = wins.get(tuple((key, values[key]) for key in result.axes))
            if win and win.time:
                winners.setdefault(win.time.method)
                place = result.methods.index(win.time.method)
                axes.add_patch(Rectangle((x - 0.49, y - 0.49), 0.98, 0.98, **style_of(place)))
            lines = cell_lines(win, letter_of)
            for k, line in enumerate(lines):
                weight = "bold" if k == 0 else "normal"
                offset = 0.27 * (k - (len(lines) - 1) / 2)
                axes.text(x, y + offset, line, ha="center", va="center", fontsize=9, fontweight=weight)
        axes.plot([], [])
        axes.set_xlim(-0.5, len(columns.values) - 0.5)
        axes.set_ylim(len(row_values) - 0.5, -0.5)
        axes.set_xticks(range(len(columns.values)), columns.values)
        axes.set_yticks(range(len(row_values)), row_values)
        axes.set_xlabel(f"{columns.key} (as set)")
        axes.set_ylabel(f"{rows.key} (as set)" if rows else "")
        axes.grid(visible=False)
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)

    cell = max(CELL[0], LETTER_WIDTH * (4 + max(map(len, result.methods))))
    width = BORDER[0] + cell * max(CELL_WIDTHS_MIN, len(columns.values))
    return Chart(title, plot, size=(width, BORDER[1] + CELL[1] * len(row_values)))
