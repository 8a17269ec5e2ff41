"""What churn costs in virtual time: ten times as many departures are to cost ten times as much, not a hundred times.

A run as a user has it, from the scenario to its report, with half of thirty workers away at any time. Workers push once
a minute, so that what is done to them is most of what happens. Processor time counts, of one process.
"""

import contextlib
import io
import tempfile
import time
from typing import Any

import edgebed
from edgebed.core import records

WORKERS, A_MINUTE, ABSENT_S = 30, 30, 30
MINUTES = (60, 600)


def measure(*, quick: bool) -> list[dict[str, Any]]:
    """Seconds of processor time a step, of a short churn and one of ten times its length, and their ratio."""
    _run(1)  # whatever is imported is imported
    short, long = (_run(minutes // 60 if quick else minutes) for minutes in MINUTES)
    per_step_s = [(steps, spent_s / steps) for steps, spent_s in (short, long)]
    (_, before_s), (_, after_s) = per_step_s
    return [{"per_step_s": per_step_s, "ratio": after_s / before_s}]


def _run(minutes: int) -> tuple[int, float]:
    """Steps done to nodes, and seconds of processor time for all that the command does."""
    scenario = {
        "name": "bench-churn",
        "task": {"data": "digits", "model": "small", "batch_size": 4, "gradient_time": "5ms"},
        "method": "adacomp",
        "fleet": {"edge": {"count": WORKERS, "waiting": {"exponential": "60s"}, "uplink": "1mbit", "latency": "30ms"}},
        "evaluation": {"every": "2000 updates"},
        "deadlines": {"stall": "10m"},
        "faults": [
            {"churn": A_MINUTE, "of": "workers", "at": "1s", "for": f"{minutes}m", "absent": f"{ABSENT_S}s"},
            {"flap": "edge-3", "at": "1s", "for": f"{minutes}m", "up": "20s", "down": "5s"},
        ],
        "stop": {"time": f"{minutes + 1}m"},
    }
    began_s = time.process_time()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        run = edgebed.run(scenario, runtime="simulation", processes=1, runs_dir=folder)
        spent_s = time.process_time() - began_s
        (trial,) = run.trials.values()
        return sum(isinstance(record, records.Fault) for _, _, record in trial.events()), spent_s
