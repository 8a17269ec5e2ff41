"""What `plan` predicts of a step is what virtual time makes of it, and cuts that know of a slow device are worth it."""

import functools
import tempfile
from typing import Any

import pytest
from quick_runs import run as run_quickly

from edgebed.planning.planning import plan_trials
from edgebed.scenario.load import load_scenario

STEPS = 32
FLEET = {"near": {"count": 1}, "slow": {"count": 1, "compute_speed": 0.25}, "far": {"count": 2}}
LINK = {"uplink": "20mbit", "downlink": "20mbit", "latency": "2ms"}
METHODS: dict[str, Any] = {
    "back-propagation": "back-propagation",
    "micro-batches": {"preset": "back-propagation", "learning": {"micro_batches": 4}},
    "synthetic-gradients": "synthetic-gradients",
    "true gradients": {"preset": "synthetic-gradients", "learning": {"target": "back-propagated"}},
    "blend": {"preset": "synthetic-gradients", "learning": {"blend": 0.5}},
    "decoupled-greedy": "decoupled-greedy",
    "float16": {"preset": "back-propagation", "exchange": {"values": "float16"}},
    "int8": {"preset": "back-propagation", "exchange": {"name": "int8"}},
    "top-k": {"preset": "back-propagation", "exchange": {"name": "top-k", "fraction": 0.1}},
}
TOLD_APART = {
    "back-propagation", "micro-batches", "synthetic-gradients", "decoupled-greedy", "float16", "top-k",
}  # fmt: skip
"""Methods between which what is sent, and who waits for it, differs most; the others are for a soak."""


def scenario(method: Any, *, link: dict[str, str], shards: dict[str, Any], **rest: Any) -> dict[str, Any]:
    """Eight layers on four devices, the second of them four times slower."""
    return {
        "name": "predicted",
        "seed": 3,
        "task": {"data": "digits", "model": "eight-layer", "width": 4, "batch_size": 32, "gradient_time": "40ms"},
        "method": method,
        "fleet": {name: {**each, **link} for name, each in FLEET.items()},
        "shards": shards,
        "evaluation": {"every": "100000 updates"},
        "checkpoints": {"every": "100000 updates"},
        "stop": {"updates": STEPS},
        **rest,
    }


def times_of(given: dict[str, Any]) -> tuple[float, float]:
    """(predicted, simulated) seconds of a step."""
    (planned,) = plan_trials(load_scenario(given))
    assert planned.partition is not None
    with tempfile.TemporaryDirectory() as folder:
        run = run_quickly(given, runtime="simulation", runs_dir=folder)
        (trial,) = run.trials.values()
        times = trial.series.updates.t
    first = STEPS // 4
    return planned.partition.step_s, float(times[-1] - times[first]) / (len(times) - 1 - first)


@functools.cache
def with_cuts(method: str, links: str, cuts: str) -> tuple[float, float]:
    """Of one of the methods."""
    return times_of(scenario(METHODS[method], link=LINK if links else {}, shards={"cuts": cuts}))


@pytest.mark.parametrize(
    ("method", "links"),
    [pytest.param(method, "20 mbit", marks=() if method in TOLD_APART else pytest.mark.soak) for method in METHODS]
    + [(method, "") for method in ("back-propagation", "synthetic-gradients")]
    + [pytest.param(method, "", marks=pytest.mark.soak) for method in ("micro-batches", "decoupled-greedy")],
)
def test_a_step_takes_what_was_predicted(method: str, links: str) -> None:
    """Within a tenth."""
    predicted_s, simulated_s = with_cuts(method, links, "auto")

    assert simulated_s == pytest.approx(predicted_s, rel=0.1)


@pytest.mark.parametrize("links", ["", "20 mbit"])
@pytest.mark.parametrize("method", ["back-propagation", "synthetic-gradients"])
def test_auto_beats_even_where_a_device_is_slow(method: str, links: str) -> None:
    """Its step is shorter, and both are as predicted."""
    auto, even = (with_cuts(method, links, cuts) for cuts in ("auto", "even"))

    assert auto[1] < even[1]
    assert even[1] == pytest.approx(even[0], rel=0.1)


@pytest.mark.parametrize(
    ("shards", "rest"),
    [
        ({"traffic": "store"}, {"store": {"uplink": "5mbit", "downlink": "5mbit"}}),
        ({"modules": "apart"}, {"modules": {"uplink": "5mbit", "downlink": "5mbit"}}),
        ({"queue": 1}, {}),
    ],
    ids=["store", "modules apart", "queue of one"],
)
def test_what_all_share_is_predicted(shards: dict[str, Any], rest: dict[str, Any]) -> None:
    """A link that every message passes, the node with all modules, a queue."""
    predicted_s, simulated_s = times_of(scenario("synthetic-gradients", link=LINK, shards=shards, **rest))

    assert simulated_s == pytest.approx(predicted_s, rel=0.1)
