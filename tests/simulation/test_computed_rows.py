"""Rows that need no run, through the command `reproduce`: computed once, kept beside the page, read again."""

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tiny_paper import MODULE, write_paper

from edgebed.cli import main as cli

COMPUTED = '''

from pathlib import Path


def count(name, value):
    """Notes that it was asked."""

    def measure(trials):
        assert trials == {}
        with Path("asked").open("a") as file:
            file.write(name + "\\n")
        return value()

    return measure


def lacking():
    raise ValueError("no such thing")


import dataclasses

from edgebed.studies.papers.paper import Near

PAPER = dataclasses.replace(PAPER, tables=(
    Table(title="Computed", rows={
        "answer": Row(
            what="The answer", measure=count("answer", lambda: 42), unit="x", claim=Near(value=40, tolerance=1)
        ),
        "none": Row(what="No number", measure=count("none", lambda: float("nan")), unit="bytes"),
    }),
    *PAPER.tables,
))
BROKEN = dataclasses.replace(PAPER, cells={}, tables=(
    Table(title="Computed", rows={
        **PAPER.tables[0].rows,
        "broken": Row(what="Broken", measure=count("broken", lacking), unit=""),
        "after": Row(what="After it", measure=count("after", lambda: 1), unit=""),
    }),
))
'''


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a tiny paper that has rows without cells too, which is the current one."""
    write_paper(tmp_path)
    (tmp_path / "papers_of_mine.py").write_text(MODULE + COMPUTED)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "papers_of_mine", raising=False)
    monkeypatch.delenv("EDGEBED_RUNS_DIR", raising=False)
    return tmp_path


def call(*words: str, paper: str = "PAPER") -> tuple[int, str, str]:
    """Exit code, standard output and standard error of `reproduce`, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setattr(sys, "argv", ["edgebed", "reproduce", f"papers_of_mine:{paper}", *words])
        with pytest.raises(SystemExit) as left:
            cli.main()
    return int(left.value.code or 0), out.getvalue(), err.getvalue()


def rows(*words: str, paper: str = "PAPER") -> dict[str, dict[str, Any]]:
    """What the command says of each row."""
    code, out, err = call("--json", *words, paper=paper)
    assert code == 0, err
    return {row["row"]: row for table in json.loads(out)["reproduction"]["tables"].values() for row in table}


def asked(place: Path) -> list[str]:
    """The measures that were evaluated, in order."""
    return (place / "asked").read_text().split() if (place / "asked").exists() else []


def test_a_row_without_cells_is_computed_once_and_kept(place: Path) -> None:
    """It is judged like others; what has been computed is neither asked for again nor lost with the runs."""
    words = ("--row", "answer", "--row", "none")
    assert rows("--no-run", *words)["answer"]["values"] == {}
    assert asked(place) == []

    first = rows(*words)
    assert (first["answer"]["values"], first["answer"]["finding"]) == ({"1": 42}, "differs")
    assert first["none"]["values"] == {"1": None}
    assert asked(place) == ["answer", "none"]
    assert not (place / "runs/tiny-digits").exists()

    assert rows("--resume", *words) == first
    assert rows("--no-run") == first
    assert asked(place) == ["answer", "none"]
    assert rows("--row", "answer") == first
    assert asked(place) == ["answer", "none", "answer"]

    kept = [json.loads(line) for line in (place / "runs/reproductions/tiny/computed.jsonl").read_text().splitlines()]
    assert [(line["row"], line["value"]) for line in kept] == [("answer", 42), ("none", None)]


def test_the_page_says_what_was_computed(place: Path) -> None:
    """Beside rows of runs, of which one is there and the others are not."""
    call("--row", "answer")
    code, out, err = call("--row", "answer", "--row", "push", "--scale", "0.1", "--seeds", "1", "--processes", "1")
    assert code == 0, err
    assert "The answer" in out
    page = (place / "runs/reproductions/tiny.md").read_text()

    assert "| The answer | 40 x | 42 x | differs | 39 to 41 x | – | – | `answer` | computed |" in page
    assert "| No number | – | – | not run | – | – | – | `none` | computed |" in page
    assert "120 updates (10 %), 1 seed" in page
    assert "1 row without a run (*computed*) took" in page
    assert "[computed.jsonl](tiny/computed.jsonl) has their values." in page
    assert "--row push --scale 0.1 --seeds 1" in page


def test_what_can_be_computed_is_listed(place: Path) -> None:
    """Of a paper of nothing else, too."""
    code, out, err = call("--list", "--json", "--row", "answer")
    assert code == 0, err
    (paper,) = json.loads(out)
    assert paper["cells"] == []
    assert paper["tables"]["Computed"] == [
        {"row": "answer", "what": "The answer", "unit": "x", "paper": "40 x", "cells": [], "seeds": 0}
    ]
    assert "computed" in call("--list", paper="BROKEN")[1]
    assert asked(place) == []


def test_a_measure_that_fails_leaves_what_was_computed_before(place: Path) -> None:
    """The page is made; the exit code says that something is missing, and the rest is tried again."""
    code, out, err = call("--json", paper="BROKEN")
    assert code == 3
    (problem,) = json.loads(out)["failed"]
    assert problem.startswith("row broken: its measure failed: ValueError")
    assert problem.endswith("1 more row not computed")
    assert "--resume tries again" in err
    assert asked(place) == ["answer", "none", "broken"]
    assert rows("--no-run", paper="BROKEN")["answer"]["values"] == {"1": 42}


def test_a_value_of_another_row_does_not_count(place: Path) -> None:
    """One that says something else under the same name; a line that is none is an error that says what to do."""
    call("--row", "answer", "--row", "none")
    file = place / "runs/reproductions/tiny/computed.jsonl"
    first, second = (msgspec.json.decode(line) for line in file.read_bytes().splitlines())
    file.write_bytes(b"\n".join(msgspec.json.encode(line) for line in (first | {"what": "Another"}, second)))
    found = rows("--no-run")
    assert (found["answer"]["values"], found["none"]["values"]) == ({}, {"1": None})

    file.write_bytes(b"{}")
    code, _, err = call("--no-run")
    assert code == 3
    assert "computed.jsonl:1: no row that was computed" in err
    assert "remove the line or the file" in err
