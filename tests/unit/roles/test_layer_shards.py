"""Shards and their server, joined by a network that delivers in any order it likes, one message after another."""

import itertools
import random
from collections import defaultdict, deque

import msgspec
import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from edgebed.algorithms.layerwise import (
    back_propagation,
    decoupled_greedy,
    direct_minimisation,
    synthetic_gradients,
    synthetic_inputs,
)
from edgebed.algorithms.layerwise.rule import At, Rule
from edgebed.learning.gradient_modules import GradientModule, InputModule, LocalHead
from edgebed.learning.module_networks import ModuleNetworks
from edgebed.learning.optimizers import Optimizer
from edgebed.learning.shard_network import ShardNetwork
from edgebed.learning.trained import Trained
from edgebed.roles import records
from edgebed.roles.activation_store import ActivationStore
from edgebed.roles.events import Compute, Computed, Journal, Received, Send, Wake, Woken
from edgebed.roles.layer_shard import LayerShard, batch_of
from edgebed.roles.module_host import ModuleHost
from edgebed.roles.shard_server import ShardServer
from edgebed.roles.shard_work import ModuleWork, ShardWork
from edgebed.scenario.plan import Method, NodePlan, Part, Shard, Task
from edgebed.wire import frames as codec
from edgebed.wire.messages import Join, Pull, Start

N, CLASSES, BATCH, STEPS = 96, 4, 16, 12
DRAW = np.random.default_rng(0)
X = DRAW.random((N, 8), dtype=np.float32)
Y = DRAW.integers(0, CLASSES, N)
WIDTHS = (8, 12, 10, CLASSES)
OPTIMIZER = Optimizer(name="adam", learning_rate=1e-2)
NAMES = ("edge-0", "edge-1", "edge-2")
TASK = Task(model="x", input_shape=(8,), classes=CLASSES, layout=(), batch_size=BATCH, gradient_time_s=0.01)
NO_METHOD = Method(
    name="x", parts={"aggregation": Part(name="x"), "compression": Part(name="x"), "local_work": Part(name="x")}
)
BACK_PROPAGATION = back_propagation.rule(back_propagation.Config())


def layers() -> list[nn.Sequential]:
    """Three small ones, always the same."""
    torch.manual_seed(1)
    return [
        nn.Sequential(nn.Linear(before, after), *([nn.BatchNorm1d(after), nn.ReLU()] if k < 2 else []))
        for k, (before, after) in enumerate(itertools.pairwise(WIDTHS))
    ]


def head_of(shape: tuple[int, ...]) -> LocalHead:
    """A small one, always the same."""
    torch.manual_seed(200)
    return LocalHead(shape, CLASSES)


def inputs_of(index: int) -> InputModule:
    """A small one, always the same."""
    torch.manual_seed(300 + index)
    return InputModule((8,), (WIDTHS[index],), hidden=16)


def module_of(index: int) -> GradientModule:
    """A small one, always the same."""
    torch.manual_seed(100 + index)
    return GradientModule((WIDTHS[index + 1],), CLASSES, hidden=16)


def networks_of(index: int, rule: Rule, elsewhere: bool = False) -> ShardNetwork:
    """One shard, with what the rule wants beside it, unless modules are elsewhere."""
    shard, shape = layers()[index], (WIDTHS[index + 1],)
    is_last = index == len(NAMES) - 1
    return ShardNetwork(
        shard,
        OPTIMIZER,
        gradient_module=module_of(index) if rule.has_module and not is_last and not elsewhere else None,
        input_module=inputs_of(index) if rule.synthetic_inputs and index else None,
        head=head_of(shape) if rule.source == "head" and not is_last else None,
    )


def plan_of(index: int, **options) -> NodePlan:
    """One shard of three."""
    shard = Shard(
        below=NAMES[index - 1] if index else "",
        above=NAMES[index + 1] if index < 2 else "",
        **{"steps": STEPS, "backup_every": 4, "weights_every": 6} | options,
    )
    return NodePlan(
        node=NAMES[index], role="worker", device_class="edge", seed=3, task=TASK, method=NO_METHOD, num_examples=N,
        shard=shard,
    )  # fmt: skip


