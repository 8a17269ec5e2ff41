"""What a gradient takes on a device: its operations over the device's speed, in the order of things, too."""

from collections.abc import Callable
from typing import Any

import pytest

from edgebed.core import records
from edgebed.core.planned.device_core import REFERENCE
from edgebed.scenario.devices.profile import read_device

Simulate = Callable[..., Any]  # conftest.py
UPDATES = 20
FLOP = 201600 + 640  # of `small` on the digits, with mini-batches of ten; see test_gradient_operations.py
SCENARIO = {
    "name": "device-times",
    "seed": 3,
    "task": {"data": "digits", "fraction": 0.05, "model": "small"},
    "method": "asgd",
    "evaluation": {"every": "20 updates"},
    "stop": {"updates": UPDATES},
}
LAYERS = SCENARIO | {"task": SCENARIO["task"] | {"model": "four-layer", "width": 2}, "method": "back-propagation"}


def ended_s(simulate: Simulate, *devices: dict[str, Any], scenario: dict[str, Any] = SCENARIO) -> float:
    """When the last of the updates, or steps, of a fleet with these classes was applied."""
    outcome = simulate(scenario | {"fleet": {f"class{k}": device for k, device in enumerate(devices)}})
    kind = records.Step if outcome.plan.nodes[0].method.is_layerwise else records.Update
    return float(outcome.of(kind)[-1][0])


@pytest.mark.parametrize(
    ("device", "gradient_s"),
    [
        pytest.param({}, REFERENCE.gradient_s(FLOP), id="reference"),
        pytest.param({"speed": "2 GFLOP/s"}, 5 * REFERENCE.gradient_s(FLOP), id="speed"),
        pytest.param({"device": "raspberry-pi-4"}, read_device("raspberry-pi-4").core.gradient_s(FLOP), id="device"),
        pytest.param({"compute_speed": 0.5}, 2 * REFERENCE.gradient_s(FLOP), id="half-the-reference"),
        pytest.param({"speed": "2 GFLOP/s", "cpus": 0.25}, 20 * REFERENCE.gradient_s(FLOP), id="capped"),
    ],
)
def test_a_gradient_takes_its_operations_over_the_speed(
    simulate: Simulate, device: dict[str, Any], gradient_s: float
) -> None:
    """And what it takes whatever the batch; the cap divides both."""
    assert ended_s(simulate, device) == pytest.approx(UPDATES * gradient_s, rel=1e-4)


def test_a_local_epoch_takes_that_for_each_mini_batch(simulate: Simulate) -> None:
    """However many there are in a push."""
    three = SCENARIO | {"method": {"preset": "fedavg", "local_work": {"steps": 3}}}

    assert ended_s(simulate, {"speed": "2 GFLOP/s"}, scenario=three) == pytest.approx(
        3 * UPDATES * 5 * REFERENCE.gradient_s(FLOP), rel=1e-4
    )


def test_a_gradient_time_holds_on_every_device(simulate: Simulate) -> None:
    """Who gives one knows better."""
    scenario = SCENARIO | {"task": SCENARIO["task"] | {"gradient_time": "10ms"}}

    assert ended_s(simulate, {"device": "raspberry-pi-4"}, scenario=scenario) == pytest.approx(0.01 * UPDATES)


def test_shards_are_as_slow_as_their_devices(simulate: Simulate) -> None:
    """By the same unit: on devices half as fast everything takes twice as long."""
    slow, fast = (
        ended_s(simulate, {"speed": speed}, {"speed": speed}, scenario=LAYERS | {"shards": {"cuts": "even"}})
        for speed in ("4 GFLOP/s", "8 GFLOP/s")
    )

    assert slow == pytest.approx(2 * fast, rel=1e-4)
