"""The first hour: the experiment that `init` writes works as it is, and `doctor` says what is lost."""

import json
from pathlib import Path

import pytest
from command_line import command_line

from edgebed.cli import main as cli
from edgebed.cli.begin import FILES, PROGRAM_FILES
from edgebed.planning.planning import plan_trials
from edgebed.reports.studies.doctor_table import doctor_parts
from edgebed.reports.writing.page import Notes, plain
from edgebed.scenario.load import load_scenario
from edgebed.studies.host.doctor import Finding

SCENARIOS = Path(__file__).parents[3] / "scenarios"
CORES = 2
"""Cores that a machine has on which nothing that is shown first may be degraded."""


@pytest.fixture
def edgebed(monkeypatch, capsys, tmp_path):
    """The command line in this process and an empty folder; gives (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)
    return command_line(monkeypatch, capsys)


def test_what_init_writes_is_valid_and_runs(edgebed, tmp_path):
    """Own task and compression; the compression saves bytes, and both expectations are met."""
    code, out, _ = edgebed("init", "my-first")
    assert code == 0
    assert "edgebed run my-first/scenario.yaml" in out
    assert {path.name for path in Path("my-first").iterdir()} == set(FILES)

    code, out, err = edgebed("validate", "my-first/scenario.yaml")
    assert (code, out) == (0, "my-first/scenario.yaml: valid\n"), err

    code, out, err = edgebed("run", "my-first/scenario.yaml", "--runtime", "simulation", "--processes", "1", "--json")
    assert code == 0, err
    everything, largest = json.loads(out)["trials"]
    assert largest["server"]["ingress_bytes"] < everything["server"]["ingress_bytes"] / 4
    assert load_scenario("my-first/scenario.yaml").name == "my-first"


def test_what_init_writes_for_a_program_is_valid_and_shown_by_its_page(edgebed):
    """It can be planned as it is; docs/own-program.md, which a test follows, shows both files to the letter."""
    code, out, _ = edgebed("init", "--program", "mine")
    assert code == 0
    assert "edgebed run mine/scenario.yaml --runtime process" in out
    written = {str(path.relative_to("mine")): path.read_text() for path in Path("mine").rglob("*") if path.is_file()}
    page = (SCENARIOS.parent / "docs/own-program.md").read_text(encoding="utf-8")
    assert set(written) == set(PROGRAM_FILES)
    assert all(f"\n{text}```\n" in page for text in written.values())

    code, _, err = edgebed("plan", "mine/scenario.yaml")
    assert code == 0, err


def test_init_overwrites_nothing(edgebed):
    """A file that is there stays as it is, and none is written beside it."""
    Path("mine").mkdir()
    Path("mine/mytask.py").write_text("precious")

    code, _, err = edgebed("init", "mine")

    assert (code, err) == (2, "error: mine has mytask.py already; choose another folder\n")
    assert [path.read_text() for path in Path("mine").iterdir()] == ["precious"]


def test_a_folder_whose_name_is_none_of_a_scenario_is_refused(edgebed):
    """It gives the scenario its name."""
    code, _, err = edgebed("init", "My Experiment")

    assert (code, "not a name: 'My Experiment'" in err) == (2, True)
    assert not Path("My Experiment").exists()


def test_doctor_finds_what_there_is(edgebed, monkeypatch, tmp_path):
    """An engine that does not answer and data that is not there are lost; Linux and Python are not."""
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    monkeypatch.setenv("EDGEBED_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("EDGEBED_CALIBRATION", str(tmp_path / "none.json"))

    code, out, _ = edgebed("doctor", "--json")

    found = {each["subject"]: each for each in json.loads(out)}
    assert code == 0
    assert {"system", "packages", "root", "links", "netem", "cgroups", "disk"} < set(found)
    assert (found["system"]["works"], found["packages"]["works"], found["disk"]["works"]) == (True, True, True)
    assert "--runtime docker" in found["containers"]["lost"]
    assert found["data"]["found"] == f"no mnist, cifar10, har, heart, parkinsons in {tmp_path}"
    assert "edgebed calibrate" in found["calibration"]["lost"]
    assert all(bool(each["lost"]) != each["works"] for each in found.values())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("links", "cgroups", "containers", "runtimes"),
    [
        (True, True, True, "simulation, process (links and caps held by the kernel), docker"),
        (True, False, False, "simulation, process (links held by the kernel)"),
        (False, False, False, "simulation, process (links and caps by a model)"),
    ],
)
def test_doctor_says_which_runtimes_there_are(links, cgroups, containers, runtimes):
    """And for each thing that does not work what is lost without it."""
    works = {"links": links, "cgroups": cgroups, "containers": containers}
    findings = [Finding(name, is_there, "found", "" if is_there else "lost") for name, is_there in works.items()]

    parts = doctor_parts(iter(findings))
    for each in findings:  # each as soon as it is found
        assert plain(next(parts).text) == f"{'✓' if each.works else '✗'} {each.subject:<14} found"
    lost, last = parts

    assert isinstance(lost, Notes)
    assert list(lost.lines) == [f"without {name}: lost" for name, is_there in works.items() if not is_there]
    assert [plain(line) for line in last.lines] == [f"runtimes: {runtimes}"]


@pytest.mark.parametrize("path", [SCENARIOS / "quickstart.yaml", cli.begin.SCAFFOLD / "scenario.yaml"])
def test_what_is_shown_first_asks_for_no_more_cores_than_a_small_machine_has(path):
    """The demo runs the quickstart. Something is left for what has no cap: evaluator and controller."""
    for trial in plan_trials(load_scenario(path)):
        asked = sum(node.cpus or 0.0 for node in trial.plan.nodes)
        assert 0.0 < asked <= 0.9 * CORES
