"""What work takes in virtual time, and where that number comes from, as `edgebed plan` and a verdict tell it."""

import re

import msgspec
import pytest
from tests.shared.plan_text import plan_text

from edgebed.planning.planning import plan_trials, remembered_operations
from edgebed.planning.virtual_time import virtual_time_text
from edgebed.reports.plan.description import describe_plan
from edgebed.scenario.load import load_scenario

SCENARIO = {
    "name": "timed", "question": "How long does it take?", "task": {"data": "digits", "model": "small"},
    "method": "asgd", "fleet": {"edge": {"count": 2}}, "stop": {"updates": 10},
}  # fmt: skip
LAYERS = SCENARIO | {"method": "back-propagation", "task": {"data": "digits", "model": "four-layer"}}
COUNTED = "a gradient takes 1.02 ms by the reference core, 10 GFLOP/s (202 kFLOP, as counted)"
OF_LAYERS = "a gradient takes 3.39 ms by the reference core, 10 GFLOP/s (23.9 MFLOP, as counted)"
BESIDE = "divided among the layers by counted operations; what lies beside them takes time of its own at the same rate"
OWN = """
import torch
from torch import nn

class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(10))

    def forward(self, images):
        return images.flatten(1)[:, :10] * self.scale
"""
DEFAULT = "task.compression_time's default"
GIVEN = "a gradient takes 57 ms (the scenario's gradient_time)"


def planned(scenario, *overrides):
    """The only trial."""
    (trial,) = plan_trials(load_scenario(scenario, list(overrides)))
    return trial


@pytest.mark.parametrize(
    ("scenario", "overrides", "text"),
    [
        (SCENARIO, [], f"{COUNTED}, compressing a push no time ({DEFAULT})"),
        (
            SCENARIO,
            ["task.gradient_time=57ms", "task.compression_time=2ms"],
            f"{GIVEN}, compressing a push 2 ms (the scenario's compression_time)",
        ),
        (
            SCENARIO,
            ["task.gradient_time=57ms", "task.compression_time=2ms", "task.exchange_time=4ms"],
            f"{GIVEN}, compressing a push 2 ms (the scenario's compression_time), its exchange 4 ms",
        ),
        (
            SCENARIO,
            ["task.gradient_time=57ms", "restart_time.others=1600ms"],
            f"{GIVEN}, compressing a push no time ({DEFAULT}); a restart 0s (server), 1.6s (others)",
        ),
        (LAYERS, [], f"{OF_LAYERS}, divided among the layers by counted operations"),
        *(
            (LAYERS, [f"method={method}"], f"{OF_LAYERS}, {BESIDE}")
            for method in ("synthetic-gradients", "decoupled-greedy", "synthetic-inputs")
        ),
    ],
    ids=["defaults", "given", "exchange", "restart", "layers", "modules", "heads", "input modules"],
)
def test_the_plan_says_what_a_gradient_takes_and_who_says_so(scenario, overrides, text):
    """Counted operations and the device's speed, or the scenario's own number."""
    trial = planned(scenario, *overrides)

    assert virtual_time_text(trial.plan) == text
    assert f"Virtual time: {text}\n" in plan_text(describe_plan(trial, runtime="simulation"))
    assert "Virtual time" not in plan_text(describe_plan(trial, runtime="process"))


def test_a_profile_measured_what_layers_take():
    """The task's time of a gradient plays no part then."""
    plan = msgspec.structs.replace(planned(LAYERS).plan, is_profiled=True)

    assert virtual_time_text(plan) == "layers take what they took where shards.profile was measured"


def test_each_class_says_which_of_the_three_it_has() -> None:
    """A device, a speed, or the reference core; the table has them, too."""
    fleet = {"edge": {}, "far": {}, "pi": {"device": "raspberry-pi-4"}, "own": {"speed": "2 GFLOP/s"}}
    trial = planned(SCENARIO | {"fleet": fleet})
    text = plan_text(describe_plan(trial, runtime="simulation"))

    assert (
        "a gradient takes 1.02 ms on edge and far by the reference core, 10 GFLOP/s, 2 ms on pi by device "
        "raspberry-pi-4, 5.1 ms on own by its speed, 2 GFLOP/s (202 kFLOP, as counted)"
    ) in text
    assert re.search(r"pi-0 +pi +– +4GiB +raspberry-pi-4 ", text)
    assert re.search(r"own-0 +own +– +– +2 GFLOP/s ", text)
    assert "Warning: device and speed" not in text


def test_compressing_takes_longer_by_as_much_as_a_gradient() -> None:
    """Each class says what it takes there; where a gradient takes the same everywhere, so does this."""
    fleet = {"edge": {}, "pi": {"device": "raspberry-pi-4"}, "own": {"speed": "2 GFLOP/s"}}
    text = virtual_time_text(planned(SCENARIO | {"fleet": fleet}, "task.compression_time=2ms").plan)
    same = virtual_time_text(
        planned(SCENARIO | {"fleet": fleet}, "task.compression_time=2ms", "task.gradient_time=57ms").plan
    )

    assert text.endswith(
        "compressing a push 2 ms on edge, 3.92 ms on pi, 10 ms on own "
        "(the scenario's compression_time, 2 ms on the reference core)"
    )
    assert same == f"{GIVEN}, compressing a push 2 ms (the scenario's compression_time)"


def test_a_gradient_time_beside_devices_is_warned_of() -> None:
    """It holds on every device: what is slow is then no slower."""
    scenario = SCENARIO | {"fleet": {"pi": {"device": "raspberry-pi-4"}}}
    text = plan_text(describe_plan(planned(scenario, "task.gradient_time=57ms"), runtime="simulation"))

    assert "device and speed of pi do not change what a gradient takes: task.gradient_time holds everywhere" in text
    assert GIVEN in text


def test_a_model_that_cannot_be_counted_is_warned_of(tmp_path, monkeypatch) -> None:
    """With what to do; it can be planned, and run live, all the same."""
    (tmp_path / "timednets.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    trial = planned(SCENARIO | {"task": {"data": "digits", "model": "timednets:Scaled"}})
    text = plan_text(describe_plan(trial, runtime="simulation"))

    assert "a gradient takes 5 ms (nobody's figure: the operations of timednets:Scaled cannot be" in text
    assert "Warning: the operations of timednets:Scaled cannot be counted: it has no product" in text
    assert "give task.gradient_time" in text


def test_a_built_in_model_is_counted_once_for_all_plans_and_one_of_ones_own_each_time(tmp_path, monkeypatch) -> None:
    """Studies plan the same task again and again; a module of one's own may have become another meanwhile."""
    (tmp_path / "againnets.py").write_text(
        "from torch import nn\n\ndef net(outputs):\n    return nn.Sequential(nn.Flatten(), nn.Linear(64, outputs))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    remembered_operations.cache_clear()
    for _ in range(2):
        planned(SCENARIO)
        own = planned(SCENARIO | {"task": {"data": "digits", "model": "againnets:net"}})

    assert remembered_operations.cache_info()[:2] == (1, 1)
    assert own.plan.workers()[0].task.gradient_flop > 0


def test_layers_go_where_the_fast_devices_are() -> None:
    """Cuts go by the devices' speeds."""
    fleet = {"slow": {"speed": "1 GFLOP/s"}, "fast": {"speed": "50 GFLOP/s"}}
    ends = [
        [shard.end for shard in (node.shard for node in planned(LAYERS | {"fleet": each}).plan.workers())]
        for each in (fleet, dict(reversed(fleet.items())))
    ]

    assert ends[0][0] < ends[1][0]
