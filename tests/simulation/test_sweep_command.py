"""`edgebed sweep` for real: times are measured, points run, read again without a run, broken off and gone on with."""

import contextlib
import io
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from tiny_sweep import SMALL, write_sweep
from warm_command import WarmCommand

import edgebed
from edgebed.cli import main as cli
from edgebed.core.errors import ScenarioError
from edgebed.journal.run_folder import RunFolder, runs_of

DEADLINE_S = 120.0
WORDS = ("sweep", "tiny.yaml", "--processes", "1", "--json")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the tiny sweep, which is the current one."""
    write_sweep(tmp_path, SMALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EDGEBED_RUNS_DIR", raising=False)
    return tmp_path


def call(*words: str) -> subprocess.CompletedProcess[str]:
    """A command to its end, in this process, which has imported everything already."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setattr(sys, "argv", ["edgebed", *words])
        with pytest.raises(SystemExit) as left:
            cli.main()
    return subprocess.CompletedProcess(words, int(left.value.code or 0), out.getvalue(), err.getvalue())


def swept(*words: str) -> dict[str, Any]:
    """What a sweep that ended well says."""
    done = call(*WORDS, *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def folders() -> list[RunFolder]:
    """The runs there are."""
    return runs_of(Path("runs"), "tiny-sweep")


def test_a_sweep_is_run_and_read_again_without_a_run(place: Path) -> None:
    """Its page, its points and its times stay the same with --resume, with --no-run, and without the runs."""
    answer = swept()
    result = answer["sweep"]
    points = {(each["method"], *each["values"].values()): each for each in result["points"]}

    assert len(folders()) == len(points) == 4
    assert all(each["reached"] == 1 for each in points.values())
    assert result["axes"] == {"fleet.edge.uplink": ["250kbit", "16mbit"]}
    slow, fast = points["dense", "250kbit"], points["dense", "16mbit"]
    assert slow["time_s"]["mean"] > 5 * fast["time_s"]["mean"]
    assert slow["ingress_bytes"] == fast["ingress_bytes"]
    assert slow["egress_bytes"]["mean"] > 0
    assert slow["traffic_bytes"]["mean"] == slow["ingress_bytes"]["mean"] + slow["egress_bytes"]["mean"]
    sparse = points["top-k", "250kbit"]
    assert sparse["ingress_bytes"]["mean"] < slow["ingress_bytes"]["mean"] / 3
    assert sparse["gradient_s"] == slow["gradient_s"]
    updates = slow["updates"]
    each_s = slow["gradient_s"] + slow["compression_s"] + slow["restore_s"]
    assert slow["cpu_s"]["mean"] == pytest.approx(updates * each_s)
    measured = json.loads(Path("runs/sweeps/tiny-sweep/costs.json").read_text())
    assert [cost["seconds"] for cost in measured["gradients"]] == [slow["gradient_s"]]
    assert len(measured["compressions"]) == 2
    page = Path(answer["page"])
    assert page == Path("runs/sweeps/tiny-sweep.html")
    assert str(place) not in page.read_text()
    assert str(place) not in page.with_suffix(".md").read_text()

    again = call(*WORDS, "--resume")
    assert "4 of 4 runs are there already" in again.stderr
    assert "measuring" not in again.stderr
    shutil.rmtree("runs/tiny-sweep")
    for done in (again, call(*WORDS, "--no-run")):
        assert json.loads(done.stdout) == answer
    assert folders() == []


@pytest.mark.usefixtures("undrawn")
def test_a_point_by_its_own_command_counts(place: Path) -> None:
    """The page's ordinary command makes the run that the sweep looks for; what was not run is said to be so."""
    one = ("--set", "sweep.over.fleet.edge.uplink=[16mbit]")
    first = swept(*one)
    assert len(folders()) == 2
    (command,) = [each["command"] for each in first["sweep"]["points"] if each["method"] == "dense"]
    shutil.rmtree("runs/tiny-sweep")
    Path("runs/sweeps/tiny-sweep/runs.jsonl").unlink()
    nothing = swept(*one, "--no-run")
    assert [each["reached"] for each in nothing["sweep"]["points"]] == [0, 0]
    assert "0 of 2 runs have been made" in Path(nothing["page"]).with_suffix(".md").read_text()

    words = command.replace("'", "").split()[1:]
    assert call(*words, "--processes", "1").returncode == 0
    found = swept(*one, "--no-run")
    assert found["sweep"]["points"][0] == first["sweep"]["points"][0]
    assert [len(each["seeds"]) for each in found["sweep"]["points"]] == [1, 0]


@pytest.mark.usefixtures("undrawn")
def test_what_the_scenario_says_of_times_is_kept(place: Path) -> None:
    """An accuracy that is never reached is no failure."""
    text = SMALL.replace("batch_size: 10", "batch_size: 10, gradient_time: 7ms, compression_time: 1ms")
    write_sweep(place, text.replace("accuracy: 0.6", "accuracy: 1.0\n  methods: [top-k]"))
    answer = swept("--set", "stop.updates=40", "--set", "sweep.over.fleet.edge.uplink=[16mbit]")
    (point,) = answer["sweep"]["points"]

    assert (point["gradient_s"], point["compression_s"]) == (0.007, 0.001)
    assert (point["reached"], point["time_s"]) == (0, None)
    assert answer["sweep"]["wins"][0]["time"] is None
    text = Path(answer["page"]).with_suffix(".md").read_text()
    assert "Set by the scenario, or computed for the devices' speeds: a gradient, to compress" in text
    assert "| top-k | 16mbit | not in 40 updates |" in text


@pytest.mark.usefixtures("undrawn")
def test_a_sweep_that_is_broken_off_goes_on(place: Path) -> None:
    """An interruption says how; the run that had completed and the measured times are kept."""
    write_sweep(place, SMALL.replace("16mbit,", "16mbit, 4mbit, 1mbit,").replace("over:", "methods: [top-k]\n  over:"))
    process = WarmCommand(*WORDS)
    latest_s = time.monotonic() + DEADLINE_S
    while len(folders()) < 2:
        assert process.poll() is None, "it ended before it could be broken off"
        assert time.monotonic() < latest_s
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 130, said
    assert "interrupted; to resume: edgebed sweep tiny.yaml --processes 1 --json --resume" in said
    costs = Path("runs/sweeps/tiny-sweep/costs.json").read_bytes()
    first = folders()[0].read_manifest()["started"]

    answer = swept("--resume")
    assert all(each["reached"] == 1 for each in answer["sweep"]["points"])
    assert Path("runs/sweeps/tiny-sweep/costs.json").read_bytes() == costs
    assert folders()[0].read_manifest()["started"] == first
    codes = [json.loads(run.summary.read_bytes())["exit_code"] for run in folders() if run.summary.exists()]
    assert codes.count(0) == 4


@pytest.mark.usefixtures("undrawn")
def test_a_point_that_fails_does_not_end_the_sweep(place: Path) -> None:
    """The others are measured, and the exit code says that something is missing."""
    write_sweep(place, SMALL.replace("dense: {", "dense: { faults: [{ kill: server, at_update: 20 }],"))
    done = call(*WORDS, "--set", "sweep.over.fleet.edge.uplink=[16mbit]")
    answer = json.loads(done.stdout)

    assert done.returncode == 3
    assert answer["failed"][0].startswith("dense, uplink 16mbit, seed 1: tiny-sweep/0001 failed: ")
    assert [len(each["seeds"]) for each in answer["sweep"]["points"]] == [0, 1]
    assert "--resume tries again" in done.stderr


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--set", "sweep=null"), "tiny.yaml: the scenario has no section sweep"),
        (("--set", "seed=3"), "--set seed=3: a sweep is run with seeds 1, 2"),
        (("--set", "sweep.methods=[x]"), "--set sweep.methods=[x]: no variant 'x'; allowed: dense"),
        (("--set", "sweep.over.fleet.edge.count=[2000]"), "--set fleet.edge.count=2000: "),
        (("--output", "tiny.yaml"), "--output: tiny.yaml is not a folder"),
    ],
)
def test_mistakes_are_found_before_anything_runs(place: Path, words: tuple[str, ...], problem: str) -> None:
    """With the user's exit code, in one line."""
    done = call(*WORDS, *words)

    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"error: {problem}")
    assert folders() == []


