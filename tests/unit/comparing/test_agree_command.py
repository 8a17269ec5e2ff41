"""`edgebed agree --from`: finished runs of chosen runtimes, in words, in JSON and on the page."""

import json
import sys
from pathlib import Path

import pytest
from finished_runs import RISING, finished_run

from edgebed import cli


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
    monkeypatch.setattr(sys, "argv", ["edgebed", *words, "--json", "--output", str(page)])
    with pytest.raises(SystemExit) as left:
        cli.main()
    found = json.loads(capsys.readouterr().out)

    assert left.value.code == 0
    assert list(found["runs"]) == ["process", "simulation"]
    assert {trial["reference"] for trial in found["trials"]} == {"process"}
    assert "process, simulation" in page.read_text()
    assert "docker" not in page.read_text()
