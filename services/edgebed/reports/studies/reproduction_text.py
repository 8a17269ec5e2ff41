"""A reproduction in a terminal: a table for each of the paper's, and a list of what can be reproduced."""

import os
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from edgebed.core.quantities import UNMEASURED, count_text
from edgebed.reports.run.terminal import GAP, plain_table
from edgebed.studies.cells.cells import CellRun, PaperCells, Size, runs_of_row
from edgebed.studies.claims_text import claim_text, measured_text, share_text, size_text
from edgebed.studies.papers.paper import Paper
from edgebed.studies.reproduction.reproduction import Reproduction, RowResult

NOT_RUN = "not run"
NO_RUN = "computed"
ONE_SEED = "one seed"
"""The text where a value is shown without a finding, since seeds decide, and there is one."""


def finding_text(row: RowResult) -> str:
    """The finding, or why there is none."""
    if row.finding:
        return row.finding
    if not row.was_run:
        return NOT_RUN
    return UNMEASURED if row.claim is None else ONE_SEED


def print_reproduction(result: Reproduction, rows: Collection[str], console: Console) -> None:
    """Print *paper | measured (interval over seeds) | finding* of these rows, by the paper's tables."""
    for title, results in result.tables.items():
        shown = [row for row in results if row.row in rows]
        if not shown:
            continue
        columns = {
            "row": [row.row for row in shown],
            "what": [row.what for row in shown],
            "paper": [row.paper for row in shown],
            "measured (interval over seeds)": [
                measured_text(row.measured, row.values, row.unit, of_seeds=row.needs_runs) for row in shown
            ],
            "finding": [finding_text(row) for row in shown],
            "size": [
                size_text(row.updates, row.share) if row.was_run and row.needs_runs else UNMEASURED for row in shown
            ],
        }
        print_table(columns, console, ("size", "what"), title)
        console.print()


def print_paper(paper: Paper, cells: PaperCells, size: Size, console: Console) -> None:
    """Print what can be reproduced of a paper: its tables, rows and cells."""
    console.print(Text(f"{paper.name}: {paper.citation}", style="bold"), soft_wrap=True)
    for table in paper.tables:
        columns = {
            "row": list(table.rows),
            "what": [row.what for row in table.rows.values()],
            "paper": [claim_text(row.claim, row.unit) for row in table.rows.values()],
            "cells": [", ".join(row.cells) or NO_RUN for row in table.rows.values()],
            "seeds": [str(len(runs_of_row(paper, row, size)) or UNMEASURED) for row in table.rows.values()],
        }
        console.print()
        print_table(columns, console, ("cells", "seeds", "what"), table.title)
    if not paper.cells:
        return
    columns = dict(
        zip(("cell", "scenario", "updates", "of the paper's", "seeds"), _cell_columns(cells, size), strict=True)
    )
    console.print()
    print_table(columns, console, ("scenario", "of the paper's"), "Cells", ("updates", "of the paper's", "seeds"))
    sizes = [(cells.spec(run).updates, seeds) for _, run, seeds in _cell_sizes(cells, size)]
    runs, updates = sum(seeds for _, seeds in sizes), sum(updates * seeds for updates, seeds in sizes)
    console.print(f"{count_text(runs, 'run')}, {count_text(updates, 'update')} in all", highlight=False)


def paper_dict(paper: Paper, cells: PaperCells, size: Size) -> dict[str, Any]:
    """What can be reproduced of a paper, for programs."""
    return {
        "paper": paper.name,
        "citation": paper.citation,
        "tables": {
            table.title: [
                {
                    "row": name,
                    "what": row.what,
                    "unit": row.unit,
                    "paper": claim_text(row.claim, row.unit),
                    "cells": row.cells,
                    "seeds": len(runs_of_row(paper, row, size)),
                }
                for name, row in table.rows.items()
            ]
            for table in paper.tables
        },
        "cells": [
            {"cell": name, "command": cells.spec(run).command, "updates": cells.spec(run).updates,
             "share": run.scale, "seeds": seeds}
            for name, run, seeds in _cell_sizes(cells, size)
        ],
    }  # fmt: skip


def print_table(
    columns: dict[str, list[str]],
    console: Console,
    dispensable: Sequence[str],
    title: str,
    right: Sequence[str] = (),
) -> None:
    """Print a table as wide as the terminal, or a block a row if that is too narrow; in a file nothing is left out."""
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = max(console.width, _width(columns, columns))
    if _width(columns, [name for name in columns if name not in dispensable]) > console.width:
        _print_blocks(columns, console, title)
    else:
        console.print(plain_table(columns, console.width, dispensable=dispensable, title=title, right=right))


def _print_blocks(columns: dict[str, list[str]], console: Console, title: str) -> None:
    """Print each row's first text in a line of its own, the others below it."""
    console.print(Text(title, style="bold"), soft_wrap=True)
    for first, *others in (tuple(columns), *zip(*columns.values(), strict=True)):
        console.print(Text(first), soft_wrap=True)
        console.print(Padding(Text(" | ".join(others), style="dim"), (0, 0, 0, 2)))


def _width(columns: dict[str, list[str]], names: Iterable[str]) -> int:
    """Width of a table with these columns in full, in characters."""
    return sum(max(map(len, (name, *columns[name]))) + GAP for name in names) - GAP


def _cell_columns(cells: PaperCells, size: Size) -> Sequence[list[str]]:
    rows = [
        (name, cells.spec(run).place, f"{cells.spec(run).updates:,}", share_text(run.scale), str(seeds))
        for name, run, seeds in _cell_sizes(cells, size)
    ]
    return [list(column) for column in zip(*rows, strict=True)]


def _cell_sizes(cells: PaperCells, size: Size) -> list[tuple[str, CellRun, int]]:
    """Every cell, with its run with the first seed, and its number of seeds."""
    return [
        (name, CellRun(name, size.scale or cell.scale, 1), size.seeds or cell.seeds)
        for name, cell in cells.paper.cells.items()
    ]
