"""Whether `shards: {cuts: auto}` beats even cuts with one device four times slower, and steps take what `plan` says.

The layers are profiled here and now, then eight layers are trained on four devices in real processes, as root: CPU caps
and links are held by the kernel. A step is the time from one update to the next, without the first ones.
"""

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import edgebed
from edgebed.journal.series import Series
from edgebed.planning.bursts import burst_step_s
from edgebed.planning.planning import plan_trials
from edgebed.scenario.load import load_scenario
from edgebed.scenario.profiles import write_profile
from edgebed.studies.host.profile import profile_trials
from edgebed.studies.host.profiling_nodes import own_s

METHODS = ("back-propagation", "synthetic-gradients")
LINKS: dict[str, dict[str, str]] = {
    "links as fast as the machine": {},
    "links of 20 mbit": {"uplink": "20mbit", "downlink": "20mbit"},
}
CUTS = ("even", "auto")
FAST, SLOW = 0.4, 0.1
"""Cores; four of them are less than two together."""
WARM_UP = 0.25
"""Share of the updates that is left out."""


def measure(*, quick: bool) -> list[dict[str, Any]]:
    """A row for each method, kind of links and choice of cuts."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "profile.yaml"
        scenario = _scenario("", {}, 1.0) | {
            "variants": {method: {"method": method} for method in METHODS},
            "method": METHODS[0],
        }
        profile = profile_trials(plan_trials(load_scenario(scenario))).model_copy(update={"own": own_s()})
        place.write_text(write_profile(profile, ()), encoding="utf-8")
        return list(_rows(place, 10.0 if quick else 40.0))


def _rows(profile: Path, seconds: float) -> Iterator[dict[str, Any]]:
    for method in METHODS:
        for name, link in LINKS.items():
            for cuts in CUTS:
                shards = {"cuts": cuts, "profile": str(profile)}
                scenario = _scenario(method, link, seconds) | {"shards": shards}
                (planned,) = plan_trials(load_scenario(scenario))
                assert planned.partition is not None
                with tempfile.TemporaryDirectory() as folder:
                    run = edgebed.run(scenario, runtime="process", emulation="kernel", runs_dir=folder)
                    (trial,) = run.trials.values()
                    measured_s = step_s(trial.series)
                    fidelity = trial.summary.fidelity
                yield {
                    "method": method,
                    "links": name,
                    "cuts": cuts,
                    "layers": planned.partition.cuts,
                    "predicted_s": burst_step_s(planned.partition, planned.plan),
                    "measured_s": measured_s,
                    "verdict": fidelity.verdict if fidelity else "",
                }


def step_s(series: Series) -> float:
    """Mean time from one update to the next, but for those at the beginning."""
    times = series.updates.t
    first = int(WARM_UP * len(times))
    return float(statistics.mean((times[first + 1 :] - times[first:-1]).tolist()))


def _scenario(method: str, link: dict[str, str], seconds: float) -> dict[str, Any]:
    fast = {"cpus": FAST, **link}
    return {
        "name": "bench-shards",
        "question": "Are predicted steps those that are measured?",
        "task": {"data": "benchmarks.containers:data", "model": "eight-layer", "width": 16, "batch_size": 64},
        "method": method,
        "fleet": {
            "near": {"count": 1, **fast},
            "slow": {"count": 1, "cpus": SLOW, **link},
            "far": {"count": 2, **fast},
        },
        "evaluation": {"every": "100000 updates"},
        "checkpoints": {"every": "100000 updates"},
        "deadlines": {"stall": "2m"},
        "stop": {"time": f"{seconds}s"},
    }