@pytest.mark.usefixtures("undrawn")
def test_a_mapping_is_swept_as_a_file_is(place: Path) -> None:
    """It is kept beside the page, whose command makes the same sweep again."""
    mapping = YAML(typ="safe").load(SMALL.replace("16mbit, 250kbit", "16mbit"))
    study = edgebed.sweep(mapping, run_options=edgebed.RunOptions(processes=1))
    assert study.page is not None
    text = study.page.with_suffix(".md").read_text()
    made = [run.name for run in folders()]

    assert [point.reached for point in study.result.points] == [1, 1]
    assert "edgebed sweep runs/sweeps/tiny-sweep/scenario.yaml" in text
    again = call("sweep", "runs/sweeps/tiny-sweep/scenario.yaml", "--resume", "--processes", "1")
    assert "2 of 2 runs are there already" in again.stderr
    assert [run.name for run in folders()] == made


def test_a_mapping_that_cannot_be_kept_is_refused_before_anything_runs(place: Path) -> None:
    """With the words of `edgebed.run`; names of files are looked for beside what is kept."""
    mapping = YAML(typ="safe").load(SMALL)
    with pytest.raises(ScenarioError, match=r"^--set fleet.edge.count=-1: "):
        edgebed.sweep(mapping, set={"fleet.edge.count": -1})
    with pytest.raises(ScenarioError, match="has no section sweep"):
        edgebed.sweep({key: value for key, value in mapping.items() if key != "sweep"})
    (place / "rates.csv").write_text("time_s,up_mbit,down_mbit\n0,1,1\n1,2,2\n2,,\n")
    mapping["fleet"]["edge"] = {"count": 2, "link_trace": "rates.csv"}
    mapping["sweep"]["over"] = {"fleet.edge.count": [2]}
    with pytest.raises(ScenarioError, match=r"tiny-sweep/scenario.yaml: the mapping is kept here.*their whole paths$"):
        edgebed.sweep(mapping)
    mapping["fleet"]["edge"]["link_trace"] = str(place / "rates.csv")
    assert edgebed.sweep(mapping, run_options=edgebed.RunOptions(run=False)).problems == ()
    assert folders() == []


@pytest.mark.parametrize("study", [edgebed.sweep, edgebed.agree, edgebed.run])
def test_what_is_no_scenario_is_said_to_be_none(study: Any) -> None:
    """A number, or a list of names."""
    for given in (5, ["quickstart"]):
        with pytest.raises(ScenarioError, match=r"is no scenario; give a file, the name of one .*, or a mapping"):
            study(given)
