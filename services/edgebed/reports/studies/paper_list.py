"""What can be reproduced of a paper: its tables, rows and cells, for people and for programs."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from edgebed.core.quantities import UNMEASURED, count_text, seconds_text
from edgebed.reports.writing.page import Grid, Paragraph, Part, Section, Span
from edgebed.studies.cells.cells import CellRun, PaperCells, Size, runs_of_row
from edgebed.studies.claims_text import claim_text, share_text
from edgebed.studies.papers.paper import Paper

if TYPE_CHECKING:
    from edgebed.studies.reproduction.budget import Candidate

ROW_HEAD = ("row", "what", "paper", "cells", "seeds")
MISSING_HEAD = ("paper", "cell", "seed", "updates", "takes", "rows decided", "chosen")
CELL_HEAD = ("cell", "scenario", "updates", "of the paper's", "seeds")


def paper_list(paper: Paper, cells: PaperCells, size: Size) -> Iterator[Part]:
    """The tables of a paper, its cells, and how much there is to run."""
    yield Paragraph(Span(f"{paper.name}: {paper.citation}", "strong"))
    for table in paper.tables:
        rows = [
            (
                name,
                row.what,
                claim_text(row.claim, row.unit),
                ", ".join(row.cells) or "computed",
                str(len(runs_of_row(paper, name, size)) or UNMEASURED),
            )
            for name, row in table.all_rows.items()
        ]
        yield Section(table.title, [Grid(ROW_HEAD, rows, dispensable=("cells", "seeds", "what"))])
    if not paper.cells:
        return
    sizes = [(name, run, cells.spec(run), seeds) for name, run, seeds in _cell_sizes(cells, size)]
    rows = [
        (name, spec.place, f"{spec.updates:,}", share_text(run.scale), str(seeds)) for name, run, spec, seeds in sizes
    ]
    runs, updates = sum(seeds for *_, seeds in sizes), sum(spec.updates * seeds for *_, spec, seeds in sizes)
    yield Section(
        "Cells",
        [
            Grid(CELL_HEAD, rows, dispensable=("scenario", "of the paper's")),
            Paragraph(f"{count_text(runs, 'run')}, {count_text(updates, 'update')} in all"),
        ],
    )


def missing_list(missing: "Sequence[Candidate]", budget_s: float, jobs: int = 1) -> Iterator[Part]:
    """The runs that papers lack, best first, which of them fit into the budget, and what all would take."""
    from edgebed.studies.reproduction.budget import within  # it loads torch, which a list of rows does not need

    chosen = within(missing, budget_s, jobs)
    rows = [
        (
            each.paper,
            each.run.cell,
            str(each.run.seed),
            f"{each.updates:,}",
            seconds_text(each.cost_s),
            f"{each.worth:.3g}",
            "yes" if each.run in chosen.get(each.paper, ()) else "",
        )
        for each in missing
    ]
    hours = seconds_text(sum(each.cost_s for each in missing))
    yield Grid(MISSING_HEAD, rows, dispensable=("updates",))
    yield Paragraph(f"{count_text(len(missing), 'run')} missing, about {hours} on one core")


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
                    "seeds": len(runs_of_row(paper, name, size)),
                }
                for name, row in table.all_rows.items()
            ]
            for table in paper.tables
        },
        "cells": [
            {"cell": name, "command": cells.spec(run).command, "updates": cells.spec(run).updates,
             "share": run.scale, "seeds": seeds}
            for name, run, seeds in _cell_sizes(cells, size)
        ],
    }  # fmt: skip


def _cell_sizes(cells: PaperCells, size: Size) -> list[tuple[str, CellRun, int]]:
    """Every cell, with its run with the first seed, and the largest number of seeds that a row needs."""
    paper = cells.paper
    seeds = {name: max(paper.seeds[row] for row in paper.rows if name in paper.rows[row].cells) for name in paper.cells}
    return [
        (name, CellRun(name, size.scale or cell.scale, 1), size.seeds or seeds[name])
        for name, cell in paper.cells.items()
    ]
