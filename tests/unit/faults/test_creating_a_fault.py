"""docs/creating-a-fault.md works: its files and its lines in the registry, its laws and its scenario."""

import json
import re
from pathlib import Path
from typing import get_args

import pytest
from followed_document import Document, run_in, sides

from edgebed.scenario.plan import Action

DONE = (r"import Doze\b", r"\| Doze\b")
"""How the registry looks where a reader has made the changes."""
REGISTRY = "services/edgebed/faults/registry.py"
DOCUMENT = Document("creating-a-fault.md", REGISTRY, DONE)
KIND = "services/edgebed/faults/doze.py"
LAWS = "tests/unit/faults/test_doze.py"
SCENARIO = "scenarios/faults/doze.yaml"


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """A folder with everything done that the document says."""
    return DOCUMENT.followed(tmp_path_factory.mktemp("edgebed"))


def test_the_document_names_every_file_and_line_to_write():
    """Three files; in the registry an import and an entry of the table."""
    assert list(DOCUMENT.files) == [KIND, LAWS, SCENARIO]
    for change, done in zip(DOCUMENT.changes, DONE, strict=True):
        before, after = sides(change)
        assert re.search(done, after)
        assert not re.search(done, before)


def test_the_document_names_every_action():
    """The words that a kind is made of."""
    table = "".join(line for line in DOCUMENT.text.splitlines(keepends=True) if line.startswith("| `"))

    assert re.findall(r"`(\w+)`", table) == list(get_args(Action))


def test_following_the_document_twice_is_following_it_once(copy):
    """So these tests hold for a reader who has registered the kind."""
    once = (copy / REGISTRY).read_text(encoding="utf-8")

    assert once == DOCUMENT.follow(once)
    assert once.count("Doze") == 2


def test_the_laws_of_the_document_hold(copy):
    """Each of its tests, as pytest runs them."""
    done = run_in(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(copy), LAWS)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def test_the_scenario_of_the_document_runs_and_shows_the_effect(copy):
    """In simulation: the nodes that doze have their faults in the journal, and bring less than the others."""
    done = run_in(copy, "-m", "edgebed", "run", SCENARIO, "--runtime", "simulation", "--runs-dir", "runs")
    journal = copy / "runs/doze/0001/dozing/events.jsonl"

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Both expectations are met." in done.stdout
    records = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    faults = [record for record in records if record["kind"] == "fault"]
    updates = [record["worker"] for record in records if record["kind"] == "update"]
    assert {(fault["target"], fault["action"]) for fault in faults} == {
        (node, action) for node in ("phone-0", "phone-1") for action in ("freeze", "thaw")
    }
    assert updates.count("phone-0") < 0.4 * updates.count("phone-3")


def test_the_plan_shows_the_kind_and_a_wrong_setting_is_the_users_mistake(copy):
    """Though nothing but the registry knows of it."""
    shown = run_in(copy, "-m", "edgebed", "plan", SCENARIO, "--runtime", "simulation")
    refused = run_in(copy, "-m", "edgebed", "validate", SCENARIO, "--set", "variants.dozing.faults.0.asleep=0s")

    assert "freeze, thaw after 4s, freeze after 5s, thaw after 9s, ..., 8 steps in 19s" in shown.stdout
    assert refused.returncode == 2
    assert "faults.0.asleep=0s: 0s is not above 0s" in refused.stdout + refused.stderr


def test_the_references_know_the_kind(copy):
    """Generated from its class."""
    done = run_in(copy, "-m", "edgebed.scenario.reference", "markdown")

    assert "#### `doze`" in done.stdout
    assert "How long it is awake in between." in done.stdout


def test_the_example_is_as_short_as_it_says():
    """One small file."""
    lines = DOCUMENT.files[KIND].splitlines()

    assert len(lines) <= 50
    assert max(map(len, lines)) <= 120
