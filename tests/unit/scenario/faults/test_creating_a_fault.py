"""docs/creating-a-fault.md works: its file beside a scenario, and built in, with its laws and its scenario."""

import json
import re
from pathlib import Path
from typing import get_args

import pytest
from followed_document import PYTEST, Document, copied, run_in

from edgebed.core.actions import Action

DOCUMENT = Document("creating-a-fault.md")
REGISTRY = "services/edgebed/scenario/faults/registry.py"
SCENARIO = "scenarios/faults/doze.yaml"
SIMULATED = ("--runtime", "simulation", "--processes", "1", "--runs-dir", "runs", "--set", "stop.time=10s")
"""Half as long as in the document, which shows the same."""


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> Path:
    """A folder with the files of one's own."""
    return DOCUMENT.write(tmp_path_factory.mktemp("own"))


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """A copy of the package with everything done that the document says."""
    root = copied(tmp_path_factory.mktemp("edgebed"))
    DOCUMENT.build_in(root)
    return root


def in_copy(copy: Path, *arguments: str):
    """`python …` with the copied package."""
    return run_in(copy, *arguments, package=copy / "services")


def test_the_document_names_every_file_and_line_to_write():
    """Three files of one's own, which move, and a line of the registry."""
    assert sorted(DOCUMENT.files) == sorted(DOCUMENT.moves) == ["doze.py", "doze.yaml", "test_doze.py"]
    (change,) = [change for change in DOCUMENT.changes if change.place == REGISTRY]
    assert change.after == f'{change.before}    "doze",\n'


def test_the_document_names_every_action():
    """The words that a kind is made of."""
    table = "".join(line for line in DOCUMENT.text.splitlines(keepends=True) if line.startswith("| `"))

    assert re.findall(r"`(\w+)`", table) == list(get_args(Action))


def test_following_the_document_twice_is_following_it_once(copy):
    """So these tests hold for a reader who has registered the kind."""
    once = (copy / REGISTRY).read_text(encoding="utf-8")
    DOCUMENT.build_in(copy)

    assert (copy / REGISTRY).read_text(encoding="utf-8") == once
    assert once.count('"doze"') == 1


@pytest.mark.slow
def test_the_laws_of_the_document_hold_beside_the_scenario_and_built_in(own, copy):
    """Each of its tests, as pytest runs them."""
    for done in (
        run_in(own, *PYTEST, "--rootdir", str(own), "test_doze.py"),
        in_copy(copy, *PYTEST, "--rootdir", str(copy), "tests/unit/scenario/faults/test_doze.py"),
    ):
        assert done.returncode == 0, done.stdout + done.stderr
        assert "2 passed" in done.stdout


@pytest.mark.slow
def test_the_scenario_of_the_document_runs_and_shows_the_effect_whoever_the_kind_is_of(own, copy):
    """In simulation: the nodes that doze have their faults in the journal, and bring less than the others."""
    beside = run_in(own, "-m", "edgebed", "run", "doze.yaml", *SIMULATED)
    built_in = in_copy(copy, "-m", "edgebed", "run", SCENARIO, *SIMULATED)
    journal, of_built_in = (folder / "runs/doze/0001/dozing/events.jsonl" for folder in (own, copy))

    for done in (beside, built_in):
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Both expectations are met." in done.stdout
    assert journal.read_bytes() == of_built_in.read_bytes()
    records = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    faults = [record for record in records if record["kind"] == "fault"]
    updates = [record["worker"] for record in records if record["kind"] == "update"]
    assert {(fault["target"], fault["action"]) for fault in faults} == {
        (node, action) for node in ("phone-0", "phone-1") for action in ("freeze", "thaw")
    }
    assert updates.count("phone-0") < 0.4 * updates.count("phone-3")


@pytest.mark.slow
def test_the_plan_shows_the_kind_and_a_wrong_setting_is_the_users_mistake(own, copy):
    """Though nothing but its file knows of it, and the registry where it is built in."""
    option = "variants.dozing.faults.0.asleep=0s"
    for shown, refused in (
        (
            run_in(own, "-m", "edgebed", "plan", "doze.yaml", "--runtime", "simulation"),
            run_in(own, "-m", "edgebed", "validate", "doze.yaml", "--set", option),
        ),
        (
            in_copy(copy, "-m", "edgebed", "plan", SCENARIO, "--runtime", "simulation"),
            in_copy(copy, "-m", "edgebed", "validate", SCENARIO, "--set", option),
        ),
    ):
        assert "freeze, thaw after 4s, freeze after 5s, thaw after 9s, ..., 8 steps in 19s" in shown.stdout
        assert refused.returncode == 2
        assert "faults.0.asleep=0s: 0s is not above 0s" in refused.stdout + refused.stderr


def test_the_references_know_the_kind(copy):
    """Generated from its class."""
    done = in_copy(copy, "-m", "docs.generate", "docs/scenario.md")
    assert done.returncode == 0, done.stderr
    document = (copy / "docs/scenario.md").read_text(encoding="utf-8")

    assert "#### `doze`" in document
    assert "How long the node is awake in between." in document


def test_the_example_is_as_short_as_it_says():
    """One small file."""
    lines = DOCUMENT.files["doze.py"].splitlines()

    assert len(lines) <= 50
    assert max(map(len, lines)) <= 120
