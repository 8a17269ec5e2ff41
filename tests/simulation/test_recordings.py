"""Recorded bandwidth and availability in a run: links and workers follow them, and the manifest says whose they are."""

import hashlib
from pathlib import Path

import edgebed
from edgebed.core import records
from edgebed.scenario.traces.library import SHIPPED

SCENARIO = """
name: recorded
seed: 4
task: { data: digits, model: small, batch_size: 10 }
method: asgd
fleet:
  edge: { count: 2, link_trace: lte-synthetic, waiting: 100ms }
  still: { count: 1, link_trace: { up: slow.up }, downlink: 1mbit, waiting: 100ms }
faults: [{ availability: there.csv, of: edge, at: 0s }]
stop: { time: 20s }
"""
THERE = """\
# licence: CC0-1.0
device,from_s,until_s
a,5,100
b,0,10
"""


def test_a_run_follows_recordings_and_says_whose_they_are(tmp_path: Path) -> None:
    """Workers are away when their devices were; the manifest and the report have licence, source and hash."""
    (tmp_path / "recorded.yaml").write_text(SCENARIO)
    (tmp_path / "there.csv").write_text(THERE)
    (tmp_path / "slow.up").write_text("".join(f"{k}\n" for k in range(100, 10_001, 100)))

    run = edgebed.run(tmp_path / "recorded.yaml", runtime="simulation", runs_dir=tmp_path / "runs", processes=1)

    (trial,) = run.trials.values()
    began_s = next(t for t, _, record in trial.events() if isinstance(record, records.Trial))
    pushed: dict[str, list[float]] = {}
    for t, _, record in trial.events():
        if isinstance(record, records.Update):
            pushed.setdefault(record.worker, []).append(t - began_s)
    assert min(pushed["edge-0"]) > 5.0
    assert 9.0 < max(pushed["edge-1"]) < 11.0
    assert max(pushed["still-0"]) > 19.0
    link = trial.folder.read_plan().node("still-0").link
    assert {change.uplink_bit_s for change in link.changes} == {120_000}
    assert link.downlink_bit_s == 1_000_000
    shipped, slow, there = run.manifest["recordings"]
    assert shipped["licence"] == "Apache-2.0"
    assert shipped["sha256"] == hashlib.sha256((SHIPPED / "lte-synthetic.csv").read_bytes()).hexdigest()
    digest = hashlib.sha256((tmp_path / "slow.up").read_bytes()).hexdigest()
    assert slow == {"path": str(tmp_path / "slow.up"), "sha256": digest}
    assert (there["path"], there["licence"]) == (str(tmp_path / "there.csv"), "CC0-1.0")
    assert f"there.csv (CC0-1.0, sha256 {there['sha256'][:12]})" in run.folder.report.read_text()
