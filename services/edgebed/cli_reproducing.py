"""The command `reproduce`: run the cells of a paper, and say of each of its rows what became of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgebed.cli_options import (
    Figures,
    Json,
    Processes,
    RunsDir,
    end_interrupted,
    end_with,
    make_figures,
    require_figures,
)
from edgebed.errors import ScenarioError
from edgebed.observe.output import put, put_json, put_rich, say

if TYPE_CHECKING:
    from edgebed.comparing.cells import Size


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
        int | None, typer.Option(min=1, help="How many seeds (default: each cell's own).", show_default=False)
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep what has been run, and go on with what broke off.")
    ] = False,
    no_run: Annotated[bool, typer.Option("--no-run", help="Run nothing: say what the runs there are say.")] = False,
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
    """Reproduce a paper's tables, in simulation but where time is measured: paper, measured, finding; and a page."""
    from edgebed.comparing import computing
    from edgebed.comparing.cells import Cells, Size, check_rows, runs_of_rows
    from edgebed.comparing.keeping import FILE, Kept
    from edgebed.comparing.markdown import make_folder
    from edgebed.comparing.reproduction import evaluate
    from edgebed.comparing.reproduction_text import print_reproduction
    from edgebed.comparing.results_page import charts_of_reproduction, results_page
    from edgebed.comparing.running_cells import CellRunner
    from edgebed.observe.progress import Progress
    from edgebed.observe.run_folder import runs_root
    from edgebed.papers.registry import find_paper

    if scale is not None and not 0 < scale <= 1:
        raise ScenarioError(f"--scale: {scale:g} is no share of the paper's updates; above 0 and at most 1")
    size = Size(scale, seeds)
    if paper is None or list_rows:
        _list(paper, rows or (), size, json=json)
        return
    declared = find_paper(paper)
    chosen = check_rows(declared, rows or ())
    if output is not None and output.exists() and not output.is_dir():
        raise ScenarioError(f"--output: {output} is not a folder; the page and its charts need one")
    require_figures(figures)
    cells, root = Cells(declared), runs_root(runs_dir)
    folder = output or root / "reproductions"
    charts = make_folder(folder, declared.name)  # before hours of training, not after
    kept, computed = Kept(cells, charts / FILE), computing.Computed(declared, charts / computing.FILE)
    problems = []
    if not no_run:
        try:
            problems = computed.compute(chosen, say, resume=resume)
            with Progress() as progress:
                runner = CellRunner(
                    cells=cells, root=root, kept=kept, resume=resume, processes=processes, progress=progress, tell=say
                )
                runner.run(runs_of_rows(declared, chosen, size))
            problems += [f"{run.cell}, seed {run.seed}: {reason}" for run, reason in runner.failed.items()]
        except KeyboardInterrupt:
            end_interrupted()
    result, curves = evaluate(cells, root, kept, chosen, size, say, paper, computed.values)
    kept.write()
    drawn = charts_of_reproduction(declared, curves)
    page = results_page(declared, result, drawn).write(drawn, folder)
    make_figures(figures, lambda: drawn)
    if json:
        put_json({"reproduction": result, "rows": chosen, "failed": problems, "page": str(page)})
    else:
        put_rich(lambda console: print_reproduction(result, chosen, console))
        put(f"page: {page}")
    end_with(problems)


def _list(paper: str | None, rows: Sequence[str], size: "Size", *, json: bool) -> None:
    """Every table, row and cell of a paper or of all papers; of a paper these rows alone, if any is named."""
    from edgebed.comparing.cells import Cells, check_rows
    from edgebed.comparing.reproduction_text import paper_dict, print_paper
    from edgebed.papers.registry import all_papers, find_paper

    if paper is None:
        if rows:
            raise ScenarioError(f"--row {rows[0]}: of which paper? Name it, e.g. hardy2017")
        papers = list(all_papers())
    else:
        declared = find_paper(paper)
        papers = [declared.only(check_rows(declared, rows))]
    if json:
        put_json([paper_dict(each, Cells(each), size) for each in papers])
        return
    for each in papers:
        put_rich(lambda console, each=each: print_paper(each, Cells(each), size, console))  # type: ignore[misc]
