"""`match: batch` and `send_every`: what is refused, what is planned, and what memory it takes."""

import pytest

from edgebed.core.errors import ScenarioError
from edgebed.planning.memory import check_caps, needs_of
from edgebed.planning.planning import PlannedTraining, plan_trials
from edgebed.planning.warnings import HostCapacity, warnings_of

TEXT = """\
name: shards
question: What is kept?
seed: 3
task: { data: digits, model: four-layer, width: 8, batch_size: 32 }
method: { preset: synthetic-inputs, learning: { match: batch } }
fleet: { edge: { count: 4 } }
shards: { cuts: even, traffic: store }
store: {}
evaluation: { every: 10 updates }
checkpoints: { every: 10 updates }
stop: { updates: 10 }
"""
ROOMY = HostCapacity(cpus=1000, memory_bytes=2**50)


def planned(load, *sets: str, text: str = TEXT) -> PlannedTraining:
    """The only trial."""
    (only,) = plan_trials(load(text, *sets))
    return only


def test_an_epoch_is_planned_of_whole_batches(load) -> None:
    """So many as the shards and the store know of; what is left over is in none."""
    plan = planned(load).plan
    examples = plan.workers()[0].num_examples

    assert examples % 32
    told = [node.shard.batches for node in (*plan.workers(), plan.node("store")) if node.shard]
    assert told == [examples // 32] * 5
    assert {
        node.shard.batches for node in planned(load, "method.learning.match=step").plan.workers() if node.shard
    } == {None}


def test_what_is_kept_is_an_epochs_activations_of_each_kind(load) -> None:
    """Two kinds below a shard and three above it; at the store two for each cut. It is a part of what a node needs."""
    trial, by_step = planned(load), planned(load, "method.learning.match=step")
    batches = trial.plan.workers()[0].num_examples // 32
    shards = [node.shard for node in (*trial.plan.workers(), trial.plan.node("store"))]
    outputs = [
        4 * 32 * values for values in (8 * 4 * 4, 256, 256)
    ]  # 8 x 8 pixels, pooled once; then two fully connected
    needs, others = needs_of(trial), needs_of(by_step)

    assert [shard.kept_bytes for shard in shards] == [
        batches * (2 * came + 3 * went) for came, went in zip([0, *outputs], [*outputs, 0], strict=True)
    ] + [2 * batches * sum(outputs)]
    for node, shard in zip([*(worker.node for worker in trial.plan.workers()), "store"], shards, strict=True):
        assert needs[node].bytes - others[node].bytes == shard.kept_bytes
    assert "kept by batch" in str(needs["edge-0"])


def test_caps_below_what_is_kept_are_doubted_and_refused(load) -> None:
    """In words that say what to do; a smaller part of the data is enough."""
    wide = ("task.width=128", "fleet.edge.memory=200MiB")
    large = planned(load, *wide)
    kept = large.plan.workers()[0].shard.kept_bytes
    few = HostCapacity(cpus=1000, memory_bytes=kept)

    assert any(
        "by batch together, but this machine has" in each for each in warnings_of(large.plan, "process", few, {})
    )
    tight = planned(load, "task.width=128", "fleet.edge.memory=4MiB", "shards.cuts=[1, 2, 3]")
    doubts = [each for each in warnings_of(tight.plan, "process", ROOMY, {}) if "match: step" in each]
    assert doubts
    assert doubts[0].startswith("edge-0 may keep ")
    assert not [each for each in warnings_of(planned(load).plan, "process", ROOMY, {}) if "match: step" in each]
    with pytest.raises(ScenarioError, match="kept by batch"):
        check_caps(load(TEXT, *wide), [large])


def test_cuts_by_themselves_leave_room_for_what_is_kept(load) -> None:
    """`auto` says what is kept where no cuts fit."""
    with pytest.raises(ScenarioError, match=r"match: batch keeps .* below each cut at least"):
        planned(load, "task.width=128", "shards.cuts=auto", "fleet.edge.memory=4MiB")


def test_stages_that_make_every_fourth_step_are_given_more(load) -> None:
    """The first shard makes all steps, so it gets fewer layers and a step takes less time."""
    text = TEXT.replace("four-layer", "eight-layer").replace("synthetic-inputs, learning: { match: batch }", "{}")
    text = text.replace("even", "auto").replace("count: 4", "count: 2")
    one, four = (
        planned(load, text=text.replace("{}", f"synthetic-gradients, learning: {{ send_every: {k} }}", 1))
        for k in (1, 4)
    )

    assert one.partition.step_s > four.partition.step_s
    assert one.partition.cuts >= four.partition.cuts
