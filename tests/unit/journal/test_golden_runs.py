"""Run folders that were written once, one of each family of methods: whoever has such a run can read it from then on.

A change to plans, records or the way they are folded that cannot read them anew breaks what users have. Where that is
meant, `UPDATE_GOLDENS=1` makes them anew.
"""

import json
import shutil
from pathlib import Path

import pytest
from goldens import UPDATING
from quick_runs import run

from edgebed.journal.run_folder import RunFolder
from edgebed.journal.summary import summarise
from edgebed.reports.run.report import report_page
from edgebed.reports.writing.markdown import to_markdown
from edgebed.running.results import Run

GOLDENS = Path(__file__).parent / "golden_runs"
COMMON = {
    "seed": 1,
    "task": {"data": "digits", "model": "small", "batch_size": 10},
    "checkpoints": {"every": "6 updates"},
}
SCENARIOS = {
    "asynchronous": {
        "method": "adacomp",
        "fleet": {"fast": {"count": 1}, "slow": {"count": 1, "compute_speed": 0.5, "uplink": "5mbit"}},
        "faults": [{"restart": "slow-0", "after": "push", "step": 2, "delay": "20ms"}],
        "evaluation": {"every": "6 updates"},
        "stop": {"updates": 18},
    },
    "federated": {
        "method": "fedavg",
        "fleet": {"edge": {"count": 2}},
        "evaluation": {"every": "2 updates"},
        "stop": {"updates": 6},
    },
    "shards": {
        "method": "synthetic-gradients",
        "fleet": {"edge": {"count": 2}},
        "evaluation": {"every": "4 updates"},
        "stop": {"updates": 8},
    },
}
OF_MANIFEST = ("scenario", "seed", "runtime", "trials", "started", "versions")
"""What a manifest says beside the machine that it was made on."""


def make(family: str, root: Path) -> None:
    """Write the run of a family anew, made in another folder."""
    made = run({"name": family} | COMMON | SCENARIOS[family], runtime="simulation", runs_dir=root).folder
    (trial,) = made.trials()
    golden = GOLDENS / family / "1"
    (golden / trial.name).mkdir(parents=True, exist_ok=True)
    for file in ("scenario.yaml", f"{trial.name}/plan.json", f"{trial.name}/events.jsonl"):
        shutil.copyfile(made.path / file, golden / file)
    manifest = {name: value for name, value in made.read_manifest().items() if name in OF_MANIFEST}
    (golden / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("family", "workers", "versions"),
    [
        ("asynchronous", ["fast-0", "slow-0"], [0, 6, 12, 18]),
        ("federated", ["edge-0", "edge-1"], [0, 2, 4, 6]),
        ("shards", ["edge-0", "edge-1"], [0, 4, 8]),
    ],
)
def test_a_run_of_each_family_is_read(tmp_path, family, workers, versions):
    """TrainingPlan, series, summary and report; every update and step is accounted for."""
    if UPDATING:
        make(family, tmp_path)
    found = Run(RunFolder(GOLDENS / family / "1"))
    (trial,) = found.trials.values()

    assert [worker.node for worker in trial.plan.workers()] == workers
    assert trial.plan.server.task.layout
    assert trial.series.evaluations.version.tolist() == versions
    summary = summarise(trial.plan, trial.series)
    assert (summary.outcome, summary.is_sound) == ("completed", True)
    assert to_markdown(report_page(found)).startswith(f"# {family}")
