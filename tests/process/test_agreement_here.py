"""The command `agree` over real runs: what must be the same is, and the verdict is that of the numbers."""

import json
from pathlib import Path

import pytest
from command_line import Command, command_line

SCENARIO = """
name: agreeing
question: Do processes do what the simulation says?
seed: 1
task: { data: digits, model: small, batch_size: 10, gradient_time: 2ms }
fleet: { edge: { count: 2, waiting: { exponential: 20ms } } }
evaluation: { every: 10 updates }
stop: { updates: 40 }
"""
ROUNDS = """
variants:
  rounds: { method: sync-sgd }
  small: { method: sync-sgd, task: { batch_size: 5 } }
"""
AT_ONCE = "method: { preset: adacomp, compression: { fraction: 0.1 } }"


MEASURES = ["accuracy", "entries", "bytes", "staleness"]


@pytest.fixture
def edgebed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command line in this process; gives (exit code, standard output, standard error)."""
    monkeypatch.setenv("EDGEBED_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.setenv("EDGEBED_EMULATION", "model")

    return command_line(monkeypatch, capsys)


def write(folder: Path, text: str) -> str:
    """A scenario's file."""
    path = folder / "agreeing.yaml"
    path.write_text(text)
    return str(path)


def test_rounds_are_the_same_in_processes_as_in_simulation(tmp_path: Path, edgebed: Command) -> None:
    """A synchronous training has the same numbers everywhere, so nothing differs, and the command leaves with 0."""
    code, out, err = edgebed("agree", write(tmp_path, SCENARIO + ROUNDS), "--seeds", "3", "--json")

    assert code == 0, err
    found = json.loads(out)
    assert found["runs"] == {
        "simulation": {"1": "agreeing/0001", "2": "agreeing/0002", "3": "agreeing/0003"},
        "process": {"1": "agreeing/0004", "2": "agreeing/0005", "3": "agreeing/0006"},
    }
    assert [trial["trial"] for trial in found["trials"]] == ["rounds", "small"]
    for trial in found["trials"]:
        assert [version["version"] for version in trial["versions"]] == [10, 20, 30, 40]
        assert [judgement["measure"] for judgement in trial["judgements"]] == MEASURES
        assert [judgement["difference"] for judgement in trial["judgements"]] == [0.0] * 4


@pytest.mark.slow
def test_finished_runs_are_judged_again_and_others_are_refused(tmp_path: Path, edgebed: Command) -> None:
    """Ordinary runs, in any order; those that are of one runtime or of other settings say what to do."""
    scenario = write(tmp_path, SCENARIO + AT_ONCE)
    code, out, err = edgebed("agree", scenario, "--seeds", "3")
    runs = [f"agreeing/{number:04}" for number in (4, 2, 6, 3, 5, 1)]

    assert code in (0, 1), err
    judged_code, judged_out, _ = edgebed("agree", "--from", *runs, "--json")
    found = json.loads(judged_out)
    verdicts = {judgement["measure"]: judgement["verdict"] for judgement in found["trials"][0]["judgements"]}

    assert judged_code == code
    assert (code == 0) == (found["verdict"] == "agrees") == (set(verdicts.values()) == {"agrees"})
    assert verdicts["entries"] == verdicts["bytes"] == "agrees"
    assert ("process agrees with simulation" in out) == (code == 0)
    assert "<svg" in (tmp_path / "runs" / "agreement.html").read_text()

    edgebed("run", scenario, "--set", "task.batch_size=5", "--set", "seed=1")
    code, _, err = edgebed("agree", "--from", *runs, "agreeing/0007")
    assert code == 2
    assert "task.batch_size" in err
    code, _, err = edgebed("agree", "--from", *runs[1::2])
    assert code == 2
    assert "two runtimes" in err


def test_mistakes_are_told_before_anything_runs(tmp_path: Path, edgebed: Command) -> None:
    """With exit code 2, and no run in the folder."""
    scenario = write(tmp_path, SCENARIO + AT_ONCE)
    for words, said in (
        ((scenario, "--seeds", "1"), "--seeds: 1 is below 2"),
        ((scenario, "--runtimes", "simulation,cloud"), "'cloud' is none of process, simulation, docker"),
        ((scenario, "--runtimes", "process"), "--runtimes: process; give two or three different ones"),
        ((scenario, scenario), "2 scenarios; give one, or finished runs with --from"),
        (("--from", "agreeing"), "no run 'agreeing'"),
        (("--from", "agreeing", "--seeds", "3"), "--seeds, --jobs and --dask have no effect"),
        (("nowhere.yaml",), "nowhere.yaml"),
    ):
        code, _, err = edgebed("agree", *words)

        assert (code, "Traceback" in err) == (2, False), err
        assert said in err
    assert not (tmp_path / "runs").exists()
