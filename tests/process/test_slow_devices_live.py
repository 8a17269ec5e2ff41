"""Devices whose gradient takes longer than a silence may, in processes: heard while they compute, and not otherwise."""

from pathlib import Path

import pytest
from quick_runs import run as run_quickly

from edgebed.core import records

pytestmark = pytest.mark.timed

SILENCE_S = 3.0
MODULE = """
import time

from torch import nn


class Slow(nn.Module):
    '''A layer that takes its time while it is trained, and none when it is measured.'''

    def __init__(self, input_shape, outputs):
        super().__init__()
        self.layer = nn.Sequential(nn.Flatten(), nn.Linear(64, outputs))

    def forward(self, x):
        time.sleep(4.0 * self.training)
        return self.layer(x)
"""
SCENARIO = """
name: slow
question: Who is given up?
seed: 1
task: { data: digits, model: "slow_forward:Slow", batch_size: 10 }
method: asgd
fleet: { edge: { count: 3, uplink: 1mbit, downlink: 1mbit } }
evaluation: { every: 100 updates }
stop: { time: 18s }
faults:
  - { freeze: edge-1, at: 5s, for: 6s }
  - { cut: edge-2, at: 5s, for: 9s }
deadlines: { silence: 3s, stall: 3s }
"""


def test_who_computes_stays_and_who_is_frozen_or_cut_off_is_given_up(tmp_path: Path) -> None:
    """By a message of the process itself: a frozen one sends none, though its kernel answers; nor does a cut link.

    The trial waits for who computes, too: between two updates are four seconds, of which a stall is three.
    """
    (tmp_path / "slow_forward.py").write_text(MODULE)
    path = tmp_path / "slow.yaml"
    path.write_text(SCENARIO)
    run = run_quickly(path, runtime="process", runs_dir=tmp_path / "runs")
    trial = run.trials["asgd"]
    began_s = trial.series.training_s
    assert began_s is not None
    entries = list(trial.events())
    left = {record.worker: t - began_s for t, _, record in entries if isinstance(record, records.Left)}
    reasons = {record.reason for _, _, record in entries if isinstance(record, records.Left)}
    pushed = {worker: trial.series.updates_by_worker.get(worker, 0) for worker in ("edge-0", "edge-1", "edge-2")}

    assert left.keys() == {"edge-1", "edge-2"}
    assert reasons == {"silence"}
    assert 5.0 + SILENCE_S - 1.5 < left["edge-1"] < 11.0
    assert pushed["edge-0"] >= 3
    assert pushed["edge-0"] > max(pushed["edge-1"], pushed["edge-2"])
    assert trial.summary.fidelity is not None
    assert "silence" not in trial.summary.fidelity.causes
    assert "staleness" not in trial.summary.fidelity.causes
