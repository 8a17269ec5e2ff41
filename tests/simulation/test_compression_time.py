"""`task.compression_time` and `exchange_time` in virtual time: once a push, and nowhere else."""

from collections.abc import Callable
from typing import Any

import pytest

from edgebed.core import records
from edgebed.emulation.model.cpu_quota import PERIOD_S
from edgebed.roles.work import EvaluationJob
from edgebed.runtimes.device_time import job_time_s

Simulate = Callable[..., Any]  # conftest.py
UPDATES = 20
COMPRESSION_S = 0.007


def ended_s(
    simulate: Simulate,
    time: str,
    method: Any = "asgd",
    *,
    of: str = "compression_time",
    gradient_time: str | None = "10ms",
    **device: Any,
) -> float:
    """When the last of the updates of a fleet of one was applied; without a gradient's time, it is counted."""
    outcome = simulate(
        {
            "name": "compression-time",
            "seed": 3,
            "task": {"data": "digits", "fraction": 0.05, "model": "small", "gradient_time": gradient_time} | {of: time},
            "method": method,
            "fleet": {"edge": device},
            "evaluation": {"every": "20 updates"},
            "stop": {"updates": UPDATES},
        }
    )
    return float(outcome.of(records.Update)[-1][0])


@pytest.mark.parametrize(
    ("device", "factor", "within_s"),
    [
        pytest.param({}, 1.0, 1e-5, id="as-said"),
        pytest.param({"compute_speed": 0.5}, 2.0, 1e-5, id="slow"),
        pytest.param({"cpus": 0.25}, 4.0, PERIOD_S, id="capped"),
        pytest.param({"cpus": 4.0}, 1.0, 1e-5, id="more-than-a-core"),
        pytest.param({"compute_speed": 2.0, "waiting": "50ms"}, 0.5, 1e-5, id="fast-pausing"),
    ],
)
@pytest.mark.parametrize(
    "method",
    [
        "asgd",
        {"preset": "sync-sgd", "compression": {"name": "int8"}},
        {"preset": "fedavg", "local_work": {"steps": 3}},
        {"preset": "fedavg", "local_work": {"epochs": 2.0}},
    ],
    ids=["gradient", "int8", "three-steps", "two-epochs"],
)
def test_every_push_takes_it_once(
    simulate: Simulate, method: Any, device: dict[str, Any], factor: float, within_s: float
) -> None:
    """However many steps a push stands for; divided by the device's speed, and held up by its cap, as gradients are."""
    without, beside = (ended_s(simulate, time, method, **device) for time in ("0s", "7ms"))

    assert beside - without == pytest.approx(UPDATES * COMPRESSION_S * factor, abs=within_s)


@pytest.mark.parametrize(
    ("slow", "fast"),
    [({"speed": "4 GFLOP/s"}, {"speed": "8 GFLOP/s"}), ({"compute_speed": 0.5}, {})],
    ids=["speed", "compute-speed"],
)
def test_half_the_speed_takes_twice_as_long_for_both(
    simulate: Simulate, slow: dict[str, Any], fast: dict[str, Any]
) -> None:
    """For gradients, which are counted, and for compressing."""
    for of_push in ("0s", "7ms"):
        slow_s, fast_s = (ended_s(simulate, of_push, gradient_time=None, **device) for device in (slow, fast))

        assert slow_s == pytest.approx(2 * fast_s, rel=1e-4)


def test_a_device_compresses_as_much_slower_as_it_computes(simulate: Simulate) -> None:
    """The scenario's time is that of the reference core, of which a profile's time of a gradient is some multiple."""
    device = {"device": "raspberry-pi-4"}
    of_device, of_reference = (ended_s(simulate, "0s", gradient_time=None, **each) for each in (device, {}))
    beside_s = ended_s(simulate, "7ms", gradient_time=None, **device) - of_device

    assert beside_s == pytest.approx(UPDATES * COMPRESSION_S * of_device / of_reference, rel=1e-4)


@pytest.mark.parametrize("device", [{}, {"compute_speed": 0.5}, {"speed": "5 GFLOP/s"}], ids=["as-said", "slow", "5G"])
def test_an_exchange_takes_as_long_on_any_device(simulate: Simulate, device: dict[str, Any]) -> None:
    """It is the server's work and the network's as much as the device's."""
    without, beside = (ended_s(simulate, time, of="exchange_time", **device) for time in ("0s", "7ms"))

    assert beside - without == pytest.approx(UPDATES * 0.007, abs=1e-5)


def test_local_steps_take_their_own_time_each(simulate: Simulate) -> None:
    """What grows with the steps is the gradients' time alone."""
    one, three = (ended_s(simulate, "7ms", {"preset": "fedavg", "local_work": {"steps": steps}}) for steps in (1, 3))

    assert three - one == pytest.approx(UPDATES * 2 * 0.010, abs=1e-5)


def test_whoever_measures_compresses_nothing(simulate: Simulate) -> None:
    """The evaluator's work takes no virtual time at all."""
    scenario = {
        "name": "measured",
        "task": {"data": "digits", "model": "small", "compression_time": "7ms"},
        "method": "asgd",
        "fleet": {"edge": {}},
        "stop": {"updates": 1},
    }
    plan = simulate(scenario).plan

    assert job_time_s(plan.node("evaluator"), EvaluationJob(None, 0, final=False), None) == 0.0  # type: ignore[arg-type]
