"""Ways to read what a paper leaves open, each for all rows of a table: which rows they make, of which cells."""

import dataclasses
from pathlib import Path

import pytest
from finished_runs import completed_run
from tiny_paper import tiny_paper, write_paper

from edgebed.studies.cells.cells import CellRun, PaperCells, Size, runs_of_row
from edgebed.studies.cells.result_cache import ResultCache
from edgebed.studies.papers.measure import Spaced, resolution
from edgebed.studies.papers.measuring import difference
from edgebed.studies.papers.paper import Cause, Near, Paper, Reading, Row, Sign, Table, read_as, rows_in
from edgebed.studies.reproduction.reproduction import evaluate

PRINTED = Reading(name="as printed", text="What it says.", cells={})
HALVED = Reading(name="half the steps", text="What it may mean.", cells={"asgd": "adacomp"}, seeds=4)
SHORT = Reading(name="short", text="Or that.", cells={"adacomp": "asgd", "asgd": "adacomp"})


def value(cell: str) -> Spaced:
    """A measure that takes a trial for a number, known to a tenth of it."""
    return Spaced(lambda trials: trials[cell], lambda trials: trials[cell] / 10)


ROWS = {
    "one": Row(
        what="One", cells=("asgd",), measure=value("asgd"), unit="x", claim=Near(value=7.0, tolerance=1.0),
        note="So it says.", cause=Cause("Something.", row="both"), exact=True, with_updates="turns",
    ),
    "both": Row(
        what="Both", cells=("asgd", "adacomp"), measure=difference(value("asgd"), value("adacomp")), unit="points",
        claim=Sign(sign=1), beside="one",
    ),
    "other": Row(what="Other", cells=("adacomp",), measure=value("adacomp"), unit="x", claim=Sign(sign=1)),
    "computed": Row(what="Computed", measure=lambda _: 1.0, unit="x", claim=Sign(sign=1)),
}  # fmt: skip
TABLE = Table(title="T", seeds=2, rows=ROWS, readings=(PRINTED, HALVED, SHORT))
PAPER = dataclasses.replace(tiny_paper(), tables=(TABLE,))


def test_each_further_reading_has_the_rows_that_it_changes() -> None:
    """After those of the table, under their names and the reading's; as printed nothing is another."""
    assert list(PAPER.rows) == [
        *ROWS, "one:half-the-steps", "both:half-the-steps", "one:short", "both:short", "other:short"
    ]  # fmt: skip
    assert list(TABLE.rows) == list(ROWS)
    assert (PAPER.mistakes, read_as("one", HALVED.name)) == ((), "one:half-the-steps")
    text = "{row:one:half-the-steps} and {row:other:short}, not {one} or {row:}"
    assert rows_in(text) == ["one:half-the-steps", "other:short"]


def test_a_row_is_of_the_cells_of_its_reading() -> None:
    """Each once; those that the reading says nothing of stay."""
    cells = {name: row.cells for name, row in PAPER.rows.items() if ":" in name}

    assert cells == {
        "one:half-the-steps": ("adacomp",),
        "both:half-the-steps": ("adacomp",),
        "one:short": ("adacomp",),
        "both:short": ("adacomp", "asgd"),
        "other:short": ("asgd",),
    }


def test_a_reading_measures_the_same_of_other_cells() -> None:
    """As finely as it is known there."""
    trials = {"asgd": 50.0, "adacomp": 30.0}

    def measured(name: str) -> tuple[float | None, float]:
        measure = PAPER.rows[name].measure
        return measure(trials), resolution(measure, trials)

    assert measured("one") == (50.0, 5.0)
    assert measured("one:short") == (30.0, 3.0)
    assert measured("both") == (20.0, 8.0)
    assert measured("both:short") == (-20.0, 8.0)
    assert measured("both:half-the-steps") == (0.0, 6.0)
    plain = HALVED.row("plain", Row(what="", cells=("asgd",), measure=lambda trials: trials["asgd"], unit="x"))
    assert plain is not None
    assert (plain.measure({"adacomp": 30.0}), resolution(plain.measure, {"adacomp": 30.0})) == (30.0, 0.0)


def test_a_reading_of_a_claim_is_judged_like_it_and_not_counted() -> None:
    """It stands beside its row; a cause is one of that row alone."""
    one = PAPER.rows["one"]

    assert [name for name, row in PAPER.rows.items() if row.is_primary] == ["one", "other", "computed"]
    for reading in ("half-the-steps", "short"):
        read = PAPER.rows[f"one:{reading}"]
        assert (read.beside, read.cause, read.counts) == ("one", None, True)
        assert read.what == f"{one.what} ({reading.replace('-', ' ')})"
        assert dataclasses.replace(
            read, cells=one.cells, measure=one.measure, beside=one.beside, cause=one.cause, seeds=one.seeds,
            what=one.what,
        ) == one  # fmt: skip


def test_a_reading_has_its_own_number_of_seeds_or_that_of_its_table() -> None:
    """Stated for all of its rows; a row without cells needs none."""
    assert PAPER.seeds == {
        **dict.fromkeys(ROWS, 2), **dict.fromkeys(("one:half-the-steps", "both:half-the-steps"), 4),
        **dict.fromkeys(("one:short", "both:short", "other:short"), 2),
    }  # fmt: skip
    assert list(runs_of_row(PAPER, "one:half-the-steps")) == [1, 2, 3, 4]
    assert list(runs_of_row(PAPER, "one:short")) == list(runs_of_row(PAPER, "one")) == [1, 2]
    assert list(runs_of_row(PAPER, "one:half-the-steps", Size(seeds=1))) == [1]
    assert runs_of_row(PAPER, "computed") == {}


def test_a_reading_is_measured_in_the_runs_of_its_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its own seeds; the row beside it was not run."""
    write_paper(tmp_path)
    monkeypatch.chdir(tmp_path)
    first, second = tiny_paper().tables
    halved = Reading(name="halved", text="", cells={"asgd": "adacomp"}, seeds=1)
    paper: Paper = dataclasses.replace(
        tiny_paper(), tables=(dataclasses.replace(first, readings=(PRINTED, halved)), second)
    )
    cells = PaperCells(paper)
    completed_run(cells, CellRun("adacomp", 0.5, 1), tmp_path)

    result, _ = evaluate(cells, tmp_path, ResultCache(cells, tmp_path / "kept"), (), Size(), print)
    rows = result.rows
    assert list(rows) == ["asgd", "difference", "asgd:halved", "difference:halved", "push", "perfect"]
    assert (rows["asgd"].values, rows["asgd:halved"].values) == ({}, {1: 90.0})
    assert rows["difference:halved"].values == {1: 0.0}
    assert (rows["asgd:halved"].seeds_wanted, rows["asgd"].seeds_wanted) == (1, 2)
    assert (rows["asgd:halved"].share, rows["asgd:halved"].cells) == ((0.5, 0.5), ("adacomp",))
    assert (rows["asgd:halved"].beside, rows["asgd:halved"].is_primary, rows["asgd"].is_primary) == (
        "asgd", False, True
    )  # fmt: skip
