"""What many nodes cost in the process runtime as root: each in a network namespace with a limited link of its own.

A fleet trains AdaComp on MNIST-like images with the CNN, every worker at 10 mbit up and 50 mbit down. While all of it
trains:

- start-up: from the launch until all nodes are started, joined and ready, and each worker has an accepted update
- memory: of all processes, shared pages counted once (PSS), and what the machine has less than before, kernel included
- updates a second, and how busy the machine is
"""

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

import edgebed
from benchmarks.subjects import BATCH_SIZE
from edgebed.core.errors import EdgebedError

LINK = {"uplink": "10mbit", "downlink": "50mbit"}
TASK = {"data": "benchmarks.containers:data", "model": "cnn", "batch_size": BATCH_SIZE}
PAUSE_S = 0.05
"""Of a worker, for each worker there is: the fleet as a whole pushes so often, whatever its size."""
SIZES = (200, 400, 800)
WORKER_BYTES = 27_000_000


def measure(*, quick: bool) -> list[dict[str, Any]]:
    """A row for each size of the fleet that there is memory for; `failed` says why one did not come up."""
    sizes = (6,) if quick else SIZES
    return [_fleet(each) for each in sizes if each * WORKER_BYTES < psutil.virtual_memory().available]


def _fleet(workers: int) -> dict[str, Any]:
    scenario = {
        "name": "bench",
        "question": "What do many nodes cost?",
        "task": TASK,
        "method": "adacomp",
        "fleet": {"edge": {"count": workers, "waiting": f"{workers * PAUSE_S:g}s", **LINK}},
        "evaluation": {"every": "1h"},
        "stop": {"updates": 3 * workers},
        "deadlines": {"join": "5m", "stall": "5m"},
    }
    onlooker = _Onlooker(2 * workers)
    with tempfile.TemporaryDirectory() as folder:
        try:
            run = edgebed.run(scenario, emulation="kernel", runs_dir=folder, progress=onlooker)
        except EdgebedError as error:
            return {"workers": workers, "failed": str(error)}
        (trial,) = run.trials.values()
    phases = trial.summary.start_up
    return {
        "workers": workers,
        "failed": "" if trial.summary.outcome == "completed" else trial.summary.reason,
        "died": trial.summary.nodes_died,
        "doubts": [str(reason) for reason in trial.summary.fidelity.reasons] if trial.summary.fidelity else [],
        "started_s": phases and phases.started_s,
        "joined_s": phases and phases.joined_s,
        "ready_s": phases and phases.training_s,
        "contributed_s": phases and phases.contributed_s,
        "training_s": trial.summary.time_s,
        **onlooker.found,
    }


class _Onlooker:
    """Looks at all processes and at the machine once, after so many updates."""

    def __init__(self, updates: int) -> None:
        self.updates = updates
        self.found: dict[str, float] = {}
        self.before_bytes = psutil.virtual_memory().available
        self.begin: tuple[float, int] | None = None

    def trial_started(self, plan: Any) -> None:
        psutil.cpu_percent()

    def update(self, status: Any) -> None:
        if status.updates and not self.begin:
            self.begin = (time.monotonic(), status.updates)
            psutil.cpu_percent()
        if self.found or status.updates < self.updates or not self.begin:
            return
        begin_s, updates = self.begin
        processes = psutil.Process().children(recursive=True)
        self.found = {
            "busy": psutil.cpu_percent() / 100,
            "updates_per_s": (status.updates - updates) / (time.monotonic() - begin_s),
            "processes": len(processes),
            "pss_bytes": sum(_pss_bytes(process.pid) for process in processes) + _pss_bytes(os.getpid()),
            "machine_bytes": self.before_bytes - psutil.virtual_memory().available,
        }

    def trial_ended(self, summary: Any) -> None:
        pass


def _pss_bytes(pid: int) -> int:
    """A process's memory, its part of shared pages included; 0 if it has just ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
