"""What comes of the rows of a paper: causes by their rows' runs, tests of a table together, diverged runs."""

import dataclasses
from pathlib import Path

import msgspec
import pytest
from finished_runs import completed_run
from tiny_paper import tiny_paper, write_paper

from edgebed.studies.cells.cells import CellRun, PaperCells, Size
from edgebed.studies.cells.result_cache import ResultCache
from edgebed.studies.papers.measuring import accuracy
from edgebed.studies.papers.paper import Cause, Cell, Near, Paper, Reading, Row, Table
from edgebed.studies.reproduction.reproduction import RowResult, _best, evaluate
from edgebed.studies.statistics import ConfidenceInterval
from edgebed.studies.trial_result import FinishedTrial

LOW = (0.50, 0.51, 0.52)
HIGH = (0.89, 0.90, 0.91)
HALVED = Reading(name="halved", text="", cells={"asgd": "adacomp"})


def row(cell: str = "asgd", **settings: object) -> Row:
    """The accuracy of a cell, which the paper has at 90 %."""
    claim = Near(value=90.0, tolerance=3.0)
    return Row(**{"what": "", "cells": (cell,), "measure": accuracy(cell), "unit": "%", "claim": claim} | settings)


def paper_of(*rows: Row, scale: float = 1.0, other_setting: bool = False, best_of: int = 1) -> Paper:
    """The tiny paper's cells with a table of these rows, called a, b, ..."""
    table = Table(
        title="T", seeds=3, rows=dict(zip("abcd", rows, strict=False)), readings=(HALVED,), other_setting=other_setting
    )  # fmt: skip
    return dataclasses.replace(
        tiny_paper(), tables=(table,), best_of=best_of,
        cells={
            "asgd": Cell(scenario="digits.yaml", variant="asgd"),
            "adacomp": Cell(scenario="digits.yaml", variant="adacomp", scale=scale),
        },
    )  # fmt: skip


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for runs beside the scenario, which is the current one."""
    write_paper(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


def found(paper: Paper, root: Path) -> dict[str, RowResult]:
    """What the runs there are say of a paper's rows."""
    cells = PaperCells(paper)
    return evaluate(cells, root, ResultCache(cells, root / "kept"), (), Size(), print)[0].rows


def run(paper: Paper, root: Path) -> dict[str, RowResult]:
    """What three runs of ASGD, which reach half, and of AdaComp, which reach the paper's accuracy, say of its rows."""
    cells = PaperCells(paper)
    for cell, accuracies in (("asgd", LOW), ("adacomp", HIGH)):
        for seed, reached in enumerate(accuracies, start=1):
            completed_run(cells, CellRun(cell, paper.cells[cell].scale, seed), root, (0.1, reached))
    return found(paper, root)


def test_a_cause_is_what_its_row_was_run_with(root: Path) -> None:
    """By a reading of the table; the row that differs is explained by it, and what does not differ has none."""
    caused = row(cause=Cause("Half.", row="a:halved"))
    rows = run(paper_of(caused, row("adacomp", cause=Cause("Half.", row="a:halved"))), root)

    assert (rows["a"].finding, rows["a"].is_explained) == ("differs", True)
    cause = rows["a"].cause
    assert cause is not None
    assert (cause.text, cause.row, cause.why_not) == ("Half.", "a:halved", "")
    assert cause.share is not None
    assert cause.share.mean == pytest.approx((90 - 51) / (90 - 51))
    assert cause.share.seeds == 3
    assert (rows["b"].finding, rows["b"].cause) == ("reproduced", None)


def test_a_cause_of_shorter_runs_that_have_not_levelled_off_does_not_count(root: Path) -> None:
    """Whatever they have shown so far."""
    rows = run(paper_of(row(cause=Cause("Half.", row="a:halved")), scale=0.5), root)

    assert (rows["a"].finding, rows["a:halved"].finding) == ("differs", "so far inside")
    assert rows["a"].cause is not None
    assert rows["a"].cause.why_not == "the runs are too short to tell what it is in the end"
    assert not rows["a"].is_explained


def test_a_row_is_whole_in_the_papers_setting_and_length(root: Path) -> None:
    """Neither with fewer updates nor in a smaller one; whether it was run or not."""
    for paper, is_whole in (
        (paper_of(row(), row("adacomp")), (True, True)),
        (paper_of(row(), row("adacomp"), scale=0.5), (True, False)),
        (paper_of(row(), row("adacomp"), other_setting=True), (False, False)),
    ):
        rows = found(paper, root)
        assert tuple(rows[name].is_whole for name in "ab") == is_whole


