"""Shards and their server, whatever comes first, and whoever dies."""

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import example, given, settings
from hypothesis import strategies as st
from shard_stage import NAMES, OPTIMIZER, STEPS, Stage, X, Y, layers, one_after_the_other, plan_of
from torch import nn

from edgebed.algorithms.layerwise import (
    back_propagation,
    decoupled_greedy,
    direct_minimisation,
    synthetic_gradients,
    synthetic_inputs,
)
from edgebed.algorithms.layerwise.rule import Rule
from edgebed.core import records
from edgebed.learning.shards.network import ShardNetwork
from edgebed.learning.trained import Trained
from edgebed.roles.events import MessageReceived, Send, Woken
from edgebed.roles.layerwise.layer_shard import batch_of
from edgebed.roles.layerwise.shard_server import ShardServer
from edgebed.roles.layerwise.shard_work import ShardWork
from edgebed.wire.messages import AnyMessage, Backup, Join, Model, Pull
from edgebed.wire.tensors import Buffer, encode_dense

BACK_PROPAGATION = back_propagation.rule(back_propagation.Config())


def trained_whole(steps: int = STEPS) -> np.ndarray:
    """The weights that training in one piece leaves."""
    model = Trained(nn.Sequential(*(part for layer in layers() for part in layer)), OPTIMIZER)
    for step in range(steps):
        batch = batch_of(plan_of(0), step)
        loss = F.cross_entropy(model(torch.from_numpy(X[batch])), torch.from_numpy(Y[batch]))
        model.step(torch.autograd.grad(loss, model.parameters))
    return model.weights()


