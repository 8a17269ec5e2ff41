"""The order of the methods in Hardy et al. 2017, by what reproduces it, at a small share of its updates."""

import dataclasses
from pathlib import Path

import pytest
from hardy2017.paper import PAPER

from edgebed.running.run import without_report
from edgebed.studies.cells.cells import CellRun, PaperCells, Size, runs_of_rows
from edgebed.studies.cells.result_cache import ResultCache
from edgebed.studies.cells.running_cells import CellRunner
from edgebed.studies.papers.paper import Cell, read_as
from edgebed.studies.reproduction.reproduction import evaluate

SCALE = 0.01
"""2,500 updates. AdaComp 0.1 and 0.01, and ASGD and Comp-ASGD 0.1, are still too close: their order differs from
seed to seed, so that one of each is run."""
NAMES = ("adacomp-0.01", "asgd", "comp-asgd-0.01")
ROWS = [read_as(f"accuracy-{name}", "exponential pauses") for name in NAMES]


def measured_seldom(cell: Cell) -> Cell:
    """The same with few evaluations of 10,000 images, which else would take longer than training."""
    return dataclasses.replace(cell, sets=lambda scale: (*cell.sets(scale), "evaluation.every=625 updates"))


@pytest.mark.campaign
@pytest.mark.timeout(600)
def test_the_order_of_the_methods_is_that_of_the_paper(data_dir: Path, tmp_path: Path) -> None:
    """AdaComp before ASGD, and ASGD before Comp-ASGD 0.01; 200 devices, the CNN, MNIST."""
    paper = dataclasses.replace(PAPER, cells={name: measured_seldom(cell) for name, cell in PAPER.cells.items()})
    cells, size = PaperCells(paper), Size(scale=SCALE, seeds=1)
    kept = ResultCache(cells, tmp_path / "kept")
    runner = CellRunner(
        cells=cells,
        report=without_report,
        root=tmp_path,
        cache=kept,
        resume=False,
        processes=1,
        progress=None,
        tell=print,
    )
    runs = runs_of_rows(paper, ROWS, size)
    runner.run(runs)
    assert runner.failed == {}

    reproduction, _ = evaluate(cells, tmp_path, kept, ROWS, size, print)
    assert [name for name in ROWS if reproduction.rows[name].measured is None] == []

    late = {run.cell.removesuffix("-exponential"): late_accuracy(kept, run) for run in runs}
    assert sorted(late, key=late.__getitem__, reverse=True) == list(NAMES), late


def late_accuracy(kept: ResultCache, run: CellRun) -> float:
    """The mean accuracy in the second half of the updates: a single one is too noisy so early in training."""
    accuracy = kept.trial(run).evaluations.values
    return float(accuracy[len(accuracy) // 2 :].mean())