def test_what_the_other_tests_of_a_table_take_away_is_kept_beside(root: Path) -> None:
    """A row that differs by itself, with three others of which nothing is found; a reading is no test of its own."""
    far = row("adacomp", claim=Near(value=99.0, tolerance=5.5))
    others = [row("adacomp", claim=Near(value=90.5, tolerance=0.9)) for _ in "bcd"]

    alone = run(paper_of(far), root)["a"]
    among = found(paper_of(far, *others), root)["a"]
    assert (alone.finding, alone.by_itself) == ("differs", None)
    assert (among.finding, among.by_itself) == ("not distinguishable", "differs")
    assert among.measured == alone.measured


def test_a_papers_mean_of_more_runs_is_contradicted_the_sooner(root: Path) -> None:
    """Of one run its value is to be expected, of twenty it is not."""
    paper = paper_of(row("adacomp", claim=Near(value=93.5, tolerance=0.75)))

    assert run(paper, root)["a"].finding == "not distinguishable"
    assert found(dataclasses.replace(paper, runs=20), root)["a"].finding == "differs"


def test_fewer_seeds_than_were_stated_find_nothing(root: Path) -> None:
    """What they gave is there."""
    paper = paper_of(row())
    more = dataclasses.replace(paper, tables=(dataclasses.replace(paper.tables[0], seeds=4),))
    one = run(more, root)["a"]

    assert (one.finding, one.by_itself, one.seeds_wanted) == (None, None, 4)
    assert one.measured is not None
    assert one.measured.mean == pytest.approx(51.0)


def test_seeds_with_which_a_run_diverged_are_counted(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of any of a row's cells, each seed once."""
    paper = paper_of(row(), row(cells=("asgd", "adacomp")), row("adacomp"))
    assert [each.diverged for each in run(paper, root).values()] == [0] * 5
    trial = ResultCache.trial

    def diverging(self: ResultCache, run: CellRun) -> FinishedTrial:
        one = trial(self, run)
        outcome = "diverged" if run.cell == "asgd" and run.seed > 1 else one.summary.outcome
        return dataclasses.replace(one, summary=msgspec.structs.replace(one.summary, outcome=outcome))

    monkeypatch.setattr(ResultCache, "trial", diverging)
    rows = found(paper, root)
    assert [rows[name].diverged for name in ("a", "b", "c", "a:halved")] == [2, 2, 0, 0]


def test_the_last_accuracy_stands_beside_the_best(root: Path) -> None:
    """The mean over seeds, where a claim is of the best accuracy of one cell."""
    paper = paper_of(row(), row(cells=("asgd", "adacomp")), row(claim=None), row(with_updates="steady"))
    cells = PaperCells(paper)
    for seed, (best, last) in enumerate(((0.9, 0.8), (0.8, 0.7), (0.85, 0.6)), start=1):
        for cell in cells.declared:
            completed_run(cells, CellRun(cell, 1.0, seed), root, (0.1, best, last))
    rows = found(paper, root)

    assert rows["a"].measured is not None
    assert rows["a"].measured.mean == pytest.approx(85.0)
    assert rows["a"].final == pytest.approx(70.0)
    assert (rows["b"].final, rows["c"].final, rows["d"].final) == (None, None, None)


def test_the_best_is_that_of_as_many_seeds_as_the_paper_picks_from(root: Path) -> None:
    """The first of them, and none where fewer gave a number; a paper that has a mean picks none."""
    assert _best({3: 9.0, 1: 5.0, 2: 7.0}, 2) == 7.0
    assert _best({1: 5.0, 2: None, 3: 9.0}, 2) is None
    assert _best({1: 5.0}, 2) is None
    assert _best({1: 5.0, 2: 7.0}, 1) is None

    rows = run(paper_of(row(), row(claim=None), row(unit="points"), best_of=3), root)
    assert rows["a"].best == pytest.approx(52.0)
    assert rows["a"].measured == ConfidenceInterval(
        mean=pytest.approx(51.0), low=pytest.approx(48.52, abs=0.01), high=pytest.approx(53.48, abs=0.01), seeds=3
    )  # fmt: skip
    assert (rows["b"].best, rows["c"].best) == (None, None)
