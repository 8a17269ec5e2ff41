"""`edgebed agree --from`: finished runs of chosen runtimes, in words, in JSON and on the page."""

import json
from pathlib import Path

import pytest
from command_line import command_line
from finished_runs import RISING, finished_run


def test_runs_of_other_runtimes_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the page, too, though they lack a seed that the others have."""
    for runtime, seeds in (("simulation", (1, 2)), ("process", (1, 2)), ("docker", (1,))):
        for seed in seeds:
            finished_run(tmp_path, {"asgd": RISING, "adacomp": RISING}, seed=seed, runtime=runtime)
    names = [f"pair/{number}" for number in (1, 2, 3, 4, 5)]
    words = ["agree", "--from", *names, "--runtimes", "process,simulation", "--runs-dir", str(tmp_path)]
    page = tmp_path / "page.html"
    code, out, _ = command_line(monkeypatch, capsys)(*words, "--json", "--output", page)
    found = json.loads(out)

    assert (code, found["verdict"]) == (1, "too few seeds to tell")
    assert list(found["runs"]) == ["process", "simulation"]
    assert {trial["reference"] for trial in found["trials"]} == {"process"}
    assert "process, simulation" in page.read_text()
    assert "docker" not in page.read_text()
    assert "Too few seeds to tell whether simulation agrees with process: run 3 at least" in page.read_text()


def test_three_seeds_can_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Then the exit code is 0, and the power of that is stated."""
    for runtime in ("simulation", "process"):
        for seed in (1, 2, 3):
            finished_run(tmp_path, {"asgd": RISING, "adacomp": RISING}, seed=seed, runtime=runtime)
    names = [f"pair/{number}" for number in range(1, 7)]
    code, out, _ = command_line(monkeypatch, capsys)("agree", "--from", *names, "--runs-dir", tmp_path)
    said = " ".join(out.split())

    assert code == 0
    assert "process agrees with simulation within what seeds differ by." in said
    assert "found in eight of ten studies: values that differ by 1.6 standard deviations over seeds" in said
