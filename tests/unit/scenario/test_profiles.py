"""Profiles: what is written is what is read, and what does not fit is said with file and line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core.errors import ScenarioError
from edgebed.core.units import format_duration, format_memory
from edgebed.planning.planning import plan_trials
from edgebed.scenario.load import load_scenario
from edgebed.scenario.mistakes.problems import Problems
from edgebed.scenario.profiles import Beside, BesideRows, LayerRow, MessageCosts, Profile, read_profile, write_profile

TIMES = st.floats(0.0, 100.0).map(lambda seconds: format_duration(round(seconds, 9)))
SIZES = st.integers(0, 2**40).map(format_memory)
ROWS = st.fixed_dictionaries(
    {
        "weights": st.integers(0, 10**9),
        "outputs": st.integers(1, 10**6),
        **dict.fromkeys(("forward", "backward", "again", "step"), TIMES),
        **dict.fromkeys(("kept", "memory"), SIZES),
    }
)
BESIDES = st.fixed_dictionaries({}, optional={"predict": TIMES, "teach": TIMES, "memory": SIZES, "guess": TIMES})
SCENARIO = {
    "name": "layers",
    "task": {"data": "digits", "model": "eight-layer", "width": 2, "batch_size": 16, "gradient_time": "10ms"},
    "method": "back-propagation",
    "fleet": {"edge": {"count": 2}},
    "stop": {"updates": 10},
}
DENSE = {"name": "dense", "values": "float32"}


@given(st.lists(ROWS, min_size=1, max_size=4), st.integers(1, 512), st.data())
def test_what_is_written_is_read(tmp_path_factory, rows, batch, data):
    """All numbers and settings, whatever they are."""
    beside = data.draw(st.none() | st.lists(BESIDES, min_size=len(rows), max_size=len(rows)))
    learning = {"name": "synthetic-gradients", "hidden": None, "labels": True, "blend": 0.0}
    profile = Profile(
        batch_size=batch,
        own=data.draw(st.sampled_from(["0s", "1.5ms"])),
        layers=[LayerRow.model_validate(row) for row in rows],
        messages=[MessageCosts.model_validate({"exchange": DENSE, "each": "1ms", "encode": "0s", "carry": "2us"})],
        beside=[BesideRows(learning=learning, layers=[Beside.model_validate(row) for row in beside])] if beside else [],
    )
    path = tmp_path_factory.mktemp("profiles") / "p.yaml"
    path.write_text(write_profile(profile, ["of a machine"]))

    assert read_profile(path).content == profile


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("forward: 1ms", "forward: 1", "p.yaml:4:[0-9]+: layers.0.forward: not a duration: 1"),
        ("outputs: ", "output: ", "p.yaml:4:[0-9]+: layers.0.output: unknown key"),
        ("batch_size: 16", "batch_size: 0", "p.yaml:2:13: batch_size: "),
        ("messages:", "mesages:", "p.yaml:.*mesages: unknown key"),
        ("batch_size: 16", "{", "p.yaml:.*: not YAML"),
    ],
)
def test_mistakes_are_located(tmp_path, old, new, message):
    """With line and column."""
    path = written(tmp_path, old=old, new=new)

    with pytest.raises(Problems, match=message):
        read_profile(path)


def written(folder, *, fast=(), old="", new=""):
    """A profile of the scenario's model: each layer takes a millisecond, those of `fast` next to nothing."""
    layers = []
    for k, (weights, outputs) in enumerate(SHAPES):
        took = "1us" if k in fast else "1ms"
        times = ", ".join(f"{kind}: {took}" for kind in ("forward", "backward", "again", "step"))
        layers.append(f"- {{weights: {weights}, outputs: {outputs}, {times}, kept: 1KiB, memory: 1MiB}}")
    text = "\n".join(
        (
            "# measured",
            "batch_size: 16",
            "layers:",
            *layers,
            "messages:",
            "- {exchange: {name: dense, values: float32}, each: 0s, encode: 0s, carry: 0s}",
        )
    )
    path = folder / "p.yaml"
    path.write_text(text.replace(old, new, 1) if old else text)
    return path


def planned(scenario):
    """The plan of its only trial."""
    (only,) = plan_trials(load_scenario(scenario))
    return only


def with_profile(path, **shards):
    """The scenario with that profile."""
    return SCENARIO | {"shards": {"profile": str(path), **shards}}


SHAPES = ((60, 32), (110, 32), (110, 8), (110, 8), (110, 2), (1792, 256), (66816, 256), (2570, 10))
"""Weights and outputs of each layer."""


def test_cuts_and_virtual_time_follow_from_the_profile(tmp_path):
    """Of eight equal layers each device has four; where the first six take nothing, seven and one."""
    equal = planned(with_profile(written(tmp_path)))
    (tmp_path / "other").mkdir()
    uneven = planned(with_profile(written(tmp_path / "other", fast=range(6))))

    assert equal.plan.is_profiled
    assert equal.partition.step_s == pytest.approx(8 * 3e-3)
    assert uneven.partition.step_s == pytest.approx(2 * 3e-3 + 6 * 3e-6)
    pipelined = with_profile(written(tmp_path), cuts="auto") | {"method": "decoupled-greedy"}
    with pytest.raises(ScenarioError, match="has nothing of what 'decoupled-greedy' puts beside layers; measure anew"):
        planned(pipelined)


def test_what_a_shard_needs_besides_counts_for_each(tmp_path):
    """In the predicted step, where they take turns for both, and in virtual time, whatever the layers."""
    plain = planned(with_profile(written(tmp_path)))
    (tmp_path / "other").mkdir()
    more = planned(with_profile(written(tmp_path / "other", old="layers:", new="own: 2ms\nlayers:")))

    assert more.partition.step_s == pytest.approx(plain.partition.step_s + 2 * 2e-3)
    of_plain, of_more = (
        [sum(dict(node.shard.costs).values()) for node in each.plan.workers()] for each in (plain, more)
    )
    unit_s = plain.plan.nodes[0].task.gradient_time_s
    assert of_more == pytest.approx([cost + 2e-3 / unit_s for cost in of_plain])


def test_the_content_counts_and_not_the_path(tmp_path):
    """Two files that say the same give the same plan; other times, another."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, same = (planned(with_profile(written(tmp_path / name))).plan for name in ("a", "b"))
    other = planned(with_profile(written(tmp_path / "a", fast=[7]))).plan

    assert first == same
    assert first != other


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"batch_size": 32}, "measured with mini-batches of 16, and the task has 32"),
        ({"width": 3}, "layer 0 has 60 weights and 32 outputs there, 90 and 48 here"),
        ({"model": "four-layer"}, "it has 8 layers, and the model has 4"),
    ],
)
def test_a_profile_of_another_model_is_refused(tmp_path, changed, message):
    """And it is said what differs."""
    scenario = with_profile(written(tmp_path)) | {"task": SCENARIO["task"] | changed}

    with pytest.raises(ScenarioError, match=message):
        planned(scenario)


def test_a_profile_that_is_not_there_is_said(tmp_path):
    """Before anything is planned."""
    with pytest.raises(ScenarioError, match=r"shards.profile: .*nothing.yaml: there is no such file"):
        load_scenario(with_profile(tmp_path / "nothing.yaml"))
