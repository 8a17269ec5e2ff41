"""What work takes in virtual time, and where that number comes from, as `edgebed plan` and a verdict tell it."""

import msgspec
import pytest

from edgebed.planning.describe import as_text, describe_plan
from edgebed.planning.planning import plan_trials
from edgebed.planning.virtual_time import virtual_time_text
from edgebed.scenario.load import load_scenario

SCENARIO = {
    "name": "timed", "question": "How long does it take?", "task": {"data": "digits", "model": "small"},
    "method": "asgd", "fleet": {"edge": {"count": 2}}, "stop": {"updates": 10},
}  # fmt: skip
LAYERS = SCENARIO | {"method": "back-propagation", "task": {"data": "digits", "model": "four-layer"}}
NOT_MEASURED = "a gradient takes 5 ms (task.gradient_time's default, not measured for this model)"
BESIDE = "divided among the layers by counted operations; what lies beside them takes time of its own at the same rate"
GIVEN = "a gradient takes 57 ms (the scenario's gradient_time)"


def planned(scenario, *overrides):
    """The only trial."""
    (trial,) = plan_trials(load_scenario(scenario, list(overrides)))
    return trial


@pytest.mark.parametrize(
    ("scenario", "overrides", "text"),
    [
        (SCENARIO, [], f"{NOT_MEASURED}, compressing a push no time (task.compression_time's default)"),
        (
            SCENARIO,
            ["task.gradient_time=57ms", "task.compression_time=2ms"],
            f"{GIVEN}, compressing a push 2 ms (the scenario's compression_time)",
        ),
        (LAYERS, [], f"{NOT_MEASURED}, divided among the layers by counted operations"),
        *(
            (LAYERS, [f"method={method}"], f"{NOT_MEASURED}, {BESIDE}")
            for method in ("synthetic-gradients", "decoupled-greedy", "synthetic-inputs")
        ),
    ],
    ids=["defaults", "given", "layers", "modules", "heads", "input modules"],
)
def test_the_plan_says_what_a_gradient_takes_and_who_says_so(scenario, overrides, text):
    """A number that was measured for no model is called so."""
    trial = planned(scenario, *overrides)

    assert virtual_time_text(trial.plan) == text
    assert f"Virtual time: {text}\n" in f"{as_text(describe_plan(trial, runtime='simulation'))}\n"


def test_a_profile_measured_what_layers_take():
    """The task's time of a gradient plays no part then."""
    plan = msgspec.structs.replace(planned(LAYERS).plan, is_profiled=True)

    assert virtual_time_text(plan) == "layers take what they took where shards.profile was measured"
