"""A rate between two nodes, in every runtime: no more passes between them, and all others have their whole links."""

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from quick_runs import run as run_quickly

from edgebed.core import records
from edgebed.core.framing import wire_bytes

RUNTIMES = [
    pytest.param("simulation", "auto", 6, marks=pytest.mark.simulation),
    pytest.param("process", "auto", 6, marks=pytest.mark.process),
    pytest.param("process", "model", 6, marks=pytest.mark.process),
    pytest.param("docker", "auto", 15, marks=pytest.mark.docker),
]
"""Runtimes, what holds links, and seconds for which the rate holds: a container may take ten until it trains."""
RATE_BIT_S = 400_000
SCENARIO = {
    "name": "between",
    "question": "Who is slowed down?",
    "task": {"data": "digits", "model": "small", "batch_size": 10, "gradient_time": "1ms"},
    "method": "asgd",
    "fleet": {"edge": {"count": 2, "waiting": "20ms", "uplink": "20mbit", "downlink": "20mbit"}},
    "evaluation": {"every": "500 updates"},
}


@pytest.mark.parametrize(("runtime", "emulation", "for_s"), RUNTIMES)
def test_an_update_over_the_way_between_two_takes_its_bytes(
    runtime: str, emulation: Literal["auto", "model"], for_s: int, tmp_path: Path
) -> None:
    """Both ways, in the next life of one of them, too, and until the end; both ends say what is held, by the kernel."""
    scenario = SCENARIO | {
        "faults": [
            {
                "link": {"between": ["server", "edge-0"]},
                "rate": "400kbit",
                "at": "2s",
                "for": f"{for_s}s",
                "name": "slow",
            },
            {"restart": "edge-0", "at": "3s", "delay": "500ms"},
        ],
        "stop": {"time": f"{for_s + 5}s"},
    }
    run = run_quickly(scenario, runtime=runtime, emulation=emulation, trace=True, runs_dir=tmp_path)
    (trial,) = run.trials.values()
    faults = [(t, each) for t, _, each in trial.events() if isinstance(each, records.Fault) and each.name == "slow"]
    (since_s, began), (_, ended) = faults
    updates = [(t, each.worker) for t, _, each in trial.events() if isinstance(each, records.Update)]
    links = [(node, each) for _, node, each in trial.events() if isinstance(each, records.Link)]
    sizes = {each.message: each.bytes for _, _, each in trial.events() if isinstance(each, records.Sent)}
    least_s = sum(wire_bytes(sizes[kind]) - 1600 for kind in ("push", "model")) * 8 / RATE_BIT_S

    def between_s(worker: str, from_s: float, until_s: float) -> np.ndarray:
        return np.diff([t for t, each in updates if each == worker and from_s < t < until_s])

    assert (began.change, ended.change) == (
        "rate 400kbit between edge-0 and server",
        "as planned between edge-0 and server",
    )
    assert not any(each.problem or each.no_op for _, each in faults)
    slow_s = between_s("edge-0", since_s + 1.0, ended.asked_s)
    assert len(slow_s) > 1
    assert slow_s.min() > 0.95 * least_s
    assert np.median(between_s("edge-0", ended.asked_s + 1.0, 1e9)) < 0.5 * least_s
    assert np.median(between_s("edge-1", since_s, ended.asked_s)) < 0.5 * least_s
    if runtime != "simulation":
        assert {node for node, each in links if each.narrowed} == {"edge-0", "server"}
    assert {rate for _, each in links for rate in each.narrowed.values()} <= {RATE_BIT_S}
    assert not any(each.differed for _, each in links)
    late = "after it was asked for"  # on a busy machine
    reasons = trial.summary.fidelity.reasons
    wrong = [why for why in reasons if why.startswith(("faults", "link")) and late not in why]
    assert wrong == []
