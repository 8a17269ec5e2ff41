"""Outputs of every k-th step go up: who makes which steps, what is backed up, and what is learnt."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shard_stage import NAMES, STEPS, Stage, one_after_the_other, plan_of

from edgebed.algorithms.layerwise import decoupled_greedy, synthetic_gradients, synthetic_inputs
from edgebed.algorithms.layerwise.rule import Rule
from edgebed.journal.folds import Timeline
from edgebed.journal.series_steps import Steps
from edgebed.learning.shards.network import ShardNetwork
from edgebed.roles.layerwise.layer_shard import LayerShard
from edgebed.wire.messages import Activation, Gradient, Taken

DEATHS = st.lists(st.tuples(st.integers(1, 150), st.sampled_from(NAMES)), max_size=3)


def rules(every: int) -> dict[str, Rule]:
    """The methods that have the setting."""
    return {
        "bootstrapped": synthetic_gradients.rule(synthetic_gradients.Config(send_every=every)),
        "true": synthetic_gradients.rule(synthetic_gradients.Config(send_every=every, target="back-propagated")),
        "greedy": decoupled_greedy.rule(decoupled_greedy.Config(send_every=every)),
        "synthetic-inputs": synthetic_inputs.rule(synthetic_inputs.Config(send_every=every)),
    }


def steps_of(rule: Rule) -> list[list[int]]:
    """Of each shard, those that it makes: all, or where it needs inputs every k-th."""
    return [list(range(0, STEPS, rule.stride(is_first=not k))) for k in range(3)]


class Listening(Stage):
    """Remembers the steps of which shards send each other anything."""

    def __init__(self, *args, **options) -> None:
        self.sent: set[tuple[type, int]] = set()
        super().__init__(*args, **options)

    def carry_out(self, name: str, effects: list) -> None:
        """As it is, and remembered."""
        for effect in effects:
            message = getattr(effect, "message", None)
            if isinstance(message, Activation | Gradient | Taken):
                self.sent.add((type(message), message.step))
        super().carry_out(name, effects)


def counted(stage: Stage) -> Steps:
    """What the series make of the stage's journal."""
    return Steps(Timeline()).add_all((float(t), name, record) for t, (name, record) in enumerate(stage.journal))


@pytest.mark.slow
@pytest.mark.parametrize("name", rules(1))
@settings(max_examples=settings.default.max_examples // 3)
@given(
    seed=st.integers(0, 2**32),
    every=st.integers(1, STEPS + 1),
    queue=st.integers(1, 3),
    store=st.sampled_from(["", "store"]),
    backup_every=st.integers(1, 5),
    weights_every=st.integers(1, 7),
    deaths=DEATHS,
)
def test_each_shard_makes_its_steps_once(
    name: str,
    seed: int,
    every: int,
    queue: int,
    store: str,
    backup_every: int,
    weights_every: int,
    deaths: list[tuple[int, str]],
) -> None:
    """Whatever k is, and whenever backups and copies are due; of other steps nothing is sent, and nothing is left."""
    rule = rules(every)[name]
    options = {"queue": queue, "store": store, "backup_every": backup_every, "weights_every": weights_every}
    stage = Listening(rule, seed, **options)
    stage.run_through(deaths)

    assert stage.server.finished
    assert stage.server.version == STEPS
    assert [stage.surviving_steps(each) for each in NAMES] == steps_of(rule)
    assert {step for _, step in stage.sent} == set(range(0, STEPS, every))
    assert not stage.hearts["store"].kept
    assert stage.unanswered_max <= queue
    for work in stage.works.values():
        assert isinstance(work.networks, ShardNetwork)
        if not deaths:
            assert not work.networks.passes
            assert not work.networks.predictor or not work.networks.predictor.untaught


@settings(max_examples=settings.default.max_examples // 3)
@given(seed=st.integers(0, 2**32), every=st.integers(1, 5), backup_every=st.integers(1, 5), deaths=DEATHS)
def test_every_mini_batch_is_an_update_of_the_model(
    seed: int, every: int, backup_every: int, deaths: list[tuple[int, str]]
) -> None:
    """A step of the last shard stands for k, and the last for what is left; the books show no gap, whoever died."""
    stage = Stage(rules(every)["bootstrapped"], seed, backup_every=backup_every)
    stage.run_through(deaths)
    steps = counted(stage)

    assert [update.step for update in steps.updates()] == list(range(STEPS))
    assert {node: made.step.tolist() for node, made in steps.surviving().items()} == dict(
        zip(NAMES, steps_of(stage.rule), strict=True)
    )


@pytest.mark.parametrize(("name", "backup_every"), [("bootstrapped", 1), ("greedy", 5)])
@settings(max_examples=settings.default.max_examples // 4)
@given(seed=st.integers(0, 2**32), every=st.integers(1, 5), deaths=DEATHS)
def test_one_at_a_time_leaves_nothing_to_chance(
    name: str, backup_every: int, seed: int, every: int, deaths: list[tuple[int, str]]
) -> None:
    """With a queue of one it is what a plain loop does, bit for bit, where backups have shards wait for their answers.

    Else a module may be believed at a step that is not sent before it is taught; heads are never asked for anything.
    """
    rule = rules(every)[name]
    stage = Stage(rule, seed, queue=1, backup_every=backup_every)
    stage.run_through(deaths)

    assert stage.server.finished
    np.testing.assert_array_equal(stage.server.theta, one_after_the_other(rule))


def test_a_shard_above_waits_for_its_own_steps_alone() -> None:
    """It begins at the first of them, wherever all go on from."""
    shard = LayerShard(plan_of(1), rules(4)["bootstrapped"])
    places = []
    for step in (0, 1, 4, 5, 11):
        shard.begin_at(step)
        places.append((shard.next.step, shard.learnt))

    assert places == [(0, 0), (4, 4), (4, 4), (8, 8), (12, 12)]
