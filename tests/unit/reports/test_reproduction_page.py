"""The page of a reproduction: made from results alone, with the size of every row, and nothing of this machine."""

import dataclasses
import io
import socket
from pathlib import Path

import msgspec
import numpy as np
import pytest
from rich.console import Console
from tiny_paper import tiny_paper

from edgebed.journal.series import Series
from edgebed.reports.studies.reproduction_page import reproduction_page
from edgebed.reports.writing.html import to_html
from edgebed.reports.writing.markdown import to_markdown
from edgebed.reports.writing.terminal import show
from edgebed.studies.cells.result_cache import RunResult
from edgebed.studies.claims_text import claim_text, criterion_text, measured_text, share_text, size_text, value_text
from edgebed.studies.papers.paper import AtLeast, Cause, Near, Never, Row, Sign
from edgebed.studies.reproduction.findings import judge
from edgebed.studies.reproduction.reproduction import CellResult, Reproduction, RowResult

ALONE = Row(what="", cells=("a",), measure=lambda _: None, unit="%")
RUN = RunResult(
    seed=1, run="tiny-digits/0004", wall_s=100.0, resumed=False, started="2026-11-20T10:00:00+00:00", code="abc",
    versions={"edgebed": "0.1.0", "python": "3.11.7"}, cpu="A processor", cores=2, memory_bytes=4 * 10**9,
)  # fmt: skip


def row_result(name: str, values: dict[int, float | None], *, share: float = 1.0, seeds: int = 2) -> RowResult:
    """What these values make of a row of the tiny paper."""
    row = tiny_paper().rows[name]
    measured, finding = judge(row, values, full_size=share >= 1)
    updates = round(400 * share)
    return RowResult(
        row=name, what=row.what, cells=row.cells, unit=row.unit, paper=claim_text(row.claim, row.unit),
        claim=row.claim, measured=measured, values=values, finding=finding, is_tested=bool(finding),
        resolution=0.0, seeds_wanted=seeds,
        updates=(updates, updates), share=(share, share), note=row.note,
    )  # fmt: skip


@pytest.fixture
def result() -> Reproduction:
    """One row of full size with two seeds, one of half the size, two that were not run."""
    return Reproduction(
        paper="papers_of_mine:PAPER",
        tables={
            "Table 1: accuracy": (row_result("asgd", {1: 80.0, 2: 81.0}), row_result("difference", {})),
            "Table 2: bytes": (row_result("push", {1: 2000.0}, share=0.5, seeds=1), row_result("perfect", {})),
        },
        cells=(
            CellResult(cell="asgd", command="edgebed run a", updates=400, share=1.0, runs=(RUN,)),
            CellResult(cell="adacomp", command="edgebed run b", updates=200, share=0.5, runs=(RUN,)),
        ),
    )


def page_text(result: Reproduction) -> str:
    """The page of the tiny paper without charts, in Markdown."""
    return to_markdown(reproduction_page(tiny_paper(), result, {}))


def lines(text: str, word: str) -> list[str]:
    """The lines with `word` in them."""
    return [line for line in text.splitlines() if word in line]


def test_each_row_says_what_was_measured_at_which_size(result: Reproduction) -> None:
    """A row that was not run is there, too."""
    page = page_text(result)

    (asgd,) = lines(page, "| ASGD |")
    assert "| at least 15.00 % | 80.50 % (74.15 to 86.85, 2 seeds) | reproduced |" in asgd
    assert "400 updates, 2 seeds" in asgd
    (push,) = lines(page, "| A push of AdaComp |")
    assert "| 2 kB (1 seed) | – |" in push
    assert "200 updates (50 %), 1 seed" in push
    assert "Bytes are those of the pushes, which go up; the models that come down are not" in " ".join(page.split())
    (difference,) = lines(page, "| AdaComp less ASGD |")
    assert "| below 0 | – | not run |" in difference
    assert "4 rows: 1 reproduced, 1 measured without a claim to compare with, 2 not run." in page
    assert "1 row was tested by an interval over seeds." in page
    assert "chance alone would still give some 0.05 findings" in page
    assert "| reproduced | at least 15.00 % | 8.17 points |" in asgd
    assert "chosen by the test\nimages" in page


def test_one_seed_is_counted_as_such_in_the_first_line(result: Reproduction) -> None:
    """Its value is shown, nothing is found, and no test was made."""
    table = {"Table 1: accuracy": (row_result("asgd", {1: 80.0}),)}
    page = page_text(msgspec.structs.replace(result, tables=result.tables | table))

    assert "3 rows: 1 of one seed, without a finding," in page
    assert "No row was tested by an interval over seeds." in page
    assert "| 80.00 % (1 seed) | one seed | at least 15.00 % | – |" in lines(page, "| ASGD |")[0]


