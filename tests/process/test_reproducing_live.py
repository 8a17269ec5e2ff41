"""A paper with a cell that is run live beside one that is run in virtual time: neither counts for the other."""

from pathlib import Path

import pytest

from edgebed.reports.studies.reproduction_page import reproduction_page
from edgebed.reports.writing.markdown import to_markdown
from edgebed.running.run import without_report
from edgebed.studies.cells.cells import DECLARED, CellRun, PaperCells
from edgebed.studies.cells.result_cache import ResultCache
from edgebed.studies.cells.run_index import RunIndex
from edgebed.studies.cells.running_cells import CellRunner
from edgebed.studies.papers.measuring import updates_per_s
from edgebed.studies.papers.paper import Cell, Paper, Row, Table
from edgebed.studies.reproduction.reproduction import evaluate

SCENARIO = """
name: live-digits
question: How fast is it?
task: { data: digits, model: small, batch_size: 10, gradient_time: 5ms }
method: asgd
fleet: { edge: { count: 2, waiting: 10ms } }
evaluation: { every: 50 updates }
stop: { updates: 100 }
variants:
  asgd: {}
"""
PAPER = Paper(
    name="live",
    citation="Nobody 2026, A live paper.",
    text="",
    window=1,
    cells={
        "live": Cell(scenario="digits.yaml", variant="asgd", runtime="process"),
        "virtual": Cell(scenario="digits.yaml", variant="asgd"),
    },
    tables=(
        Table(
            title="Rates",
            seeds=1,
            rows={
                cell: Row(what=f"Rate, {cell}", cells=(cell,), measure=updates_per_s(cell), unit="updates/s")
                for cell in ("live", "virtual")
            },
        ),
    ),
)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for runs beside the scenario."""
    (tmp_path / "scenarios/live").mkdir(parents=True)
    (tmp_path / "scenarios/live/digits.yaml").write_text(SCENARIO)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


def test_a_live_cell_is_run_live_and_counts_as_such(root: Path) -> None:
    """It has a rate and a verdict of its own; with the page's file alone nothing is run again."""
    cells = PaperCells(PAPER)
    kept = ResultCache(cells, root.parent / "runs.jsonl")
    live, virtual = (CellRun(name, 1.0, 1) for name in PAPER.cells)

    runner = CellRunner(
        cells=cells,
        report=without_report,
        root=root,
        cache=kept,
        resume=True,
        processes=1,
        progress=None,
        tell=lambda _: None,
    )
    runner.run([live])

    assert runner.failed == {}
    plan, finder = cells.plans([live])[live], RunIndex(root)
    assert finder.completed(plan) is None
    found = finder.completed(plan, "process")
    assert found is not None
    assert found.run.read_manifest()["runtime"] == "process"

    runner.run([live, virtual])
    assert [each.read_manifest()["runtime"] for each in (found.run, finder.completed(plan).run)] == [
        "process",
        "simulation",
    ]  # fmt: skip

    result, _ = evaluate(cells, root, kept, list(PAPER.rows), DECLARED, lambda _: None)
    rates = {row.row: row.values[1] for row in result.tables["Rates"]}
    assert rates["virtual"] == pytest.approx(2 / 0.015, rel=0.02)  # two devices that wait 10 ms and compute 5
    assert rates["live"] != rates["virtual"]
    verdicts = {cell.cell: (cell.runtime, cell.runs[0].verdict) for cell in result.cells}
    assert verdicts["virtual"] == ("simulation", "")
    assert verdicts["live"][0] == "process"
    assert verdicts["live"][1] in ("trusted", "degraded", "unknown")
    assert f"processes, {verdicts['live'][1]}" in to_markdown(reproduction_page(PAPER, result, {}))

    kept.write()
    again = ResultCache(cells, root.parent / "runs.jsonl")
    assert (again.trial(live).summary.updates_per_s, again.find(live).run.verdict) == (
        rates["live"],
        verdicts["live"][1],
    )
