"""Finding a paper by its name or by its import path, and what is wrong with a declaration."""

import dataclasses
from pathlib import Path

import pytest
from tiny_paper import tiny_paper, write_paper

from edgebed.core.errors import ScenarioError
from edgebed.studies.papers.paper import Cell, Curve, Table
from edgebed.studies.papers.registry import all_papers, find_paper


def test_every_paper_is_declared_without_mistakes() -> None:
    """Under the name of its folder."""
    assert [paper.name for paper in all_papers()] == ["chen2019", "edgify2019", "hardy2017", "tao2018", "tong2016"]


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
            Table(title="Third", rows={"asgd": row, "of no run": dataclasses.replace(row, cells=())}),
        ),
    )

    assert paper.mistakes == ()
    assert broken.mistakes == (
        "2 rows are called 'asgd'",
        "curve 'C' is of cell 'unknown', which is not declared",
        "cell 'idle' is in no row",
    )
