"""docs/reproducing.md works: its paper, its scenario, its commands."""

import json
import re
from pathlib import Path

import pytest
from followed_document import DOCUMENTS, run_in
from typer.main import get_command

import edgebed
from edgebed.cli.main import app

TEXT = (DOCUMENTS / "reproducing.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^File `([^`]+)`:\n\n```\w+\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the files that the document says to write, and edgebed itself."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "services").symlink_to(Path(edgebed.__file__).parents[1])
    return tmp_path


def test_the_paper_of_the_document_is_reproduced(place: Path) -> None:
    """A twentieth of it, with one seed."""
    words = ("-m", "edgebed", "reproduce", "example_paper:PAPER")
    listed = run_in(place, *words, "--list", "--json")
    assert listed.returncode == 0, listed.stderr
    assert [cell["updates"] for cell in json.loads(listed.stdout)[0]["cells"]] == [1000, 1000]

    done = run_in(place, *words, "--scale", "0.05", "--seeds", "1", "--json")
    assert done.returncode == 0, done.stderr
    (rows,) = json.loads(done.stdout)["reproduction"]["tables"].values()
    assert [row["row"] for row in rows] == ["accuracy", "reduction"]
    assert 10.0 < rows[0]["values"]["1"] <= 100.0
    assert (place / "runs/reproductions/example/accuracy-against-bytes-up.svg").exists()


def test_the_document_names_every_option() -> None:
    """Except --list and where runs are."""
    (command,) = (each for name, each in get_command(app).commands.items() if name == "reproduce")  # type: ignore[attr-defined]
    options = {option for parameter in command.params for option in parameter.opts if option.startswith("--")}

    assert {option for option in options if f"`{option}" not in TEXT} <= {"--runs-dir"}