class Stage:
    """All nodes; each pair of them has a line, on which messages keep their order."""

    def __init__(self, rule: Rule, seed: int, **options) -> None:
        self.rule, self.options = rule, options
        self.choice = random.Random(seed)
        self.lines: dict[tuple[str, str], deque] = defaultdict(deque)
        self.journal: list[tuple[str, records.Record]] = []
        self.unanswered_max = 0
        theta = np.concatenate([Trained(each, OPTIMIZER).weights() for each in layers()])
        sizes = [len(Trained(each, OPTIMIZER).weights()) for each in layers()]
        self.has_host = bool(options.get("modules"))
        self.names = (*NAMES, "modules") if self.has_host else NAMES
        kept = Shard(sizes=tuple(zip(self.names, [*sizes, 0], strict=False)), steps=STEPS)
        server_plan = msgspec.structs.replace(plan_of(0), node="server", role="server", shard=kept)
        self.hearts = {"server": ShardServer(server_plan, theta)}
        self.hearts["store"] = ActivationStore(msgspec.structs.replace(server_plan, node="store"))
        self.works: dict[str, ShardWork | ModuleWork] = {}
        self.incarnations: dict[str, int] = dict.fromkeys(self.names, 0)
        for name in self.names:
            self.launch(name)

    def launch(self, name: str) -> None:
        """A new life of a shard; what was on its way to or from the one before is lost."""
        self.incarnations[name] += 1
        for line, messages in self.lines.items():
            if name in line:
                messages.clear()
        if name == "modules":
            plan = plan_of(1, owners=((NAMES[0], 1), (NAMES[1], 2)))
            self.hearts[name] = ModuleHost(msgspec.structs.replace(plan, node=name), self.incarnations[name])
            self.works[name] = ModuleWork(ModuleNetworks({NAMES[k]: module_of(k) for k in range(2)}, OPTIMIZER), Y)
        else:
            index = NAMES.index(name)
            self.hearts[name] = LayerShard(plan_of(index, **self.options), self.rule, self.incarnations[name])
            self.works[name] = ShardWork(networks_of(index, self.rule, self.has_host), self.rule, X, Y)
        start = Start(sender="controller", addresses=(("server", "data"),))
        self.lines["controller", name].append(Received("controller", start, [], 0))

    def run(self, until: int | None = None) -> None:
        """Deliver until nothing is left, or so many times."""
        count = 0
        while (until is None or count < until) and any(self.lines.values()):
            count += 1
            sender, receiver = self.choice.choice(sorted(line for line, waiting in self.lines.items() if waiting))
            event = self.lines[sender, receiver].popleft()
            if isinstance(event, Received):
                message, frames = codec.decode(codec.encode(event.message, event.frames), "data") if sender in (
                    self.hearts
                ) else (event.message, event.frames)  # fmt: skip
                event = Received(sender, message, frames, event.bytes)
            self.carry_out(receiver, self.hearts[receiver].handle(event, 0.0))
            heart = self.hearts[receiver]
            if isinstance(heart, LayerShard):
                self.unanswered_max = max(self.unanswered_max, len(heart.unanswered))

    def run_through(self, deaths: list[tuple[int, str]]) -> None:
        """Until nothing is left; each node dies so many deliveries after the one before."""
        for deliveries, victim in deaths:
            self.run(deliveries)
            if not self.server.finished:
                self.launch(victim)
        self.run()

    def carry_out(self, name: str, effects: list) -> None:
        """Work is done at once, and its result comes when it likes."""
        for effect in effects:
            if isinstance(effect, Journal):
                self.journal.append((name, effect.record))
            elif isinstance(effect, Compute):
                self.lines[name, name].append(Computed(self.works[name].run(effect.job)))
            elif isinstance(effect, Send) and effect.to in self.hearts:
                self.lines[name, effect.to].append(Received(name, effect.message, effect.frames, 0))
            elif isinstance(effect, Wake) and effect.token.startswith("begin"):
                self.lines[name, name].append(Woken(effect.token))
            else:
                assert isinstance(effect, Send | Wake), effect

    @property
    def server(self) -> ShardServer:
        """It is finished where training is."""
        heart = self.hearts["server"]
        assert isinstance(heart, ShardServer)
        return heart

    def surviving_steps(self, name: str) -> list[int]:
        """The mini-batches that a shard learnt of, without those that were rolled back."""
        begins = [(record.history, record.step) for _, record in self.journal if isinstance(record, records.Resumed)]
        limit = {
            history: min([step for later, step in begins if later > history], default=STEPS) for history, _ in begins
        }
        return [
            record.step
            for node, record in self.journal
            if node == name and isinstance(record, records.Step) and record.step < limit[record.history]
        ]


