"""Streaming DiLoCo in virtual time: what a worker computes while a fragment travels costs no time, and no more."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgebed.journal.run_folder import RunFolder
from edgebed.running.results import Run, Trial
from edgebed.running.run import Options, host_of, plan_checked, run_trials
from edgebed.scenario.load import load_scenario

ROUNDS, WORKERS, STEPS, FRAGMENTS = 8, 2, 12, 2
GRADIENT_S = 0.1


def scenario(overlap: int) -> dict[str, Any]:
    """Workers alike, whose pushes take a second or so, and whose gradients a tenth."""
    return {
        "name": f"overlap-{overlap}",
        "task": {"data": "digits", "model": "small", "batch_size": 8, "gradient_time": f"{GRADIENT_S}s"},
        "method": {
            "preset": "streaming-diloco",
            "local_work": {"steps": STEPS, "fragments": FRAGMENTS, "overlap": overlap},
        },
        "fleet": {"edge": {"count": WORKERS, "uplink": "80kbit", "downlink": "10mbit"}},
        "evaluation": {"every": f"{ROUNDS * WORKERS} updates"},
        "stop": {"updates": ROUNDS * WORKERS},
    }


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Trial]:
    """A trial for each overlap."""
    found = {}
    for overlap in (0, 1, 3):  # so that the link has rested before each push
        options = Options(runtime="simulation", emulation="auto", trace=False, force=False)
        planned = plan_checked(load_scenario(scenario(overlap)), options)
        folder = RunFolder.create(Path(tmp_path_factory.mktemp("runs")), f"overlap-{overlap}")
        with host_of(options, planned, processes=1, port=0) as host:
            run_trials(planned, folder, host, progress=None)
        (found[overlap],) = Run(folder).trials.values()
    return found


def times(trial: Trial) -> list[float]:
    """When each round ended."""
    return [float(t) for t in trial.series.updates.t[WORKERS - 1 :: WORKERS]]


def test_overlapped_steps_cost_nothing_while_a_fragment_travels(trials: dict[int, Trial]) -> None:
    """A round is as much shorter as the steps take that are made meanwhile, as long as these are the shorter."""
    rounds = {overlap: np.diff(times(trial)) for overlap, trial in trials.items()}

    for k in range(ROUNDS - 1):
        assert rounds[0][k] - rounds[1][k] == pytest.approx(GRADIENT_S, abs=0.01)
        assert rounds[0][k] - rounds[3][k] == pytest.approx(3 * GRADIENT_S, abs=0.01)


def test_a_push_and_an_answer_have_a_fragment_each(trials: dict[int, Trial]) -> None:
    """After the first model, which is whole: half of the entries up, and half of them down."""
    for trial in trials.values():
        size = sum(tensor.size for tensor in trial.plan.nodes[0].task.layout)
        assert {int(count) for count in trial.series.updates.entries} <= {size // 2, size - size // 2}
        assert trial.summary.server.egress_bytes < 4 * size * WORKERS * (1.1 + 0.55 * ROUNDS + 1.1)
