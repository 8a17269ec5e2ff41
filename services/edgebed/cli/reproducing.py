"""The command `reproduce`: run the cells of a paper, and state a finding on each of its rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgebed.cli.options import (
    Figures,
    Json,
    Processes,
    RunsDir,
    end_interrupted,
    end_with,
    make_figures,
    put_parts,
    require_figures,
)
from edgebed.core.console import put, put_json, say
from edgebed.core.errors import ScenarioError

if TYPE_CHECKING:
    from edgebed.studies.cells.cells import Size


def reproduce(
    paper: Annotated[
        str | None, typer.Argument(help="A paper, e.g. hardy2017, or package.module:NAME.", show_default=False)
    ] = None,
    *,
    rows: Annotated[
        list[str] | None,
        typer.Option("--row", metavar="ROW", help="This row alone. Repeatable.", show_default=False),
    ] = None,
    scale: Annotated[
        float | None, typer.Option(help="Share of the paper's updates (default: each cell's own).", show_default=False)
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Number of seeds (default: each cell's own).", show_default=False)
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Reuse what has been run, and resume what broke off.")
    ] = False,
    no_run: Annotated[bool, typer.Option("--no-run", help="Run nothing: evaluate existing runs.")] = False,
    list_rows: Annotated[bool, typer.Option("--list", help="List what can be reproduced, and run nothing.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Folder of the page (default: reproductions/ in the runs' folder)."
        ),
    ] = None,
    figures: Figures = None,
    json: Json = False,
    processes: Processes = None,
    runs_dir: RunsDir = None,
) -> None:
    """Reproduce a paper's tables, in simulation, except rows that measure time: paper, measured, finding; a page."""
    from edgebed.reports.live.progress import ProgressDisplay
    from edgebed.reports.studies.study import Means, size_of
    from edgebed.reports.studies.study import reproduce as run_paper
    from edgebed.studies.cells.cells import check_rows
    from edgebed.studies.papers.registry import find_paper

    if paper is None or list_rows:
        _list(paper, rows or (), size_of(scale, seeds), json=json)
        return
    chosen = check_rows(find_paper(paper), rows or ())
    require_figures(figures)
    means = Means(
        resume=resume, run=not no_run, processes=processes, runs_dir=runs_dir, display=ProgressDisplay(), tell=say
    )
    try:
        study = run_paper(paper, rows=rows or (), scale=scale, seeds=seeds, output=output, means=means)
    except KeyboardInterrupt:
        end_interrupted()
    make_figures(figures, study.view)
    if json:
        put_json({"reproduction": study.result, "rows": chosen, "failed": study.problems, "page": str(study.page)})
    else:
        put_parts(study.view.brief)
        put(f"page: {study.page}")
    end_with(study.problems)


def _list(paper: str | None, rows: Sequence[str], size: "Size", *, json: bool) -> None:
    """Print every table, row and cell of a paper or of all papers; of a paper these rows alone, if any is named."""
    from edgebed.reports.studies.paper_list import paper_dict, paper_list
    from edgebed.studies.cells.cells import PaperCells, check_rows
    from edgebed.studies.papers.registry import all_papers, find_paper

    if paper is None:
        if rows:
            raise ScenarioError(f"--row {rows[0]}: of which paper? Name it, e.g. hardy2017")
        papers = list(all_papers())
    else:
        declared = find_paper(paper)
        papers = [declared.only(check_rows(declared, rows))]
    if json:
        put_json([paper_dict(each, PaperCells(each), size) for each in papers])
        return
    put_parts(part for each in papers for part in paper_list(each, PaperCells(each), size))
