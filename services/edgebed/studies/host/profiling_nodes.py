"""Profile a live shard's own share of a step whatever layers it has: CPU time for protocol, journal and metrics.

A model that computes next to nothing is trained by four processes; what they take beyond its layers and messages, by a
profile of these, is that share.
"""

import statistics
import tempfile
from pathlib import Path
from typing import Any

from edgebed.core.errors import InfrastructureError
from edgebed.planning.planning import plan_trials
from edgebed.running.run import run as run_scenario
from edgebed.running.run import without_report
from edgebed.scenario.load import load_scenario
from edgebed.scenario.profiles import write_profile
from edgebed.studies.host.profile import DIGITS, profile_trials

STEPS = 60
SPEED = 0.1
"""Share of a core to which nodes hold themselves back, so that they mostly wait, as shards with caps do."""
SCENARIO: dict[str, Any] = {
    "name": "own-time",
    "task": {"data": "digits", "model": "four-layer", "width": 1, "batch_size": 8, "gradient_time": "1ms"},
    "method": "back-propagation",
    "fleet": {"edge": {"count": 4, "compute_speed": SPEED}},
    "evaluation": {"every": "100000 updates"},
    "checkpoints": {"every": "100000 updates"},
    "stop": {"updates": STEPS},
}


def own_s() -> float:
    """Seconds of a step besides layers, the median of four shards. InfrastructureError where the run fails."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "profile.yaml"
        place.write_text(write_profile(profile_trials(plan_trials(load_scenario(SCENARIO))), ()), encoding="utf-8")
        scenario = SCENARIO | {"shards": {"profile": str(place)}}
        (planned,) = plan_trials(load_scenario(scenario))
        assert planned.partition is not None
        run = run_scenario(without_report, scenario, runtime="process", emulation="model", runs_dir=folder)
        (trial,) = run.trials.values()
        summary = trial.summary
    if not summary.ran_to_end or summary.fidelity is None:
        raise InfrastructureError(f"a run of {STEPS} steps to measure with ended early: {summary.reason}")
    taken = {node.node: (node.cpus_measured or 0.0) * node.time_s for node in summary.fidelity.nodes}
    workers = [node.node for node in planned.plan.workers()]
    beyond_s = [
        taken[name] / summary.updates - SPEED * known_s
        for name, known_s in zip(workers, planned.partition.stage_s, strict=True)
    ]
    return float(f"{max(0.0, statistics.median(beyond_s)):.{DIGITS}g}")