def test_evaluations_that_lie_apart_are_told_of(result: Reproduction) -> None:
    """Beside a claim that they blur; where there is none, if they leave much of the value open."""
    blurred = msgspec.structs.replace(row_result("asgd", {1: 80.0, 2: 81.0}), resolution=0.5)
    page = page_text(msgspec.structs.replace(result, tables=result.tables | {"Table 1: accuracy": (blurred,)}))

    assert "- ASGD: Accurate to 0.50 %, as evaluations lie apart." in page
    for resolution, is_told in ((600.0, True), (400.0, False)):
        without = msgspec.structs.replace(row_result("push", {1: 2000.0}), resolution=resolution)
        page = page_text(msgspec.structs.replace(result, tables=result.tables | {"Table 2: bytes": (without,)}))
        assert ("- A push of AdaComp: Accurate to 600 B, as evaluations lie apart." in page) == is_told


def test_a_cause_names_other_rows_in_the_letters_of_code(result: Reproduction) -> None:
    """In Markdown and in HTML."""
    caused = msgspec.structs.replace(row_result("asgd", {1: 80.0, 2: 81.0}), cause=Cause("The rate (row `slower`)."))
    page = reproduction_page(
        tiny_paper(), msgspec.structs.replace(result, tables=result.tables | {"Table 1: accuracy": (caused,)}), {}
    )

    assert "- ASGD: Why it differs: The rate (row `slower`)." in to_markdown(page)
    assert "ASGD: Why it differs: The rate (row <code>slower</code>)." in to_html(page)


@pytest.mark.parametrize(
    ("why", "said", "counted"),
    [
        (Cause("The rate."), "Why it differs: The rate.", "1 has a cause, 0 a part of one or a guess."),
        (
            Cause("The rate.", is_shown=False),
            "Why it differs, in part or perhaps: The rate.",
            "0 have a cause, 1 a part",
        ),
        (None, "Why it differs was not found.", "0 have a cause, 0 a part of one or a guess."),
    ],
)
def test_a_guess_is_no_cause(result: Reproduction, why: Cause | None, said: str, counted: str) -> None:
    """A difference has a cause that was shown, a part of one or a guess, or neither; the page counts causes alone."""
    row = msgspec.structs.replace(row_result("asgd", {1: 60.0, 2: 60.1, 3: 60.2}), finding="differs", cause=why)
    different = msgspec.structs.replace(result, tables={"Table 1: accuracy": (row,), "Table 2: bytes": ()})
    page = page_text(different)

    assert f"- ASGD: {said}" in page
    assert f"Of 1 difference {counted}" in page


def test_a_value_that_is_not_the_papers_does_not_stand_in_its_column() -> None:
    """What would confirm it still does."""
    own = Near(value=302, tolerance=15, published=False)

    assert claim_text(own, "x") == "–"
    assert criterion_text(own, "x") == "287 to 317 x"


def test_no_band_of_accuracies_goes_beyond_all_of_them() -> None:
    """A tolerance may; of other units nothing is cut."""
    assert criterion_text(Near(value=99.5, tolerance=1), "%") == "98.50 to 100.00 %"
    assert criterion_text(Near(value=0.5, tolerance=1), "%") == "0.00 to 1.50 %"
    assert criterion_text(Near(value=99.5, tolerance=1), "x") == "98.5 to 100 x"


@pytest.mark.parametrize("width", [30, 60, 160])
def test_no_terminal_cuts_a_finding(result: Reproduction, width: int) -> None:
    """Where a table is too wide, each row is a block of lines."""
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=True, color_system=None)
    show(reproduction_page(tiny_paper(), result, {}, tiny_paper().rows).brief, console)
    shown = " ".join(stream.getvalue().split())

    assert "at least 15.00 %" in shown
    assert "80.50 % (74.15 to 86.85, 2 seeds)" in shown
    assert shown.count("not run") == 2
    assert max(map(len, stream.getvalue().splitlines())) <= width


def test_a_run_of_two_cells_is_counted_once(result: Reproduction) -> None:
    """Where two cells are one at the size that was asked for."""
    page = page_text(result)

    assert "1 run, in all 1 min 40 s" in page
    assert "[runs.jsonl](tiny/runs.jsonl) has what each run was set to and every evaluation." in page


