"""docs/creating-a-method.md works: its files are written, its lines go into the registry, its laws and scenario hold.

All of it is done in a copy of the package, in a process of its own, so that it is the same whether or not a reader of
the document has already done it here.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import edgebed

DOCUMENT = Path(__file__).parents[3] / "docs/creating-a-method.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")
FILES = dict(re.findall(r"^File `([^`]+)`:\n\n```\w+\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL))
CHANGES = re.findall(r"^```diff\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
DONE = (r"import .*\brandom_k\b", r'"random-k": random_k', r'"random-asgd": \{')
"""How the registry looks where a reader has made the changes, in any order or place."""
REGISTRY = "services/edgebed/algorithms/registry.py"
PART = "services/edgebed/algorithms/compression/random_k.py"
LAWS = "tests/unit/algorithms/test_random_k.py"
SCENARIO = "scenarios/random-k.yaml"


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
    """Three files; in the registry an import, an entry of the table and a preset."""
    assert list(FILES) == [PART, LAWS, SCENARIO]
    for change, done in zip(CHANGES, DONE, strict=True):
        before, after = sides(change)
        assert re.search(done, after)
        assert not re.search(done, before)


def test_following_the_document_twice_is_following_it_once(copy):
    """So these tests hold for a reader who has registered the part."""
    once = (copy / REGISTRY).read_text(encoding="utf-8")

    assert once == follow(once)
    assert once.count("random_k") == 2


def test_the_laws_of_the_document_hold(copy):
    """Each of its tests, as pytest runs them."""
    done = run_in(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(copy), LAWS)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_the_scenario_of_the_document_runs_and_meets_its_expectations(copy):
    """In simulation, with the new part and its preset."""
    done = run_in(copy, "-m", "edgebed", "run", SCENARIO, "--runtime", "simulation", "--runs-dir", "runs")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Both expectations are met." in done.stdout
    assert {"largest", "any"} <= {path.name for path in (copy / "runs/random-k/0001").iterdir()}


def test_a_wrong_setting_of_the_part_is_the_users_mistake(copy):
    """The message that the part's `Config` gives, with its place."""
    option = "variants.any.method.compression.fraction=0.0"
    done = run_in(copy, "-m", "edgebed", "validate", SCENARIO, "--set", option)

    assert done.returncode == 2
    assert "0.0 is not in (0, 1]" in done.stdout + done.stderr


def test_the_references_know_the_part(copy):
    """Generated from its `Config`."""
    done = run_in(copy, "-m", "edgebed.scenario.reference", "markdown")

    assert "### compression: `random-k`" in done.stdout
    assert "Multiply what is sent by n / k" in done.stdout


def test_the_example_is_as_short_as_it_says():
    """A method of some 60 lines."""
    lines = FILES[PART].splitlines()

    assert len(lines) <= 65
    assert max(map(len, lines)) <= 120
