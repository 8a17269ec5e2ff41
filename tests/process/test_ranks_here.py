"""`scripts/validate ranks` with real live runs: of the drawn scenarios, and without making anything twice."""

import json
import os
import sys
from pathlib import Path

import pytest

from edgebed.cli import main as cli
from validation.__main__ import app

SCENARIOS = int(os.environ.get("EDGEBED_RANKED_SCENARIOS", "1"))


@pytest.mark.campaign
@pytest.mark.timeout(0)
def test_a_small_study_ranks_live_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Dense bytes are those of the simulation, what does not count is degraded, and a resumed study runs nothing."""
    monkeypatch.setenv("EDGEBED_RUNS_DIR", str(tmp_path / "runs"))
    words = ["ranks", "--scenarios", str(SCENARIOS), "--seed", "1", "--seeds", "2", "--json"]

    def call(*more: str) -> tuple[int, dict]:
        monkeypatch.setattr(sys, "argv", ["validate", *words, *more])
        with pytest.raises(SystemExit) as left:
            cli.main(app)
        out, err = capsys.readouterr()
        assert left.value.code in (0, 1), err
        return int(left.value.code), json.loads(out)["ranking"]

    code, found = call()
    made = sorted((tmp_path / "runs").glob("*/*/manifest.json"))
    again = call("--resume")

    assert again == (code, found)
    assert sorted((tmp_path / "runs").glob("*/*/manifest.json")) == made
    saturated = {place["method"]: place["measures"] for place in found["places"] if place["scenario"] == "ranks-1-000"}
    assert set(saturated) == {"asgd", "adacomp", "sync-sgd"}
    assert saturated["asgd"]["bytes up"]["error"] == pytest.approx(0, abs=1e-9)
    assert saturated["sync-sgd"]["bytes up"]["error"] == pytest.approx(0, abs=1e-9)
    assert not [line for line in found["left_out"] if "degraded" not in line]
    assert (tmp_path / "runs" / "rankings" / "ranks-1-process.md").exists()
