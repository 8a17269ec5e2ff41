"""Settings about compression that contradict each other, or do nothing."""

from typing import Any

import pytest

from edgebed.core.errors import ScenarioError
from edgebed.scenario.load import load_scenario

SCENARIO = """
name: both
task: { data: digits, model: small }
method: { preset: sync-sgd, downlink: { name: int8 } }
pull: full
fleet: { edge: { count: 2 } }
stop: { updates: 10 }
variants:
  whole: {}
  two-ways: { pull: changed-since }
  changed: { pull: changed-since, method: { downlink: null } }
"""


def test_models_come_down_in_one_way(tmp_path) -> None:
    """With the place of what is to be changed, and in the variant alone that says both."""
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO)
    with pytest.raises(ScenarioError) as error:
        load_scenario(path)

    (problem,) = error.value.problems
    assert problem.endswith(
        "s.yaml:10:21: variants.two-ways.pull: the method's downlink says already what is sent of the model; "
        "leave out pull, or method.downlink"
    )


@pytest.mark.parametrize("choice", [{"pull": "full"}, {"method": {"preset": "sync-sgd"}, "pull": "changed-since"}])
def test_either_way_is_a_scenario(choice: dict[str, Any]) -> None:
    """Each alone."""
    method = {"preset": "sync-sgd", "downlink": {"name": "int8"}}
    scenario = {"name": "one", "task": {"data": "digits", "model": "small"}, "method": method, "fleet": {"edge": {}}}
    (trial,) = load_scenario(scenario | {"stop": {"updates": 10}} | choice).trials.values()

    assert ("downlink" in trial.method.parts) == (trial.pull == "full")


@pytest.mark.parametrize(
    ("downlink", "text"),
    [
        ({"name": "qsgd"}, r"downlink\.levels: 4 lose more of 512 entries than there is.*take 23 levels or more, or"),
        ({"name": "qsgd", "levels": 22}, r"23 levels or more, or a bucket of at most 484"),
        ({"name": "dgc", "nesterov": True}, r"downlink\.nesterov: it sends more than workers lack"),
        ({"name": "qsgd", "levels": 23}, None),
        ({"name": "qsgd", "bucket": 16}, None),
        ({"name": "dgc", "nesterov": True, "momentum": 0.0}, None),
        ({"name": "dgc"}, None),
    ],
)  # fmt: skip
def test_what_loses_more_than_there_is_is_no_downlink(downlink: dict[str, Any], text: str | None) -> None:
    """What is lost is sent again the next time: errors would grow without end. Upwards each is a compression."""
    scenario = {"name": "one", "task": {"data": "digits", "model": "small"}, "fleet": {"edge": {}}}
    scenario |= {"stop": {"updates": 10}}
    load_scenario(scenario | {"method": {"preset": "sync-sgd", "compression": downlink}})
    down = scenario | {"method": {"preset": "sync-sgd", "downlink": downlink}}
    if text is None:
        load_scenario(down)
        return
    with pytest.raises(ScenarioError, match=text):
        load_scenario(down)


def test_shards_push_no_updates() -> None:
    """So their compression takes no time."""
    task = {"data": "digits", "model": "four-layer", "compression_time": "1ms"}
    scenario = {"name": "shards", "task": task, "method": "back-propagation", "fleet": {"edge": {"count": 2}}}
    with pytest.raises(ScenarioError, match=r"task\.compression_time: shards push no updates; leave it out"):
        load_scenario(scenario | {"stop": {"updates": 10}})
