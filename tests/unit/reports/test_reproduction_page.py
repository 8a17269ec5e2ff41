"""The page of a reproduction: made from results alone, with the size of every row, and nothing of this machine."""

import dataclasses
import io
import re
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import goldens
import msgspec
import numpy as np
import pytest
from evaluated import evaluations
from rich.console import Console
from tiny_paper import tiny_paper

from edgebed.journal.series import Series
from edgebed.reports.studies.reproduction_page import reproduction_page
from edgebed.reports.writing.html import to_html
from edgebed.reports.writing.markdown import to_markdown
from edgebed.reports.writing.terminal import show
from edgebed.studies.cells.result_cache import RunResult
from edgebed.studies.claims_text import claim_text, criterion_text, measured_text, share_text, size_text, value_text
from edgebed.studies.papers.paper import AtLeast, AtMost, Near, Never, Paper, Reading, Row, Sign, Table
from edgebed.studies.reproduction.analytic_rows import ComputedRow
from edgebed.studies.reproduction.causes import CauseResult
from edgebed.studies.reproduction.findings import judge
from edgebed.studies.reproduction.reproduction import CellResult, Reproduction, RowResult
from edgebed.studies.statistics import ConfidenceInterval

GOLDEN = Path(__file__).parent / "goldens/reproduction.txt"
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


ASGD, OPEN = row_result("asgd", {1: 80.0, 2: 81.0}), row_result("difference", {})
PUSH, PERFECT = row_result("push", {1: 2000.0}, share=0.5, seeds=1), row_result("perfect", {})
RESULT = Reproduction(
    paper="papers_of_mine:PAPER",
    tables={"Table 1: accuracy": (ASGD, OPEN), "Table 2: bytes": (PUSH, PERFECT)},
    cells=(
        CellResult(cell="asgd", command="edgebed run a", updates=400, share=1.0, runs=(RUN,)),
        CellResult(cell="adacomp", command="edgebed run b", updates=200, share=0.5, runs=(RUN,)),
    ),
)
"""One row of full size with two seeds, one of half the size, two that were not run."""
CHANGED = msgspec.structs.replace
HALVED = Reading(name="half of it", text="What it may mean.", cells={"adacomp": "asgd"})
PRINTED = Reading(name="as printed", text="What it says.", cells={})
DATA = {"digits": "another file than the published one"}
COMPUTED = ComputedRow(row="a", what="", value=1.0, wall_s=1.0, code="abc", versions={}, data=DATA)
SHARE = ConfidenceInterval(mean=0.8, low=0.7, high=0.904, seeds=2)


def with_rows(*rows: RowResult, table: str = "Table 1: accuracy") -> Reproduction:
    """The result with other rows in a table."""
    return CHANGED(RESULT, tables=RESULT.tables | {table: rows})


def with_runs(*runs: RunResult, **more: Any) -> Reproduction:
    """The result with other runs of the second cell."""
    return CHANGED(RESULT, cells=(RESULT.cells[0], CHANGED(RESULT.cells[1], runs=runs)), **more)


def caused(cause: CauseResult | None, finding: str = "differs", note: str = "") -> Reproduction:
    """One in which ASGD's accuracy differs from the paper's, for which there may be a cause."""
    row = CHANGED(row_result("asgd", {1: 60.0, 2: 60.1}), finding=finding, cause=cause, note=note)
    return with_rows(row, CHANGED(row_result("difference", {1: 3.0, 2: 3.1}), finding="not distinguishable"))


def tiny(text: str = "", tables: tuple[Table, ...] = (), readings: Sequence[Sequence[Reading]] = ((), ())) -> Paper:
    """The paper with another text of its first table, other tables in place of the last, and readings of each."""
    first, *others = tiny_paper().tables
    found = (dataclasses.replace(first, text=text or first.text), *(tables or others))
    read = (dataclasses.replace(table, readings=tuple(each)) for table, each in zip(found, readings, strict=True))
    return dataclasses.replace(tiny_paper(), tables=tuple(read))


