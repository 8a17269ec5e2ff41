"""docs/creating-a-method.md works: its files and its lines in the registry, its laws and its scenario."""

import re
from pathlib import Path

import pytest
from followed_document import Document, run_in, sides

DONE = (
    r"import .*\brandom_k\b",
    r'"random-k": random_k',
    r'"random-asgd": \{',
    r"import .*\bdelay_compensated\b",
    r'"delay-compensated": delay_compensated',
)
"""How the registry looks where a reader has made the changes, in any order or place."""
REGISTRY = "services/edgebed/algorithms/registry.py"
DOCUMENT = Document("creating-a-method.md", REGISTRY, DONE)
PART = "services/edgebed/algorithms/compression/random_k.py"
LAWS = "tests/unit/algorithms/test_random_k.py"
SCENARIO = "scenarios/random-k.yaml"
AGGREGATION = "services/edgebed/algorithms/aggregation/delay_compensated.py"
AGGREGATION_LAWS = "tests/unit/algorithms/test_delay_compensated.py"


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """A folder with everything done that the document says."""
    return DOCUMENT.followed(tmp_path_factory.mktemp("edgebed"))


def test_the_document_names_every_file_and_line_to_write():
    """Three files and two; in the registry an import and an entry of the table of each, and a preset."""
    assert list(DOCUMENT.files) == [PART, LAWS, SCENARIO, AGGREGATION, AGGREGATION_LAWS]
    for change, done in zip(DOCUMENT.changes, DONE, strict=True):
        before, after = sides(change)
        assert re.search(done, after)
        assert not re.search(done, before)


def test_following_the_document_twice_is_following_it_once(copy):
    """So these tests hold for a reader who has registered the part."""
    once = (copy / REGISTRY).read_text(encoding="utf-8")

    assert once == DOCUMENT.follow(once)
    assert once.count("random_k") == 2
    assert once.count("delay_compensated") == 2


def test_the_laws_of_the_document_hold(copy):
    """Each of its tests, as pytest runs them."""
    laws = (LAWS, AGGREGATION_LAWS)
    done = run_in(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(copy), *laws)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed" in done.stdout


def test_the_aggregation_trains_with_the_compression_and_survives_its_server(copy):
    """What it knows of each worker is there again when that has joined anew."""
    option = "variants.both={method: {preset: random-asgd, aggregation: {name: delay-compensated}}}"
    fault = "faults=[{restart: server, at_update: 150}]"
    done = run_in(
        copy, "-m", "edgebed", "run", SCENARIO, "--runtime", "simulation", "--runs-dir", "others", "--variant", "both",
        "--set", option, "--set", fault, "--set", "checkpoints.every=50 updates",
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    assert "all accounted for" in done.stdout


def test_an_aggregation_that_is_set_wrong_is_the_users_mistake(copy):
    """Settings of a learning rate are its own as well."""
    aggregation = "{name: delay-compensated, compensation: -1.0}"
    done = run_in(copy, "-m", "edgebed", "validate", SCENARIO, "--set", f"method.aggregation={aggregation}")

    assert done.returncode == 2
    assert "compensation: -1 is below 0" in done.stdout + done.stderr


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
    lines = DOCUMENT.files[PART].splitlines()

    assert len(lines) <= 65
    assert max(map(len, lines)) <= 120
