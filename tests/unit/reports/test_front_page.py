"""The front page of all reproductions and the appendix for those who check them."""

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs
from tiny_paper import tiny_paper

from edgebed.reports.studies.front_page import Reproduced, artifact_page, front_page
from edgebed.reports.writing.drawing import Chart
from edgebed.reports.writing.html import to_html
from edgebed.reports.writing.markdown import to_markdown, write
from edgebed.reports.writing.page import Figures, Page, Section
from edgebed.studies.cells.result_cache import RunResult
from edgebed.studies.papers.paper import Cause, Headline
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


def result_of(name: str, values: dict[int, float | None], cause: Cause | None = None) -> RowResult:
    """A row of the tiny paper with these values."""
    row = PAPER.rows[name]
    measured, finding = judge(row, values)
    return RowResult(
        row=name, what=row.what, cells=row.cells, unit=row.unit, paper="the claim", claim=row.claim, measured=measured,
        values=values, finding=finding, is_tested=finding is not None, resolution=0.0, seeds_wanted=3,
        updates=(1200, 1200), share=(1.0, 1.0), cause=cause,
    )  # fmt: skip


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
            result_of("difference", {1: 3.0, 2: 3.1, 3: 2.9}, cause=Cause("It is tiny.")),
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

    assert "| [tiny](tiny.md) | 3 | 1 | 1 | 1 | 0 | 1 |" in text
    assert "### It learns.\n\nIt does, *slowly*." in text
    assert "| ASGD | the claim | 80.50 % (79.26 to 81.74, 3 seeds) | reproduced |" in text
    assert f"![{CURVE}](tiny/accuracy-over-updates.svg)" in text
    assert "| No mistake | the claim | – | not run |" in text
    assert "[links](links.md)" in text


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
