"""The front page of all reproductions and the appendix for those who check them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tiny_paper import tiny_paper

from edgebed.reports.studies.front_page import Reproduced, artifact_page, front_page
from edgebed.reports.writing.figures import Chart
from edgebed.reports.writing.html import to_html
from edgebed.reports.writing.markdown import to_markdown, write
from edgebed.reports.writing.page import Figures, Page, Section
from edgebed.studies.cells.result_cache import RunResult
from edgebed.studies.papers.paper import Headline
from edgebed.studies.reproduction.causes import CauseResult
from edgebed.studies.reproduction.findings import judge
from edgebed.studies.reproduction.reproduction import CellResult, Reproduction, RowResult

CURVE = "Accuracy over updates"
PAPER = replace(
    tiny_paper(),
    headlines=(
        Headline(claim="It learns.", rows=("asgd", "difference"), found="It does, *slowly*.", chart=CURVE),
        Headline(claim="It never fails.", rows=("perfect",), found="Nobody looked."),
    ),
)


def result_of(name: str, values: dict[int, float | None], **settings: Any) -> RowResult:
    """A row of the tiny paper with these values."""
    row = PAPER.rows[name]
    measured, finding, size, _ = judge(row, values)
    result = RowResult(
        row=name, what=row.what, cells=row.cells, unit=row.unit, paper="the claim", claim=row.claim, measured=measured,
        values=values, finding=finding, size=size, is_tested=finding is not None, resolution=0.0, seeds_wanted=3,
        updates=(1200, 1200), share=(1.0, 1.0), is_primary=row.is_primary, beside=row.beside,
    )  # fmt: skip
    return structs.replace(result, **settings)


def one_of(*rows: RowResult) -> Reproduced:
    """A paper of which nothing but these rows is known."""
    return Reproduced(PAPER, Reproduction(paper="tiny", tables={"T": rows}, cells=()), Page(name="tiny", parts=[]))


def counted(*rows: RowResult) -> dict[str, int]:
    """The line of a paper on the front page, by column, without what is zero."""
    text = to_markdown(front_page([one_of(*rows)._replace(paper=replace(PAPER, headlines=()))]))
    head, line = (
        [cell.strip() for cell in found.strip("|").split("|")]
        for found in text.splitlines()
        if found.startswith(("| paper |", "| [tiny]"))
    )
    return {name: int(count) for name, count in zip(head[1:], line[1:], strict=True) if count != "0"}


def run_of(seed: int) -> RunResult:
    """A run of ten seconds."""
    return RunResult(
        seed=seed, run=f"tiny-digits/000{seed}", wall_s=10.0, resumed=False, started="2026-01-02T03:04:05+00:00",
        code="c0de", versions={}, cpu="A processor", cores=2, memory_bytes=8 * 2**30,
    )  # fmt: skip


@pytest.fixture
def reproduced() -> Reproduced:
    """Three seeds confirm a row and contradict another, whose cause is known; two were not run."""
    tables = {
        "Table 1: accuracy": (
            result_of("asgd", {1: 80.0, 2: 81.0, 3: 80.5}),
            result_of("difference", {1: 3.0, 2: 3.1, 3: 2.9}, cause=CauseResult(text="It is tiny.", row="push")),
        ),
        "Table 2: bytes": (result_of("push", {}), result_of("perfect", {})),
    }
    cells = (
        CellResult(cell="asgd", command="", updates=1200, share=1.0, runs=tuple(map(run_of, (1, 2, 3)))),
        CellResult(cell="adacomp", command="", updates=600, share=0.5, runs=tuple(map(run_of, (1, 2, 3)))),
    )
    chart = Chart(CURVE, lambda axes: axes.plot([0, 1], [0, 1]), 1)
    return Reproduced(
        PAPER,
        Reproduction(paper="tiny", tables=tables, cells=cells),
        Page(name="tiny", parts=[Section("Table 1: accuracy", [Figures([chart])])]),
    )


def test_the_front_page_counts_what_is_decided_and_explained(reproduced: Reproduced) -> None:
    """Claims alone count; then each headline with its sentence, its rows and its chart."""
    text = to_markdown(front_page([reproduced], others=["links"]))

    assert "| [tiny](tiny.md) | 3 | 1 | 0 | 0 | 0 | 1 | 1 | 1 |" in text
    assert "### It learns.\n\nIt does, *slowly*." in text
    assert "| ASGD | the claim | 80.50 % (79.26 to 81.74, 3 seeds) | reproduced |" in text
    assert f"![{CURVE}](tiny/accuracy-over-updates.svg)" in text
    assert "| No mistake | the claim | – | not run |" in text
    assert "[links](links.md)" in text


BY_SEED = {1: 80.0, 2: 81.0, 3: 80.5}


@pytest.mark.parametrize(
    ("settings", "way"),
    [
        ({"finding": "reproduced"}, "as published"),
        ({"finding": "reproduced", "is_whole": False}, "other setting"),
        ({"finding": "in direction", "size": "smaller"}, "in direction"),
        ({"finding": "in direction", "size": "larger", "is_whole": False}, "in direction"),
        ({"finding": "differs"}, "not"),
        ({"finding": "equal"}, "not"),
        ({"finding": "not distinguishable"}, "not decided"),
        ({"finding": "so far inside"}, "not decided"),
        ({"finding": "so far outside"}, "not decided"),
        ({"finding": None}, "not decided"),
        ({"values": {}, "measured": None, "finding": None}, "not decided"),
        ({"values": {1: 80.0, 2: 81.0}, "finding": "reproduced"}, "not decided"),
        ({"values": {1: 80.0}, "finding": "reproduced", "is_tested": False}, "as published"),
    ],
)
def test_a_claim_counts_in_one_way(settings: dict[str, Any], way: str) -> None:
    """By its finding and its size; two seeds decide nothing where seeds decide."""
    assert counted(structs.replace(result_of("asgd", BY_SEED), **settings)) == {"claims": 1, way: 1}


@pytest.mark.parametrize("finding", ["differs", "equal"])
@pytest.mark.parametrize(
    ("beside", "way"),
    [
        ({"finding": "reproduced"}, "another reading"),
        ({"finding": "reproduced", "is_whole": False}, "another reading"),
        ({"finding": "in direction"}, "another reading"),
        ({"finding": "reproduced", "values": {1: 80.0, 2: 81.0}}, "not"),
        ({"finding": "reproduced", "beside": "push"}, "not"),
        ({"finding": "differs"}, "not"),
        ({"finding": "so far inside"}, "not"),
        ({"finding": "consistent"}, "not"),
        ({"finding": None}, "not"),
    ],
)
def test_what_is_missed_as_printed_may_be_met_by_another_reading(
    finding: str, beside: dict[str, Any], way: str
) -> None:
    """One of that claim, which is decided; where the first reading meets the claim, others make no difference."""
    other = structs.replace(result_of("difference", BY_SEED, is_primary=False), **{"beside": "asgd"} | beside)

    assert counted(result_of("asgd", BY_SEED, finding=finding), other) == {"claims": 1, way: 1}
    assert counted(result_of("asgd", BY_SEED), other) == {"claims": 1, "as published": 1}
    assert counted(result_of("asgd", BY_SEED, finding="so far outside"), other) == {"claims": 1, "not decided": 1}


def test_a_claim_that_three_rows_measure_is_counted_once() -> None:
    """And a row without a claim not at all."""
    others = [result_of("difference", BY_SEED, row=name, is_primary=False, beside="asgd") for name in "ab"]

    assert counted(result_of("asgd", BY_SEED), *others, result_of("push", BY_SEED)) == {
        "claims": 1,
        "as published": 1,
    }  # fmt: skip
    assert counted(result_of("asgd", BY_SEED), result_of("difference", BY_SEED)) == {
        "claims": 2,
        "as published": 1,
        "not": 1,
    }


@pytest.mark.parametrize(
    ("finding", "why_not", "explained"),
    [
        ("differs", "", True),
        ("equal", "", True),
        ("differs", "it was not tried", False),
        ("so far outside", "", False),
        ("reproduced", "", False),
    ],
)
def test_a_claim_is_explained_where_it_is_missed_and_its_cause_counts(
    finding: str, why_not: str, explained: bool
) -> None:
    """Whether another reading meets it or not."""
    row = result_of("asgd", BY_SEED, finding=finding, cause=CauseResult(text="So.", row="push", why_not=why_not))
    beside = result_of("difference", BY_SEED, finding="reproduced", is_primary=False, beside="asgd")

    for rows in ((row,), (row, beside)):
        assert counted(*rows).get("explained", 0) == explained
    assert "explained" not in counted(structs.replace(row, cause=None))
    assert "explained" not in counted(structs.replace(row, values={1: 80.0, 2: 81.0}))


def test_a_headlines_sentence_has_the_values_of_its_rows() -> None:
    """Of those that it names in braces, whichever table they are in."""
    headline = Headline(claim="It learns.", rows=("asgd",), found="To {row:asgd}, with {row:push}, or {row:perfect}.")
    found = one_of(*(result_of(name, values) for name, values in (("asgd", BY_SEED), ("push", {}), ("perfect", {}))))
    text = to_markdown(front_page([found._replace(paper=replace(PAPER, headlines=(headline,)))]))

    assert "To 80.50 %, with –, or –." in text


def test_charts_of_a_papers_page_are_not_written_twice(reproduced: Reproduced, tmp_path: Path) -> None:
    """In Markdown they are those beside the paper's page; in HTML they are in the page, and links lead to HTML."""
    write(front_page([reproduced]), tmp_path)

    assert list((tmp_path / "index").iterdir()) == []
    page = (tmp_path / "index.html").read_text()
    assert "<svg" in page
    assert '<a href="tiny.html">' in page
    assert ".md" not in page


def test_the_appendix_has_the_commands_and_what_they_cost(reproduced: Reproduced) -> None:
    """A run that several rows use is counted once."""
    text = to_markdown(artifact_page([reproduced]))

    assert "### C1: It learns." in text
    assert "| AdaComp less ASGD | +3.00 points (+2.75 to +3.25, 3 seeds) | differs |" in text
    assert "3 runs, 30.0 s on one core." in text
    assert "edgebed reproduce tiny --row asgd --row difference --resume" in text
    assert "<svg" not in to_html(artifact_page([reproduced]))


def test_what_a_gpu_computed_is_no_time_of_a_core(reproduced: Reproduced) -> None:
    """The appendix has both; whoever has no GPU knows that a part of the cost is missing."""
    first, *others = reproduced.result.cells
    faster = structs.replace(first, runs=tuple(structs.replace(run, torch_device="A GPU") for run in first.runs[:2]))
    result = structs.replace(reproduced.result, cells=(faster, structs.replace(others[0], runs=first.runs[2:])))
    text = to_markdown(artifact_page([reproduced._replace(result=result)]))

    assert "3 runs, 10.0 s on one core and 20.0 s on A GPU." in text
