"""docs/creating-a-method.md works: its files beside a scenario, and built in, with their laws and their scenario."""

from pathlib import Path

import pytest
from followed_document import PYTEST, Document, copied, run_in

DOCUMENT = Document("creating-a-method.md")
OWN = ("subsampling.py", "subsampling.yaml", "test_subsampling.py", "delay_compensated.py", "test_delay_compensated.py")
REGISTRY = "services/edgebed/algorithms/registry.py"
LAWS = ("tests/unit/algorithms/test_subsampling.py", "tests/unit/algorithms/test_delay_compensated.py")
SCENARIO = "scenarios/subsampling.yaml"
SIMULATED = ("--runtime", "simulation", "--processes", "1", "--runs-dir", "runs")


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
    """Five files of one's own, which move; a line of each part in the registry, and a preset."""
    assert tuple(DOCUMENT.files) == OWN
    assert set(DOCUMENT.moves) == set(OWN)
    changes = [change for change in DOCUMENT.changes if change.place == REGISTRY]
    added = [change.after.removeprefix(change.before) for change in changes]
    assert added[:2] == ['    "subsampling",\n', '    "delay_compensated",\n']
    assert len(added) == 3


def test_following_the_document_twice_is_following_it_once(copy):
    """So these tests hold for a reader who has registered the part."""
    once = (copy / REGISTRY).read_text(encoding="utf-8")
    DOCUMENT.build_in(copy)

    assert (copy / REGISTRY).read_text(encoding="utf-8") == once
    assert once.count('    "subsampling",\n') == 1
    assert once.count('    "delay_compensated",\n') == 1


@pytest.mark.slow
def test_the_laws_of_the_document_hold_beside_the_scenario_and_built_in(own, copy):
    """Each of its tests, as pytest runs them."""
    for done in (
        run_in(own, *PYTEST, "--rootdir", str(own), "test_subsampling.py", "test_delay_compensated.py"),
        in_copy(copy, *PYTEST, "--rootdir", str(copy), *LAWS),
    ):
        assert done.returncode == 0, done.stdout + done.stderr
        assert "6 passed" in done.stdout


@pytest.mark.slow
def test_the_scenario_runs_with_the_file_beside_it_and_with_the_part_built_in_and_is_the_same(own, copy):
    """In simulation, to the same journal, whoever's the part is; its expectations are met."""
    beside = run_in(own, "-m", "edgebed", "run", "subsampling.yaml", *SIMULATED)
    built_in = in_copy(copy, "-m", "edgebed", "run", SCENARIO, *SIMULATED)

    for done in (beside, built_in):
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Both expectations are met." in done.stdout
    for trial in ("largest", "any"):
        journals = [folder / f"runs/subsampling/0001/{trial}/events.jsonl" for folder in (own, copy)]
        assert len({journal.read_bytes() for journal in journals}) == 1


@pytest.mark.slow
def test_the_aggregation_trains_with_the_compression_and_survives_its_server(own):
    """As the document runs it; what it knows of each worker is there again when that has joined anew."""
    option = "method.aggregation=delay_compensated:Aggregation"
    assert f"--variant any --set {option}" in DOCUMENT.text
    done = run_in(
        own, "-m", "edgebed", "run", "subsampling.yaml", "--runtime", "simulation", "--runs-dir", "others", "--variant",
        "any", "--set", option, "--set", "faults=[{restart: server, at_update: 150}]", "--set",
        "checkpoints.every=50 updates", "--set", "server.durability=none",
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    assert "all accounted for" in done.stdout


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("method.aggregation={name: delay-compensated, compensation: -1.0}", "compensation: -1 is below 0"),
        ("variants.any.method.compression.fraction=0.0", "0.0 is not in (0, 1]"),
    ],
)
def test_a_wrong_setting_of_a_part_is_the_users_mistake(own, copy, option, says):
    """The message that the part's `Config` gives, with its place; beside the scenario as built in."""
    path = option.replace("name: delay-compensated", "name: delay_compensated:Aggregation")
    for done in (
        run_in(own, "-m", "edgebed", "validate", "subsampling.yaml", "--set", path),
        in_copy(copy, "-m", "edgebed", "validate", SCENARIO, "--set", option),
    ):
        assert done.returncode == 2
        assert says in done.stdout + done.stderr


def test_the_references_know_the_part(copy):
    """Generated from its `Config`."""
    done = in_copy(copy, "-m", "docs.generate", "docs/scenario.md")
    assert done.returncode == 0, done.stderr
    document = (copy / "docs/scenario.md").read_text(encoding="utf-8")

    assert "### compression: `subsampling`" in document
    assert "Multiply what is sent by n / k" in document


def test_the_example_is_as_short_as_it_says():
    """A method of some 70 lines."""
    lines = DOCUMENT.files["subsampling.py"].splitlines()

    assert len(lines) <= 75
    assert max(map(len, lines)) <= 120