PAGES = {
    "fewer seeds than were stated: shown, counted as such, nothing is found": with_rows(
        row_result("asgd", {1: 80.0, 2: 81.0}, seeds=3), OPEN
    ),
    "evaluations that lie apart, beside a claim that they blur": with_rows(CHANGED(ASGD, resolution=0.5), OPEN),
    "evaluations that lie apart and leave much of a value open": with_rows(
        CHANGED(row_result("push", {1: 2000.0}), resolution=600.0), PERFECT, table="Table 2: bytes"
    ),
    "evaluations that lie apart and leave little of a value open": with_rows(
        CHANGED(row_result("push", {1: 2000.0}), resolution=400.0), PERFECT, table="Table 2: bytes"
    ),
    "a cause with the row that switches it, its share and the interval of that": caused(
        CauseResult(text="The rate.", row="difference", share=SHARE)
    ),
    "a cause whose share has no interval": caused(
        CauseResult(text="The rate.", row="push", share=ConfidenceInterval(mean=0.8))
    ),
    "a cause without a share": caused(CauseResult(text="The rate.", row="push")),
    "a guess is no cause": caused(CauseResult(text="The rate.", row="push", why_not="too few seeds have both")),
    "a guess that was not tried": caused(CauseResult(text="The rate.", row="", why_not="it was not tried")),
    "a difference whose cause was not found": caused(None),
    "a cause of what does not differ is nowhere": caused(None, finding="not distinguishable"),
    "texts with the values of the rows that they name": (
        tiny(text="It is {row:difference}, of {row:push}, never {row:perfect}."),
        caused(
            CauseResult(text="Some {row:push} of it.", row="", why_not="it was not tried"), note="By {row:difference}."
        ),
    ),
    "what the other tests of a table take away": with_rows(
        CHANGED(ASGD, finding="not distinguishable", by_itself="reproduced"), OPEN
    ),
    "another way to measure a claim is not counted again": with_rows(
        ASGD, CHANGED(row_result("difference", {1: -3.0, 2: -3.1}), is_primary=False, beside="asgd")
    ),
    "an effect in direction, and how its size compares": with_rows(
        ASGD, CHANGED(row_result("difference", {1: -3.0, 2: -3.1}), finding="in direction", size="smaller")
    ),
    "runs that diverged; the best and the last accuracy beside the mean": with_rows(
        CHANGED(ASGD, diverged=1, best=81.0, final=79.25), OPEN
    ),
    "the last accuracy is the mean": with_rows(CHANGED(ASGD, final=80.5, diverged=0), OPEN),
    "readings, each for all claims; what one does not change is the same, and what claims nothing is not there": (
        tiny(readings=((PRINTED, HALVED), (PRINTED, HALVED))),
        with_rows(
            ASGD, row_result("difference", {1: -3.0, 2: -3.1}),
            CHANGED(row_result("difference", {1: 3.0, 2: 3.1}), row="difference:half-of-it", is_primary=False,
                    beside="difference", finding="differs"),
        ),
    ),
    "a reading alone: an effect in direction meets its claim, what is not run leaves one open": (
        tiny(readings=((PRINTED,), ())), with_rows(CHANGED(ASGD, finding="in direction"), OPEN)
    ),
    "a reading alone: what is equal misses its claim": (
        tiny(readings=((PRINTED,), ())), with_rows(CHANGED(ASGD, finding="equal"), OPEN)
    ),
    "a table of rows without cells states no seeds": (
        tiny(tables=(Table(title="Table 2: bytes",
                           rows={"push": dataclasses.replace(tiny_paper().rows["push"], cells=())}),)),
        with_rows(CHANGED(row_result("push", {1: 2000.0}), cells=()), table="Table 2: bytes"),
    ),
    "what must be said of data, once, with how many runs and computed rows have read it": CHANGED(
        with_runs(CHANGED(RUN, data=DATA), CHANGED(RUN, run="tiny-digits/0005", data={"digits": "half of it"})),
        computed=(COMPUTED, COMPUTED, CHANGED(COMPUTED, data={})),
    ),
    "the instructions that round sums": with_runs(CHANGED(RUN, instructions="AVX2", run="tiny-digits/0005")),
    "two runs of one name, in two folders": with_runs(
        CHANGED(RUN, started="2026-11-20T12:00:00+00:00", wall_s=20.0)
    ),
    "nothing has been run": Reproduction(
        paper="tiny", cells=(),
        tables={table.title: tuple(row_result(name, {}) for name in table.rows) for table in tiny_paper().tables},
    ),
}  # fmt: skip


@pytest.fixture
def result() -> Reproduction:
    """The result that others are changes of."""
    return RESULT


def page_text(found: Reproduction, paper: Paper | None = None) -> str:
    """The page of the tiny paper without charts, in Markdown."""
    return to_markdown(reproduction_page(paper or tiny_paper(), found, {}))


def test_the_page_and_what_is_another_on_it() -> None:
    """A run of two cells is counted once; rows that were not run are there, too; commands measure the same sizes."""
    page = page_text(RESULT)
    changed = {
        name: goldens.changes(page, page_text(*given[::-1]) if isinstance(given, tuple) else page_text(given))
        for name, given in PAGES.items()
    }
    legend = re.compile(r"^## How to read a row\n.*?(?=^## )", re.MULTILINE | re.DOTALL)

    goldens.compare(legend.sub("", page) + goldens.sections(changed), GOLDEN)


def test_the_row_of_a_cause_has_the_letters_of_code_in_html_too() -> None:
    """As in Markdown."""
    page = reproduction_page(tiny_paper(), PAGES["a cause without a share"], {})
    assert "ASGD: Why: The rate. Row <code>push</code>: 2 kB (1 seed)." in to_html(page)


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


def test_the_page_names_nothing_of_this_machine(result: Reproduction) -> None:
    """Neither host nor home nor folder."""
    empty = Series.empty()
    series = dataclasses.replace(empty, evaluations=evaluations([100, 200], [0.1, 0.9], t=np.array([1.0, 2.0])))
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