def test_two_runs_may_have_one_name(result: Reproduction) -> None:
    """Where they lay in two folders."""
    other = msgspec.structs.replace(RUN, started="2026-11-20T12:00:00+00:00", wall_s=20.0)
    cells = (result.cells[0], msgspec.structs.replace(result.cells[1], runs=(other,)))

    assert "2 runs, in all 2 min 00 s" in page_text(msgspec.structs.replace(result, cells=cells))


def test_the_commands_measure_the_same_sizes(result: Reproduction) -> None:
    """Rows of the declared size need no option; the others say theirs."""
    page = page_text(result)

    assert "edgebed reproduce papers_of_mine:PAPER --resume --row push --scale 0.5 --seeds 1\n" in page
    assert "edgebed reproduce papers_of_mine:PAPER --resume --row asgd" in page
    assert lines(page, "edgebed run") == ["edgebed run a", "edgebed run b"]
    assert "In the folder that has `scenarios/tiny`; each command" in page


def test_a_page_can_be_made_of_nothing() -> None:
    """It says so."""
    empty = Reproduction(
        paper="tiny",
        tables={table.title: tuple(row_result(name, {}) for name in table.rows) for table in tiny_paper().tables},
        cells=(),
    )

    page = page_text(empty)
    assert "4 rows: 4 not run." in page
    assert "Nothing has been run yet." in page
    assert "In a checkout of edgebed; each command" in page


def test_the_page_names_nothing_of_this_machine(result: Reproduction) -> None:
    """Neither host nor home nor folder."""
    empty = Series.empty()
    points = {"version": np.array([100, 200]), "accuracy": np.array([0.1, 0.9]), "t": np.array([1.0, 2.0])}
    series = dataclasses.replace(empty, evaluations=dataclasses.replace(empty.evaluations, **points))
    page = to_markdown(reproduction_page(tiny_paper(), result, {"Accuracy over updates": {"asgd": [series]}}))

    assert "![Accuracy over updates](tiny/accuracy-over-updates.svg)" in page
    for private in (socket.gethostname(), str(Path.home()), str(Path.cwd())):
        assert private not in page


def test_signs_of_tables_do_not_break_a_table(result: Reproduction) -> None:
    """Every line of a table has as many columns as its head."""
    page = page_text(result)
    tables = [part.splitlines() for part in page.split("\n\n") if part.startswith("|")]

    assert len(tables) == 3
    for table in tables:
        assert len({line.replace("\\|", "").count("|") for line in table}) == 1


@pytest.mark.parametrize(
    ("claim", "unit", "text"),
    [
        (None, "%", "–"),
        (Near(value=98.59, tolerance=0.3), "%", "98.59 %"),
        (Near(value=1.33e9, tolerance=1e8), "bytes", "1.33 GB"),
        (Sign(sign=1, value=0.2), "points", "+0.20 points (above 0)"),
        (Sign(sign=-1), "points", "below 0"),
        (AtLeast(value=191.0), "x", "at least 191 x"),
        (Never(), "updates", "never"),
    ],
)
def test_claims_in_words(claim, unit, text) -> None:
    """In the row's unit."""
    assert claim_text(claim, unit) == text


def test_measurements_in_words() -> None:
    """With the interval where there is one, and the number of seeds that gave a value."""
    values = {1: 98.4, 2: 98.6}
    assert measured_text(judge(ALONE, values)[0], values, "%") == "98.50 % (97.23 to 99.77, 2 seeds)"
    assert measured_text(judge(ALONE, {1: -0.25})[0], {1: -0.25}, "points") == "-0.25 points (1 seed)"
    partly = {1: 1e9, 2: None, 3: None}
    assert measured_text(judge(ALONE, partly)[0], partly, "bytes") == "1 GB (1 of 3 seeds)"
    assert measured_text(None, {1: None}, "bytes") == "not reached (1 seed)"
    assert measured_text(None, {}, "bytes") == "–"


def test_sizes_in_words() -> None:
    """The share is left out where it is all of the paper's updates."""
    assert size_text((250_000, 250_000), (1.0, 1.0)) == "250,000 updates"
    assert size_text((50_000, 50_000), (0.2, 0.2)) == "50,000 updates (20 %)"
    assert size_text((50_000, 250_000), (0.2, 1.0)) == "50,000 to 250,000 updates (20 % to 100 %)"
    assert [share_text(share) for share in (1, 0.2, 0.05, 0.0125, 0.001)] == ["100 %", "20 %", "5 %", "1.2 %", "0.1 %"]
    assert value_text(1.0, "updates") == "1 update"
