"""A cut between two nodes, in every runtime: nothing passes between the two, and all others go on."""

from pathlib import Path

import pytest
from quick_runs import run as run_quickly

from edgebed.core import records

RUNTIMES = [
    pytest.param("simulation", 5, marks=pytest.mark.simulation),
    pytest.param("process", 5, marks=pytest.mark.process),
    pytest.param("docker", 15, marks=pytest.mark.docker),
]
"""Runtimes, and seconds for which to cut: a container may take ten until it trains."""
SCENARIO = {
    "name": "between",
    "question": "Who is cut off?",
    "task": {"data": "digits", "model": "small", "batch_size": 10, "gradient_time": "1ms"},
    "method": "asgd",
    "fleet": {"edge": {"count": 2, "waiting": "20ms"}},
    "evaluation": {"every": "500 updates"},
}
UNDER_WAY_S = 0.5
"""Seconds after a cut in which the server may still apply what it had received."""


@pytest.mark.parametrize(("runtime", "cut_for_s"), RUNTIMES)
def test_one_is_cut_off_in_its_next_life_too_and_the_other_goes_on(
    runtime: str, cut_for_s: int, tmp_path: Path
) -> None:
    """Until the last of the cuts is over; both ends read back from the kernel that they are apart, where it does it."""
    scenario = SCENARIO | {
        "faults": [
            {"cut": {"between": ["server", "edge-0"]}, "at": "1s", "for": f"{cut_for_s}s", "name": "long"},
            {"cut": {"between": ["edge-0", "server"]}, "at": "2s", "for": "1s", "name": "short"},
            {"restart": "edge-0", "at": "1500ms", "delay": "500ms"},
        ],
        "stop": {"time": f"{2 * cut_for_s + 2}s"},
    }
    (trial,) = run_quickly(scenario, runtime=runtime, runs_dir=tmp_path).trials.values()
    faults = {(each.name, each.action): (t, each) for t, _, each in trial.events() if isinstance(each, records.Fault)}
    cut_s, healed_s = faults["long", "cut"][0], faults["long", "heal"][1].asked_s
    updates = [(t, each.worker) for t, _, each in trial.events() if isinstance(each, records.Update)]
    links = [(node, each) for _, node, each in trial.events() if isinstance(each, records.Link)]

    assert {each.peer for name, (_, each) in faults.items() if name[0] != "restart-3"} == {"server"}
    assert faults["short", "heal"][1].no_op.endswith("it is cut by long, too")
    assert not any(each.problem for _, each in faults.values())
    assert [t for t, worker in updates if worker == "edge-0" and cut_s + UNDER_WAY_S < t < healed_s] == []
    assert [t for t, worker in updates if worker == "edge-1" and cut_s + UNDER_WAY_S < t < healed_s]
    assert [t for t, worker in updates if worker == "edge-0" and t > healed_s]
    if runtime != "simulation":
        assert {node for node, each in links if each.apart} == {"edge-0", "server"}
    assert not any(each.differed for _, each in links)
    wrong = [why for why in trial.summary.fidelity.reasons if why.startswith(("faults: the way between", "link"))]
    assert wrong == []
