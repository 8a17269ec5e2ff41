"""Finding a paper by its name or by its import path, and what is wrong with a declaration."""

import dataclasses
from pathlib import Path

import pytest
from tiny_paper import tiny_paper, write_paper

from edgebed.core.errors import ScenarioError
from edgebed.scenario.load import load_scenario
from edgebed.studies.papers.paper import Cell, Curve, Paper, Reading, Table
from edgebed.studies.papers.registry import find_paper, papers

SCENARIOS = Path(__file__).parents[4] / "scenarios"


@pytest.mark.parametrize("paper", [*map(find_paper, papers())], ids=lambda paper: paper.name)
def test_every_paper_is_declared_without_mistakes(paper: Paper) -> None:
    """No two rows of a table have one label, and its scenario files hold nothing that its page does not show."""
    assert paper.mistakes == ()
    for table in paper.tables:
        assert len({row.what for row in table.rows.values()}) == len(table.rows)
    cells = {(cell.scenario, cell.variant) for cell in paper.cells.values()}
    files = {file for file, _ in cells}
    assert cells == {(file, name) for file in files for name in load_scenario(SCENARIOS / paper.name / file).trials}


def test_every_folder_with_a_paper_declares_one() -> None:
    """Under its name."""
    found = [find_paper(name).name for name in papers()]
    assert found == sorted(path.parent.name for path in SCENARIOS.glob("*/paper.py"))


def test_a_paper_is_found_by_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the `scenarios/` of the current folder, with the modules beside it; the others stay."""
    write_paper(tmp_path)
    folder = tmp_path / "scenarios/tiny"
    (tmp_path / "papers_of_mine.py").rename(folder / "declared.py")
    (folder / "paper.py").write_text("from .declared import PAPER\n")
    (tmp_path / "scenarios/broken").mkdir()
    (tmp_path / "scenarios/broken/paper.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)

    assert find_paper("tiny").name == "tiny"
    assert find_paper("hardy2017").name == "hardy2017"
    with pytest.raises(ScenarioError, match=r"scenarios/broken/paper.py: importing it failed: ZeroDivisionError"):
        find_paper("broken")


def test_an_unknown_name_is_answered_with_those_there_are() -> None:
    """And with the form of an import path."""
    with pytest.raises(ScenarioError, match=r"no paper 'hardy'; did you mean 'hardy2017'\? allowed: .*module:NAME"):
        find_paper("hardy")


def test_ones_own_paper_is_named_by_its_import_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its module is looked for in the current folder first."""
    write_paper(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    assert find_paper("papers_of_mine:PAPER").name == "tiny"
    with pytest.raises(ScenarioError, match="there is no paper 'PAPERS'; it has PAPER"):
        find_paper("papers_of_mine:PAPERS")
    with pytest.raises(ScenarioError, match="there is no module 'nowhere'"):
        find_paper("nowhere:PAPER")


def test_what_does_not_fit_together_is_named() -> None:
    """Each mistake in a sentence."""
    paper = tiny_paper()
    first, second = paper.tables
    row = second.rows["push"]
    broken = dataclasses.replace(
        paper,
        cells={**paper.cells, "idle": Cell(scenario="digits.yaml", variant="asgd")},
        tables=(
            dataclasses.replace(first, curves=(Curve(title="C", cells=("unknown",), over="time"),)),
            second,
            Table(title="Third", seeds=2, rows={"asgd": row, "of no run": dataclasses.replace(row, cells=())}),
        ),
    )

    assert paper.mistakes == ()
    assert broken.mistakes == (
        "2 rows are called 'asgd'",
        "curve 'C' is of cell 'unknown', which is not declared",
        "cell 'idle' is in no row",
    )


def changed(**settings: object) -> Paper:
    """The tiny paper with other settings of its row `push`, or of the table that has it."""
    paper = tiny_paper()
    first, second = paper.tables
    of_row = {name: each for name, each in settings.items() if hasattr(second.rows["push"], name)}
    rows = second.rows | {"push": dataclasses.replace(second.rows["push"], **of_row)}
    of_table = {name: each for name, each in settings.items() if name not in of_row}
    return dataclasses.replace(paper, tables=(first, dataclasses.replace(second, rows=rows, **of_table)))


@pytest.mark.parametrize(
    "settings",
    [
        {"beside": "nobody"},
        {"note": "As {row:asgd} and {row:nobody} say."},
    ],
    ids=["beside", "note"],
)
def test_a_row_that_is_named_and_not_declared_is_a_mistake(settings: dict[str, object]) -> None:
    """Wherever a row names another, or has its value."""
    assert changed(**settings).mistakes == ("row 'push' is of row 'nobody', which is not declared",)


def test_rows_of_a_reading_may_be_named() -> None:
    """By the reading's name, where it changes the row; a cell that nobody declared is a mistake in a reading, too."""
    halved = Reading(name="half of it", text="", cells={"adacomp": "asgd"})

    assert changed(readings=(halved,), note="{row:push:half-of-it}", beside="push:half-of-it").mistakes == ()
    assert changed(readings=(halved,), note="{row:asgd:half-of-it}").mistakes == (
        "row 'push' is of row 'asgd:half-of-it', which is not declared",
        "row 'push:half-of-it' is of row 'asgd:half-of-it', which is not declared",
    )
    nowhere = Reading(name="elsewhere", text="", cells={"adacomp": "nowhere"})
    assert changed(readings=(nowhere,)).mistakes == (
        "row 'push:elsewhere' is of cell 'nowhere', which is not declared",
        "row 'perfect:elsewhere' is of cell 'nowhere', which is not declared",
    )


def test_a_table_with_cells_states_a_number_of_seeds() -> None:
    """One of rows that need no run has none to state."""
    first, second = tiny_paper().tables
    unstated = dataclasses.replace(tiny_paper(), tables=(first, dataclasses.replace(second, seeds=0)))
    assert unstated.mistakes == (
        "row 'push' has cells, and its table states no number of seeds",
        "row 'perfect' has cells, and its table states no number of seeds",
    )
    computed = Table(title="Third", rows={"computed": dataclasses.replace(tiny_paper().rows["push"], cells=())})
    paper = tiny_paper()
    assert dataclasses.replace(paper, tables=(*paper.tables, computed)).mistakes == ()
