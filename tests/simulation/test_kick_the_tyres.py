"""The artifact appendix: a run made anew gives what the repository's line of that run has."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from warm_command import WarmCommand

from edgebed.reports.studies.front_page import TYRES_COMMANDS

RESULTS = Path(__file__).parents[2] / "docs/results"
ANEW, OF_THE_LINE = (shlex.split(command) for command in TYRES_COMMANDS[1:3])
PAPER, ROW = ANEW[2], ANEW[4]
BEGINNING = ("--scale", "0.1")
"""It is as long as what the row is about."""
ITS_CELL = '"scenario":"figures-14-17.yaml"', '"trial":"bp"', '"seed":1,'
"""What the line of its run has, as have runs of other sizes, but none for which this machine may lack the data."""
DEADLINE_S = 100


def values(folder: Path, *words: str) -> dict[str, Any]:
    """Of the row, by seed; the command's pages go to a folder."""
    process = WarmCommand(*words, "--output", ".", "--json", cwd=folder)
    out, err = process.communicate(DEADLINE_S)
    assert process.returncode == 0, err
    tables = json.loads(out)["reproduction"]["tables"].values()
    return next(row["values"] for rows in tables for row in rows if row["row"] == ROW)


@pytest.fixture
def line(tmp_path: Path) -> dict[str, Any]:
    """What the repository has for the row, by the command that evaluates it there."""
    *words, option, folder = OF_THE_LINE
    assert (option, folder) == ("--output", "docs/results")
    (tmp_path / PAPER).mkdir()
    lines = (RESULTS / PAPER / "runs.jsonl").read_text().splitlines(keepends=True)
    of_its_cell = [each for each in lines if all(part in each for part in ITS_CELL)]
    (tmp_path / PAPER / "runs.jsonl").write_text("".join(of_its_cell))
    return values(tmp_path, *words[1:])


@pytest.mark.slow
def test_the_repository_has_the_run_that_is_made_anew(line: dict[str, Any]) -> None:
    """The two commands are of one row and one seed."""
    assert [*ANEW, "--no-run"] == OF_THE_LINE[:-2]
    assert list(line) == ["1"]


@pytest.mark.campaign
def test_the_run_made_anew_has_its_value(line: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    """To a tenth of a point: processors with other vector instructions round gradients in another way."""
    assert values(tmp_path_factory.mktemp("anew"), *ANEW[1:], *BEGINNING) == pytest.approx(line, abs=0.1)
