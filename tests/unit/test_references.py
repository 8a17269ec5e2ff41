"""The generated documents are current; those of commands and names have every one, with every option."""

import re
from pathlib import Path

import pytest
from typer.main import get_command

import edgebed
from docs.generate import public as reference
from docs.generate.__main__ import DOCUMENTS
from edgebed.cli.main import app

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("document", [name for name in DOCUMENTS if not name.endswith(".jsonl")])
def test_a_generated_document_is_current(document):
    """It is what the code says today; what is counted of models, `unit/learning` compares."""
    assert (ROOT / document).read_text(encoding="utf-8") == DOCUMENTS[document](), (
        f"{document} is out of date: run scripts/generate-docs"
    )


def test_every_command_has_a_section_with_all_its_options():
    """Those in groups, too."""
    sections = dict(
        re.findall(r"^### `edgebed ([^`]+)`\n(.*?)(?=^##|\Z)", reference.commands(), re.MULTILINE | re.DOTALL)
    )
    known = {}
    for name, command in get_command(app).commands.items():
        inner = getattr(command, "commands", None)
        known |= {name: command} if inner is None else {f"{name} {each}": inner[each] for each in inner}

    assert set(sections) == set(known)
    for name, command in known.items():
        options = [option for each in command.params for option in each.opts if option.startswith("--")]
        assert [option for option in options if option not in sections[name] and option != "--help"] == []


def test_every_public_name_is_in_the_python_reference():
    """With what it says of itself."""
    document = reference.python()

    for name in edgebed.HOMES:
        assert f"### `edgebed.{name}`\n" in document
        assert (getattr(edgebed, name).__doc__ or "").split("\n")[0] in document


def test_types_are_written_without_their_modules():
    """As a reader would declare them."""
    assert reference._unqualified("a: pathlib.Path | collections.abc.Sequence[str]") == "a: Path | Sequence[str]"
    assert reference._type("ndarray[tuple[Any, ...], dtype[numpy.float32]]") == "NDArray[float32]"
