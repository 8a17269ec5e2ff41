"""Whether the model of links agrees with the kernel: the same scenario in virtual time and in real namespaces, as root.

Computing takes little beside fixed pauses, so that links decide how long an update takes. The scenarios differ in what
is slow: both ways, pulls of a whole model, the link of a server that all share, acknowledgements on a slow uplink.
"""

import tempfile
from typing import Any

import edgebed
from edgebed.core.runtimes import Emulation, Runtime

PAUSE = "100ms"
SMALL = {"data": "digits", "model": "small", "batch_size": 10, "gradient_time": "2ms"}
CNN = {"data": "benchmarks.containers:data", "model": "cnn", "batch_size": 10, "gradient_time": "10ms"}
SCENARIOS: dict[str, dict[str, Any]] = {
    "small model, whole pushes": {
        "task": SMALL,
        "method": "asgd",
        "fleet": {
            "slow": {"count": 2, "uplink": "1mbit", "downlink": "10mbit", "waiting": PAUSE},
            "fast": {"count": 2, "uplink": "5mbit", "downlink": "5mbit", "latency": "10ms", "waiting": PAUSE},
        },
    },
    "CNN, compressed pushes": {
        "task": CNN,
        "method": "adacomp",
        "fleet": {
            "slow": {"count": 2, "uplink": "2mbit", "downlink": "20mbit", "waiting": PAUSE},
            "fast": {"count": 2, "uplink": "10mbit", "downlink": "50mbit", "latency": "10ms", "waiting": PAUSE},
        },
    },
    "CNN, the server's link is shared": {
        "task": CNN,
        "method": "adacomp",
        "fleet": {"edge": {"count": 4, "uplink": "10mbit", "downlink": "50mbit", "waiting": PAUSE}},
        "server": {"uplink": "50mbit", "downlink": "10mbit"},
    },
    "CNN, acknowledgements fill the uplink": {
        "task": CNN,
        "method": "adacomp",
        "fleet": {"edge": {"count": 2, "uplink": "1mbit", "downlink": "100mbit", "waiting": PAUSE}},
    },
}


def measure(*, quick: bool) -> list[dict[str, Any]]:
    """For each scenario the seconds an update, in the simulation and in namespaces; of one in four if quick."""
    step, updates = (4, 10) if quick else (1, 200)
    return [_agreement(name, scenario, updates) for name, scenario in [*SCENARIOS.items()][::step]]


def _agreement(name: str, scenario: dict[str, Any], updates: int) -> dict[str, Any]:
    rest = {
        "name": "bench",
        "question": "Does the model of links agree with the kernel?",
        "evaluation": {"every": "1h"},
        "stop": {"updates": updates},
    }
    row: dict[str, Any] = {"scenario": name}
    ways: tuple[tuple[str, Runtime, Emulation], ...] = (
        ("simulation", "simulation", "auto"),
        ("namespaces", "process", "kernel"),
    )
    for key, runtime, emulation in ways:
        with tempfile.TemporaryDirectory() as folder:
            run = edgebed.run({**rest, **scenario}, runtime=runtime, emulation=emulation, runs_dir=folder)
            (trial,) = run.trials.values()
            per_s = trial.summary.updates_per_s
            assert per_s
            row[f"{key}_s"] = 1.0 / per_s
            row[f"{key}_verdict"] = trial.summary.fidelity.verdict if trial.summary.fidelity else ""
    return row
