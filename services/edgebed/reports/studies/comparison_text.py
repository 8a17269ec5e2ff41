"""A comparison in a terminal: tables, what changed, what to know before trusting them."""

from rich.console import Console
from rich.text import Text

from edgebed.reports.run.terminal import plain_table
from edgebed.reports.studies.comparison_tables import grids, legend
from edgebed.reports.writing.grid import Grid
from edgebed.studies.comparison.comparison import Comparison

CHANGES_MAX = 8
"""Settings shown for an arm."""
LINES_MAX = 12
"""Lines of notes, and of trials left out."""
DISPENSABLE = ("seeds", "a push", "updates", "final accuracy", "time", "up", "down")
"""Columns that a narrow terminal leaves out, first to last."""


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print arms that train another task, the tables, their legend, differing settings, notes, and trials left out."""
    for sentence in comparison.other_tasks:
        console.print(Text(f"! {sentence}", style="bold red"), soft_wrap=True)
    for grid in grids(comparison):
        _print_grid(grid, console)
        console.print()
    for sentence in legend(comparison):
        console.print(Text(sentence, style="dim"), soft_wrap=True)
    for name, arm in comparison.arms.items():
        if name != comparison.baseline:
            console.print(Text(f"What changed from {comparison.baseline} to {name}:", style="bold"), soft_wrap=True)
            lines = [f"  {change}" for change in arm.changes]
            _print_lines(lines, CHANGES_MAX, console, style="", more="  {} more on the page")
    _print_lines([f"! {note}" for note in comparison.notes], LINES_MAX, console, style="yellow", more="! {} more notes")
    left_out = [f"left out: {line}" for line in comparison.left_out]
    _print_lines(left_out, LINES_MAX, console, style="dim", more="left out: {} more")


def _print_grid(grid: Grid, console: Console) -> None:
    dispensable = [name for kind in DISPENSABLE for name in grid.head if name.partition(",")[0] == kind]
    if dispensable and grid.head[-1].startswith("total"):
        dispensable = [name for name in dispensable if not name.startswith("updates")]
    right = grid.head[1:]
    console.print(plain_table(grid.columns, console.width, dispensable=dispensable, right=right, title=grid.title))


def _print_lines(lines: list[str], most: int, console: Console, *, style: str, more: str) -> None:
    """Print the first `most` lines, and how many more there are."""
    shown = [*lines[:most], more.format(len(lines) - most)] if len(lines) > most + 1 else lines
    for line in shown:
        console.print(Text(line, style=style), soft_wrap=True)
