"""Prints whether runtimes agree, for a terminal."""

from rich.console import Console
from rich.text import Text

from edgebed.reports.run.terminal import plain_table
from edgebed.reports.studies.agreement_tables import JUDGED_HEAD, grids, legend, title_of, verdict_text
from edgebed.studies.agreement.agreeing import Agreements

STYLES = {"agrees": "green", "differs": "red", "too few seeds to tell": "yellow"}


def print_agreements(agreements: Agreements, console: Console) -> None:
    """Print the tables of each trial, notes, the verdict."""
    for trial in agreements.trials:
        console.print(Text(title_of(agreements, trial), style="bold"))
        for grid in grids(trial):
            words = (grid.head[0], "runtime", "verdict") if grid.head == JUDGED_HEAD else ("",)
            right = [name for name in grid.head if name not in words]
            console.print(Text(grid.title), soft_wrap=True)
            console.print(plain_table(grid.columns, console.width, right=right))
        for sentence in legend(trial):
            console.print(Text(sentence, style="dim"), soft_wrap=True)
    for note in agreements.notes:
        console.print(Text(f"note: {note}", style="dim"), soft_wrap=True)
    console.print(Text(verdict_text(agreements), style=STYLES[agreements.verdict]), soft_wrap=True)