def trained_whole(steps: int = STEPS) -> np.ndarray:
    """The weights that training in one piece leaves."""
    model = Trained(nn.Sequential(*(part for layer in layers() for part in layer)), OPTIMIZER)
    for step in range(steps):
        batch = batch_of(plan_of(0), step)
        loss = F.cross_entropy(model(torch.from_numpy(X[batch])), torch.from_numpy(Y[batch]))
        model.step(torch.autograd.grad(loss, model.parameters))
    return model.weights()


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["", "store"]))
def test_back_propagation_through_shards_is_back_propagation(seed: int, store: str) -> None:
    """Bit for bit, whatever comes first, from shard to shard and through a store."""
    stage = Stage(BACK_PROPAGATION, seed, store=store)
    stage.run()

    assert stage.server.finished
    np.testing.assert_array_equal(stage.server.theta, trained_whole())
    assert [stage.surviving_steps(name) for name in NAMES] == [list(range(STEPS))] * 3


@settings(max_examples=25, deadline=None)
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


@settings(max_examples=15, deadline=None)
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


RULES = {
    "bootstrapped": synthetic_gradients.rule(synthetic_gradients.Config()),
    "true": synthetic_gradients.rule(synthetic_gradients.Config(target="back-propagated")),
    "blend": synthetic_gradients.rule(synthetic_gradients.Config(blend=0.5)),
    "synthetic-inputs": synthetic_inputs.rule(synthetic_inputs.Config()),
    "direct": direct_minimisation.rule(direct_minimisation.Config(weight=0.1)),
    "greedy": decoupled_greedy.rule(decoupled_greedy.Config()),
    "micro-batches": back_propagation.rule(back_propagation.Config(micro_batches=4)),
}


@pytest.mark.parametrize(("queue", "store"), [(1, ""), (3, ""), (3, "store")])
@pytest.mark.parametrize("name", RULES)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32), deaths=st.lists(st.tuples(st.integers(1, 200), st.sampled_from(NAMES)), max_size=2))
def test_every_method_comes_to_its_end(
    name: str, queue: int, store: str, seed: int, deaths: list[tuple[int, str]]
) -> None:
    """With every step made once, no more on its way than the queue takes, and nothing left over."""
    stage = Stage(RULES[name], seed, queue=queue, store=store)
    stage.run_through(deaths)

    assert stage.server.finished
    assert not stage.hearts["store"].kept
    assert [stage.surviving_steps(each) for each in NAMES] == [list(range(STEPS))] * 3
    assert stage.unanswered_max <= max(queue, RULES[name].micro_batches)
    for work in stage.works.values():
        assert isinstance(work, ShardWork)
        assert isinstance(work.networks, ShardNetwork)
        if not deaths:  # who died at the very end left others waiting, and nobody needs what they wait for
            assert not work.networks.kept
            assert not work.networks.predictor or not work.networks.predictor.untaught


@pytest.mark.parametrize("name", ["bootstrapped", "greedy"])
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32), deaths=st.lists(st.tuples(st.integers(1, 150), st.sampled_from(NAMES)), max_size=3))
def test_one_at_a_time_leaves_nothing_to_chance(name: str, seed: int, deaths: list[tuple[int, str]]) -> None:
    """With a queue of one, whoever is first, and whoever dies."""
    stage = Stage(RULES[name], seed, queue=1)
    stage.run_through(deaths)

    np.testing.assert_array_equal(stage.server.theta, one_after_the_other(RULES[name]))


@settings(max_examples=15, deadline=None)
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


@settings(max_examples=15, deadline=None)
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


def one_after_the_other(rule: Rule) -> np.ndarray:
    """The same in a plain loop, as the papers write it."""
    shards = [networks_of(index, rule) for index in range(3)]
    for step in range(STEPS):
        at, batch = At(step), batch_of(plan_of(0), step)
        h, below = X[batch], None
        for shard in shards:
            outputs = shard.forward(at, h, Y[batch])
            if shard is shards[-1]:
                gradient, _ = shard.final_gradient(at)
            else:
                gradient = shard.head_gradient(at)[0] if shard.head else shard.synthetic_gradient(at)
            passed = shard.backward(at, gradient)
            shard.step()
            if below and below.predictor:
                below.teach(at, passed)
            h, below = outputs, shard
    return np.concatenate([shard.weights() for shard in shards])


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
    assert 0 < before.kept < STEPS

    later = ShardServer(before.plan, before.theta, incarnation=2, backup=(before.kept, states))
    pull = Received("evaluator", Pull(sender="evaluator", at_version=0), [], 0)

    assert not [effect for effect in later.handle(pull, 0.0) if isinstance(effect, Send)]
    joins = [Received(name, Join(sender=name, incarnation=1), [], 0) for name in NAMES]
    effects = [effect for join in joins for effect in later.handle(join, 0.0)]
    told = [effect.message for effect in effects if isinstance(effect, Send)]
    assert [(message.step, message.history) for message in told] == [(before.kept, 1_000_000)] * 3
