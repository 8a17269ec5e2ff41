"""A run of programs whose controller was killed: trials that are complete stay, the others are run anew."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

import edgebed
from edgebed.emulation import means
from edgebed.reports.run.report import write_report
from edgebed.running.resume import resume

PATIENCE_S = 120.0
SCENARIO = """
name: again
question: What is left of a run?
program: {{ files: app, run: "{python} app.py {go}", measures: {{ loss: 'loss=([.0-9]+)' }} }}
fleet: {{ home: {{ count: 2, uplink: 10mbit, downlink: 10mbit }} }}
expect: {{ exit_code: "== 0" }}
variants: {{ short: {{}}, long: {{ program: {{ env: {{ LONG: 1 }} }} }} }}
"""
APP = """
import os, pathlib, sys, time
print("loss=0.5", flush=True)
while "LONG" in os.environ and not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.05)
"""


@pytest.mark.timeout(2 * PATIENCE_S)
def test_what_is_complete_stays_and_the_rest_is_run_anew(tmp_path: Path) -> None:
    """The first trial's journal stays as it is, the second one's begins anew; not with other files of the user's."""
    if reason := means.why_no_namespaces():
        pytest.skip(f"no namespaces: {reason}; run the tests as root")
    scenario, go, app = tmp_path / "again.yaml", tmp_path / "go", tmp_path / "app" / "app.py"
    app.parent.mkdir()
    app.write_text(APP)
    scenario.write_text(SCENARIO.format(python=sys.executable, go=go))
    runs = tmp_path / "runs"
    command = [sys.executable, "-m", "edgebed", "run", str(scenario), "--runs-dir", str(runs)]
    first, second = (runs / "again" / "0001" / name / "events.jsonl" for name in ("short", "long"))
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        until_s = time.monotonic() + PATIENCE_S
        while not (second.exists() and b'"measured"' in second.read_bytes()):
            assert process.poll() is None
            assert time.monotonic() < until_s
            time.sleep(0.1)
        process.kill()
    complete, app_text = first.read_bytes(), app.read_text()

    app.write_text(app_text + "#")
    with pytest.raises(edgebed.ScenarioError, match=r"was begun with another .*app; restore it"):
        resume(write_report, "again", runs_dir=runs)
    app.write_text(app_text)
    go.touch()
    run = resume(write_report, "again", runs_dir=runs)

    assert run.summary.badge.startswith("met")
    assert first.read_bytes() == complete
    assert [each.summary.final["loss"] for each in run.programs.values()] == [0.5, 0.5]
    assert not run.can_be_resumed
    with pytest.raises(edgebed.ScenarioError, match="is complete: there is nothing to resume"):
        resume(write_report, "again", runs_dir=runs)