@settings(max_examples=settings.default.max_examples // 3)
@given(st.integers(0, 2**32), st.sampled_from(["", "store"]))
def test_back_propagation_through_shards_is_back_propagation(seed: int, store: str) -> None:
    """Bit for bit, whatever comes first, from shard to shard and through a store."""
    stage = Stage(BACK_PROPAGATION, seed, store=store)
    stage.run()

    assert stage.server.finished
    np.testing.assert_array_equal(stage.server.theta, trained_whole())
    assert [stage.surviving_steps(name) for name in NAMES] == [list(range(STEPS))] * 3
    for below, name, above in (("", *NAMES[:2]), NAMES, (*NAMES[1:], "")):
        assert stage.hearts[name].progress() == records.Progress(
            incarnation=1, history=0, since=0, below=below, begun=STEPS, made=STEPS,
            outputs_sent=STEPS if above else 0, gradients_used=STEPS if above else 0,
            inputs_used=STEPS if below else 0, gradients_sent=STEPS if below else 0,
        )  # fmt: skip


@pytest.mark.slow
@settings(max_examples=settings.default.max_examples // 2)
@given(
    st.integers(0, 2**32),
    st.lists(st.tuples(st.integers(1, 150), st.sampled_from(NAMES)), max_size=4),
    st.sampled_from(["", "store"]),
)
def test_shards_that_die_cost_no_step_and_repeat_none(seed: int, deaths: list[tuple[int, str]], store: str) -> None:
    """All go on from one step, and in the history that survives each step was made once, as if nobody had died."""
    stage = Stage(BACK_PROPAGATION, seed, store=store)
    stage.run_through(deaths)

    np.testing.assert_array_equal(stage.server.theta, trained_whole())
    assert [stage.surviving_steps(name) for name in NAMES] == [list(range(STEPS))] * 3


@pytest.mark.slow
@settings(max_examples=settings.default.max_examples // 3)
@given(
    st.integers(0, 2**32),
    st.lists(st.tuples(st.integers(1, 150), st.sampled_from(NAMES)), max_size=2),
    st.sampled_from(["", "store"]),
)
def test_gradient_losses_without_weight_leave_back_propagation(
    seed: int, deaths: list[tuple[int, str]], store: str
) -> None:
    """Bit for bit, while the modules learn; what they could not predict is told of every step that survives."""
    stage = Stage(direct_minimisation.rule(direct_minimisation.Config(weight=0.0)), seed, store=store)
    stage.run_through(deaths)
    taught = {(each.shard, each.step) for _, each in stage.journal if isinstance(each, records.Taught)}

    np.testing.assert_array_equal(stage.server.theta, trained_whole())
    assert taught == {(name, step) for name in NAMES[:2] for step in range(STEPS)}


NOTHING_LEFT = {"inputs": 0, "gradients": 0, "unanswered": 0}
RULES = {
    "bootstrapped": synthetic_gradients.rule(synthetic_gradients.Config()),
    "true": synthetic_gradients.rule(synthetic_gradients.Config(target="back-propagated")),
    "blend": synthetic_gradients.rule(synthetic_gradients.Config(blend=0.5)),
    "synthetic-inputs": synthetic_inputs.rule(synthetic_inputs.Config()),
    "direct": direct_minimisation.rule(direct_minimisation.Config(weight=0.1)),
    "greedy": decoupled_greedy.rule(decoupled_greedy.Config()),
    "micro-batches": back_propagation.rule(back_propagation.Config(micro_batches=4)),
}


@pytest.mark.parametrize(
    ("queue", "store"),
    [pytest.param(1, "", marks=pytest.mark.slow), pytest.param(3, "", marks=pytest.mark.soak), (3, "store")],
)
@pytest.mark.parametrize("name", [*list(RULES)[:-1], pytest.param("micro-batches", marks=pytest.mark.slow)])
@settings(max_examples=settings.default.max_examples // 5)
@given(seed=st.integers(0, 2**32), deaths=st.lists(st.tuples(st.integers(1, 200), st.sampled_from(NAMES)), max_size=2))
@example(seed=312, deaths=[(176, "edge-0"), (190, "edge-1")])
def test_every_method_comes_to_its_end(
    name: str, queue: int, store: str, seed: int, deaths: list[tuple[int, str]]
) -> None:
    """With every step made once, no more on its way than the queue takes, and nothing left over."""
    stage = Stage(RULES[name], seed, queue=queue, store=store)
    stage.run_through(deaths)

    assert stage.server.finished
    left = [step for _, _, step, _ in stage.hearts["store"].kept]
    assert not left or (deaths and min(left) >= STEPS - queue)  # of who died when it had made all steps
    assert [stage.surviving_steps(each) for each in NAMES] == [list(range(STEPS))] * 3
    assert stage.unanswered_max <= max(queue, RULES[name].micro_batches)
    assert deaths or [stage.hearts[each].queues() for each in NAMES] == [NOTHING_LEFT] * 3
    for work in stage.works.values():
        assert isinstance(work, ShardWork)
        assert isinstance(work.networks, ShardNetwork)
        if not deaths:  # who died at the very end left others waiting, and nobody needs what they wait for
            assert not work.networks.passes
            assert not work.networks.predictor or not work.networks.predictor.untaught


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bootstrapped", "greedy"])
@settings(max_examples=settings.default.max_examples // 5)
@given(seed=st.integers(0, 2**32), deaths=st.lists(st.tuples(st.integers(1, 150), st.sampled_from(NAMES)), max_size=3))
def test_one_at_a_time_leaves_nothing_to_chance(name: str, seed: int, deaths: list[tuple[int, str]]) -> None:
    """With a queue of one, whoever is first, and whoever dies."""
    stage = Stage(RULES[name], seed, queue=1)
    stage.run_through(deaths)

    np.testing.assert_array_equal(stage.server.theta, one_after_the_other(RULES[name]))


@pytest.mark.slow
@settings(max_examples=settings.default.max_examples // 3)
@given(
    seed=st.integers(0, 2**32),
    deaths=st.lists(st.tuples(st.integers(1, 150), st.sampled_from((*NAMES, "modules"))), max_size=3),
    store=st.sampled_from(["", "store"]),
)
def test_modules_may_lie_on_a_node_of_their_own(seed: int, deaths: list[tuple[int, str]], store: str) -> None:
    """With a queue of one the same is learnt, bit for bit; it takes more messages."""
    rule = RULES["bootstrapped"]
    stage = Stage(rule, seed, queue=1, modules="modules", store=store)
    stage.run_through(deaths)

    np.testing.assert_array_equal(stage.server.theta, one_after_the_other(rule))
    assert [stage.surviving_steps(each) for each in NAMES] == [list(range(STEPS))] * 3
    assert stage.hearts["modules"].queues() == {"jobs": 0}


@pytest.mark.slow
@settings(max_examples=settings.default.max_examples // 3)
@given(
    seed=st.integers(0, 2**32),
    deaths=st.lists(st.tuples(st.integers(1, 150), st.sampled_from((*NAMES, "modules"))), max_size=3),
    store=st.sampled_from(["", "store"]),
)
def test_modules_elsewhere_serve_shards_that_are_ahead(seed: int, deaths: list[tuple[int, str]], store: str) -> None:
    """An answer that is quicker than its gradient is used leaves no step out."""
    stage = Stage(RULES["bootstrapped"], seed, queue=3, modules="modules", store=store)
    stage.run_through(deaths)

    assert stage.server.finished
    assert [stage.surviving_steps(each) for each in NAMES] == [list(range(STEPS))] * 3


def test_the_blend_of_one_is_back_propagation() -> None:
    """Jaderberg et al.'s BP(lambda) at lambda = 1."""
    stage = Stage(Rule(source="blend", down="gradient", blend=1.0), 0)
    stage.run()

    np.testing.assert_allclose(stage.server.theta, trained_whole(), rtol=1e-5, atol=1e-7)


def test_a_server_that_goes_on_from_a_backup_measures_no_model_that_it_has_not() -> None:
    """Its first weights are those that training once began with; whoever asks waits for newer ones."""
    stage = Stage(BACK_PROPAGATION, 0)
    stage.run(150)
    before = stage.server
    states = dict(before.states)
    assert 0 < before.backup_step < STEPS

    later = ShardServer(before.plan, before.theta, incarnation=2, backup=(before.backup_step, states))
    pull = MessageReceived("evaluator", Pull(sender="evaluator", at_version=0), [], 0)

    assert not [effect for effect in later.handle(pull, 0.0) if isinstance(effect, Send)]
    joins = [MessageReceived(name, Join(sender=name, incarnation=1), [], 0) for name in NAMES]
    effects = [effect for join in joins for effect in later.handle(join, 0.0)]
    told = [effect.message for effect in effects if isinstance(effect, Send)]
    assert [(message.step, message.history) for message in told] == [(before.backup_step, 1_000_000)] * 3


def test_copies_of_the_weights_wait_for_a_slow_evaluator_but_for_those_that_are_made_again() -> None:
    """In order, each with its own weights; a roll-back gives up what is beyond its backup."""
    plan = Stage(BACK_PROPAGATION, 0).server.plan
    shard = msgspec.structs.replace(plan.shard, weights_every=2)
    plan = msgspec.structs.replace(plan, due_every_updates=2, shard=shard)
    theta = np.zeros(sum(size for _, size in shard.sizes), "f4")
    server = ShardServer(plan, theta)

    def tell(message: AnyMessage, frames: Sequence[Buffer] = ()) -> list[Model]:
        effects = server.handle(MessageReceived(message.sender, message, frames, 0), 0.0)
        return [effect.message for effect in effects if isinstance(effect, Send) and effect.to == "evaluator"]

    def copy(step: int, kind: str = "weights") -> None:
        for name, size in shard.sizes:
            tensor, frames = encode_dense(kind, np.full(size, step, "f4"))
            assert not tell(Backup(sender=name, history=server.history, step=step, tensors=(tensor,)), frames)

    def ask(at: int) -> list[int]:
        return [model.version for model in tell(Pull(sender="evaluator", at_version=at))]

    for name in NAMES:
        tell(Join(sender=name, incarnation=1))
    for step in (2, 4, 6):
        copy(step)
    assert [ask(0), ask(2), ask(2), ask(4)] == [[0], [2], [2], [4]]
    copy(5, "state")
    server.handle(MessageReceived(NAMES[0], Join(sender=NAMES[0], incarnation=2), [], 0), 0.0)
    server.handle(Woken("begin 1"), 0.0)

    assert (server.history, ask(6)) == (1, [])
    ((_, at),) = server.pulls.items()
    assert at == 6
