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
from edgebed.studies.papers.paper import AtLeast, AtMost, Near, Never, Reading, Row, Sign, Table
from edgebed.studies.reproduction.analytic_rows import ComputedRow
from edgebed.studies.reproduction.causes import CauseResult
from edgebed.studies.reproduction.findings import judge
from edgebed.studies.reproduction.reproduction import CellResult, Reproduction, RowResult
from edgebed.studies.statistics import ConfidenceInterval

ALONE = Row(what="", cells=("a",), measure=lambda _: None, unit="%")
RUN = RunResult(
    seed=1, run="tiny-digits/0004", wall_s=100.0, resumed=False, started="2026-11-20T10:00:00+00:00", code="abc",
    versions={"edgebed": "0.1.0", "python": "3.11.7"}, cpu="A processor", cores=2, memory_bytes=4 * 10**9,
)  # fmt: skip


def row_result(name: str, values: dict[int, float | None], *, share: float = 1.0, seeds: int = 2) -> RowResult:
    """What these values make of a row of the tiny paper."""
    row = tiny_paper().rows[name]
    measured, finding, size, _ = judge(row, values, seeds=seeds, full_size=share >= 1)
    updates = round(400 * share)
    return RowResult(
        row=name, what=row.what, cells=row.cells, unit=row.unit, paper=claim_text(row.claim, row.unit),
        claim=row.claim, measured=measured, values=values, finding=finding, size=size, is_tested=bool(finding),
        resolution=0.0, seeds_wanted=seeds, updates=(updates, updates), share=(share, share), note=row.note,
        is_primary=row.is_primary, beside=row.beside,
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
    assert "3 claims: 1 reproduced, 2 not run. " in page
    assert "Further rows: 0 of the same claims in other ways or to check the measuring, 1 without a claim." in page
    assert [line for line in page.splitlines() if "seeds a row" in line] == ["2 seeds a row, as stated."] * 2
    assert "| reproduced | at least 15.00 % | 8.17 points |" in asgd
    assert "chosen by the test\nimages" in page


def test_fewer_seeds_than_were_stated_are_counted_as_such_in_the_first_line(result: Reproduction) -> None:
    """Their values are shown, and nothing is found."""
    table = {"Table 1: accuracy": (row_result("asgd", {1: 80.0, 2: 81.0}, seeds=3), row_result("difference", {}))}
    page = page_text(msgspec.structs.replace(result, tables=result.tables | table))

    assert "3 claims: 1 with fewer seeds than were stated, without a finding, 2 not run. " in page
    assert "| 80.50 % (74.15 to 86.85, 2 seeds) | seeds missing | at least 15.00 % | – |" in lines(page, "| ASGD |")[0]


def test_evaluations_that_lie_apart_are_told_of(result: Reproduction) -> None:
    """Beside a claim that they blur; where there is none, if they leave much of the value open."""
    other = row_result("difference", {})
    blurred = msgspec.structs.replace(row_result("asgd", {1: 80.0, 2: 81.0}), resolution=0.5)
    page = page_text(msgspec.structs.replace(result, tables=result.tables | {"Table 1: accuracy": (blurred, other)}))

    assert "- ASGD: Accurate to 0.50 %, as evaluations lie apart." in page
    for resolution, is_told in ((600.0, True), (400.0, False)):
        without = msgspec.structs.replace(row_result("push", {1: 2000.0}), resolution=resolution)
        bytes_table = {"Table 2: bytes": (without, row_result("perfect", {}))}
        page = page_text(msgspec.structs.replace(result, tables=result.tables | bytes_table))
        assert ("- A push of AdaComp: Accurate to 600 B, as evaluations lie apart." in page) == is_told


def caused(result: Reproduction, cause: CauseResult | None, finding: str = "differs") -> Reproduction:
    """One in which ASGD's accuracy differs from the paper's, for which there may be a cause."""
    row = msgspec.structs.replace(row_result("asgd", {1: 60.0, 2: 60.1}), finding=finding, cause=cause)
    open_row = msgspec.structs.replace(row_result("difference", {1: 3.0, 2: 3.1}), finding="not distinguishable")
    return msgspec.structs.replace(result, tables=result.tables | {"Table 1: accuracy": (row, open_row)})


def test_a_cause_has_the_row_that_switches_it_and_its_share(result: Reproduction) -> None:
    """With the interval of the share; the row in the letters of code, in Markdown and in HTML."""
    share = ConfidenceInterval(mean=0.8, low=0.7, high=0.904, seeds=2)
    page = reproduction_page(
        tiny_paper(), caused(result, CauseResult(text="The rate.", row="difference", share=share)), {}
    )

    said = "ASGD: Why: The rate. Row {}: +3.05 points (+2.41 to +3.69, 2 seeds), 80 % (70 to 90) of the difference."
    assert f"- {said.format('`difference`')}\n" in to_markdown(page)
    assert said.format("<code>difference</code>") in to_html(page)
    alone = CauseResult(text="The rate.", row="push", share=ConfidenceInterval(mean=0.8))
    assert "Row `push`: 2 kB (1 seed), 80 % of the difference." in page_text(caused(result, alone))


@pytest.mark.parametrize(
    ("cause", "said", "counted"),
    [
        (CauseResult(text="The rate.", row="push"), "Why: The rate. Row `push`: 2 kB (1 seed).", 1),
        (
            CauseResult(text="The rate.", row="push", why_not="too few seeds have both"),
            "Perhaps: The rate. Row `push`: 2 kB (1 seed). It does not count: too few seeds have both.",
            0,
        ),
        (
            CauseResult(text="The rate.", row="", why_not="it was not tried"),
            "Perhaps: The rate. It does not count: it was not tried.",
            0,
        ),
        (None, "Why it differs was not found.", 0),
    ],
)
def test_a_guess_is_no_cause(result: Reproduction, cause: CauseResult | None, said: str, counted: int) -> None:
    """The page counts causes alone that were shown, of what differs; a cause of what does not is nowhere."""
    page = page_text(caused(result, cause))

    assert f"- ASGD: {said}\n" in page
    assert f" For {counted} of 1 difference a cause of most of it was shown. " in page
    assert "Why it differs was not found" not in page_text(caused(result, None, finding="not distinguishable"))


def test_a_text_has_the_values_of_the_rows_that_it_names(result: Reproduction) -> None:
    """A table's, a note's and a cause's; without a sign, and a dash where nothing was measured."""
    paper = tiny_paper()
    first, *others = paper.tables
    text = dataclasses.replace(first, text="It is {row:difference}, of {row:push}, never {row:perfect}.")
    cause = CauseResult(text="Some {row:push} of it.", row="", why_not="it was not tried")
    found = caused(result, cause)
    asgd = msgspec.structs.replace(found.rows["asgd"], note="By {row:difference}.")
    found = msgspec.structs.replace(
        found, tables=found.tables | {"Table 1: accuracy": (asgd, found.rows["difference"])}
    )
    page = to_markdown(reproduction_page(dataclasses.replace(paper, tables=(text, *others)), found, {}))

    assert "It is 3.05 points, of 2 kB, never –." in page
    assert "- ASGD: By 3.05 points.\n" in page
    assert "Perhaps: Some 2 kB of it. It does not count" in page
    assert "{" not in page


def test_what_the_other_tests_of_a_table_take_away_is_told(result: Reproduction) -> None:
    """With what the row would be by itself."""
    row = msgspec.structs.replace(
        row_result("asgd", {1: 80.0, 2: 81.0}), finding="not distinguishable", by_itself="reproduced"
    )
    tables = {"Table 1: accuracy": (row, row_result("difference", {}))}
    page = page_text(msgspec.structs.replace(result, tables=result.tables | tables))

    (line,) = lines(page, "- ASGD: By its")
    assert "reproduced" in line
    assert "not distinguishable" in line


def test_another_way_to_measure_a_claim_is_not_counted_again(result: Reproduction) -> None:
    """It is said what it stands beside, and how many such rows there are."""
    beside = msgspec.structs.replace(row_result("difference", {1: -3.0, 2: -3.1}), is_primary=False, beside="asgd")
    tables = {"Table 1: accuracy": (row_result("asgd", {1: 80.0, 2: 81.0}), beside)}
    page = page_text(msgspec.structs.replace(result, tables=result.tables | tables))

    assert "2 claims: 1 reproduced, 1 not run. Further rows: 1 of the same claims in other ways" in page
    assert "| `difference`, beside `asgd` |" in page


def test_an_effect_in_direction_says_how_its_size_compares(result: Reproduction) -> None:
    """Where that is told; it is counted apart from what was reproduced."""
    row = msgspec.structs.replace(row_result("difference", {1: -3.0, 2: -3.1}), finding="in direction", size="smaller")
    tables = {"Table 1: accuracy": (row_result("asgd", {1: 80.0, 2: 81.0}), row)}
    page = page_text(msgspec.structs.replace(result, tables=result.tables | tables))

    assert "| in direction; size smaller |" in lines(page, "| AdaComp less ASGD |")[0]
    assert "3 claims: 1 reproduced, 1 in direction alone, 1 not run. " in page


def test_runs_that_diverged_are_told_with_how_often_they_may(result: Reproduction) -> None:
    """One of two may be from one to 99 of a hundred; the best and the last accuracy stand beside the mean."""
    row = msgspec.structs.replace(row_result("asgd", {1: 80.0, 2: 81.0}), diverged=1, best=81.0, final=79.25)
    tables = {"Table 1: accuracy": (row, row_result("difference", {}))}
    page = page_text(msgspec.structs.replace(result, tables=result.tables | tables))

    assert "- ASGD: A run diverged with 1 of 2 seeds (1 to 99 % at 95 %)." in page
    assert "| 80.50 % (74.15 to 86.85, 2 seeds), best 81.00 %, final 79.25 % |" in lines(page, "| ASGD |")[0]
    same = msgspec.structs.replace(row, final=80.5, diverged=0, best=None)
    page = page_text(
        msgspec.structs.replace(
            result, tables=result.tables | {"Table 1: accuracy": (same, tables["Table 1: accuracy"][1])}
        )
    )
    assert "| 80.50 % (74.15 to 86.85, 2 seeds) |" in page
    assert "diverged" not in lines(page, "- ASGD")[0]


def test_each_reading_of_a_table_is_shown_for_all_of_its_claims(result: Reproduction) -> None:
    """How many it meets, misses and leaves open: one has to fit them all. A row that it does not change is the same."""
    readings = (
        Reading(name="as printed", text="What it says.", cells={}),
        Reading(name="half of it", text="What it may mean.", cells={"adacomp": "asgd"}),
    )
    paper = tiny_paper()
    first, *others = paper.tables
    tables = (dataclasses.replace(each, readings=readings) for each in (first, *others))
    paper = dataclasses.replace(paper, tables=tuple(tables))
    read = msgspec.structs.replace(row_result("difference", {1: 3.0, 2: 3.1}), row="difference:half-of-it")
    read = msgspec.structs.replace(read, is_primary=False, beside="difference", finding="differs")
    tables = {
        "Table 1: accuracy": (
            row_result("asgd", {1: 80.0, 2: 81.0}), row_result("difference", {1: -3.0, 2: -3.1}), read
        )
    }  # fmt: skip
    page = to_markdown(reproduction_page(paper, msgspec.structs.replace(result, tables=result.tables | tables), {}))

    assert "- *as printed*: What it says.\n- *half of it*: What it may mean." in page
    assert "|  | paper | as printed | half of it |" in page
    asgd = "80.50 % (74.15 to 86.85, 2 seeds): reproduced"
    assert f"| ASGD | at least 15.00 % | {asgd} | the same |" in page
    assert (
        "| AdaComp less ASGD | below 0 | -3.05 points (-3.69 to -2.41, 2 seeds): reproduced "
        "| +3.05 points (+2.41 to +3.69, 2 seeds): differs |"
    ) in page
    assert (
        "- as printed: 2 met, 0 missed, 0 open\n- half of it: 1 met, 1 missed, 0 open; of 1 row that it changes 0 met, "
        "1 missed, 0 open"
    ) in page
    assert len(lines(page, "| `difference")) == 1
    assert "| No mistake | never | –: not run | the same |" in page
    assert len(lines(page, "| A push of AdaComp |")) == 1  # nothing is claimed of it
    assert "as printed" not in page_text(result)


def test_an_effect_in_direction_meets_a_claim_and_what_is_not_run_leaves_it_open(result: Reproduction) -> None:
    """By the reading that the rows are declared by, which a table may have alone."""
    paper, printed = tiny_paper(), Reading(name="as printed", text="", cells={})
    first, *others = paper.tables
    paper = dataclasses.replace(paper, tables=(dataclasses.replace(first, readings=(printed,)), *others))
    for finding, counted in (("in direction", "1 met, 0 missed, 1 open"), ("equal", "0 met, 1 missed, 1 open")):
        row = msgspec.structs.replace(row_result("asgd", {1: 80.0, 2: 81.0}), finding=finding)
        tables = {"Table 1: accuracy": (row, row_result("difference", {}))}
        page = reproduction_page(paper, msgspec.structs.replace(result, tables=result.tables | tables), {})
        assert f"- as printed: {counted}" in to_markdown(page)


def test_a_table_of_rows_without_cells_states_no_seeds(result: Reproduction) -> None:
    """There is nothing to run."""
    without = dataclasses.replace(tiny_paper().rows["push"], cells=())
    computed = Table(title="Table 2: bytes", rows={"push": without})
    paper = dataclasses.replace(tiny_paper(), tables=(tiny_paper().tables[0], computed))
    tables = {"Table 2: bytes": (msgspec.structs.replace(row_result("push", {1: 2000.0}), cells=()),)}
    page = to_markdown(reproduction_page(paper, msgspec.structs.replace(result, tables=result.tables | tables), {}))

    assert page.count("seeds a row, as stated.") == 1


def test_what_must_be_said_of_data_is_said_once_with_what_has_read_it(result: Reproduction) -> None:
    """Runs and computed rows are counted, a run of two cells once; what is the published data needs no word."""
    said = {"digits": "another file than the published one"}
    run = msgspec.structs.replace(RUN, data=said)
    other = msgspec.structs.replace(RUN, run="tiny-digits/0005", data={"digits": "half of it"})
    row = ComputedRow(row="a", what="", value=1.0, wall_s=1.0, code="abc", versions={}, data=said)
    more = ((), (other,))
    cells = [
        msgspec.structs.replace(cell, runs=(run, *others)) for cell, others in zip(result.cells, more, strict=True)
    ]
    page = page_text(
        msgspec.structs.replace(
            result, cells=tuple(cells), computed=(row, row, msgspec.structs.replace(row, data={}))
        )
    )  # fmt: skip

    both = "Data `digits` (1 run and 2 computed rows): another file than the published one."
    assert page.count(both) == 2  # at the top, and with the machine
    assert page.count("Data `digits` (1 run): half of it.") == 2
    assert f"- {both}\n- Data `digits` (1 run): half of it." in page
    assert "Data `digits`" not in page_text(result)


def test_the_machine_is_named_with_the_instructions_that_round_its_sums(result: Reproduction) -> None:
    """Where a line has them; others are of before they were noted."""
    other = msgspec.structs.replace(RUN, instructions="AVX2", run="tiny-digits/0005")
    cells = (result.cells[0], msgspec.structs.replace(result.cells[1], runs=(other,)))
    page = page_text(msgspec.structs.replace(result, cells=cells))

    assert "- A processor, 2 cores, 4 GB of memory\n- A processor (AVX2), 2 cores, 4 GB of memory\n" in page


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
    assert "3 claims: 3 not run. " in page
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
        (AtMost(value=0.54, published=0.27), "points", "+0.27 points"),
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
