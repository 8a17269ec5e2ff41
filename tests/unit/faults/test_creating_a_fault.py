"""docs/creating-a-fault.md works: its files are written, its lines go into the registry, its laws and scenario hold.

All of it is done in a copy of the package, in a process of its own, so that it is the same whether or not a reader of
the document has already done it here.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import edgebed
from edgebed.scenario.plan import Action

DOCUMENT = Path(__file__).parents[3] / "docs/creating-a-fault.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")
FILES = dict(re.findall(r"^File `([^`]+)`:\n\n```\w+\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL))
CHANGES = re.findall(r"^```diff\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
DONE = (r"import Doze\b", r"\| Doze\b")
"""How the registry looks where a reader has made the changes."""
REGISTRY = "services/edgebed/faults/registry.py"
KIND = "services/edgebed/faults/doze.py"
LAWS = "tests/unit/faults/test_doze.py"
SCENARIO = "scenarios/faults/doze.yaml"


def sides(change: str) -> tuple[str, str]:
    """The text before and after a change."""
    lines = change.splitlines(keepends=True)
    before, after = ("".join(line[1:] for line in lines if line[0] in kept) for kept in ("- ", "+ "))
    return before, after


def follow(text: str) -> str:
    """The registry with the document's lines in it; what is there already stays as it is."""
    for change, done in zip(CHANGES, DONE, strict=True):
        before, after = sides(change)
        if not re.search(done, text):
            assert text.count(before) == 1, f"the registry has no line to change like this any more:\n{before}"
            text = text.replace(before, after)
    return text


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """A folder laid out like edgebed's own, with everything done that the document says."""
    root = tmp_path_factory.mktemp("edgebed")
    package = Path(edgebed.__file__).parent
    shutil.copytree(package, root / "services/edgebed", ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    registry = root / REGISTRY
    registry.write_text(follow(registry.read_text(encoding="utf-8")), encoding="utf-8")
    return root


def run_in(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`python …` with the copied package in front of the installed one."""
    environment = os.environ | {"PYTHONPATH": str(copy / "services"), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=copy,
        env=environment,
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )


def test_the_document_names_every_file_and_line_to_write():
    """Three files; in the registry an import and an entry of the table."""
    assert list(FILES) == [KIND, LAWS, SCENARIO]
    for change, done in zip(CHANGES, DONE, strict=True):
        before, after = sides(change)
        assert re.search(done, after)
        assert not re.search(done, before)


def test_the_document_names_every_action():
    """The words that a kind is made of."""
    table = "".join(line for line in TEXT.splitlines(keepends=True) if line.startswith("| `"))

    assert re.findall(r"`(\w+)`", table) == list(get_args(Action))


def test_following_the_document_twice_is_following_it_once(copy):
    """So these tests hold for a reader who has registered the kind."""
    once = (copy / REGISTRY).read_text(encoding="utf-8")

    assert once == follow(once)
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
    lines = FILES[KIND].splitlines()

    assert len(lines) <= 50
    assert max(map(len, lines)) <= 120
