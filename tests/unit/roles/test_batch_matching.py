"""Modules that learn of the newest of a batch: who is held up by whom, what is kept, and how old it was in truth."""

from collections import defaultdict

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shard_stage import BATCH, NAMES, STEPS, N, Stage, plan_of

from edgebed.algorithms.layerwise import synthetic_inputs
from edgebed.algorithms.layerwise.rule import BatchPart
from edgebed.core import records
from edgebed.learning.shards.network import ShardNetwork
from edgebed.roles.events import Compute
from edgebed.roles.layerwise.activation_store import ActivationStore
from edgebed.roles.layerwise.batch_shard import BatchShard
from edgebed.roles.layerwise.layer_shard import LayerShard, batch_of
from edgebed.roles.layerwise.shard_work import (
    ForwardJob,
    ForwardResult,
    LearnJob,
    LearnResult,
    ShardWork,
    TeachInputsJob,
    TeachJob,
    whole,
)
from edgebed.wire.tensors import decode_exchanged, encode_exchanged

BATCHES = st.integers(1, N // BATCH)
PACES = st.fixed_dictionaries(dict.fromkeys(NAMES, st.sampled_from([0.02, 0.2, 1.0])))
DEATHS = st.lists(st.tuples(st.integers(1, 150), st.sampled_from(NAMES)), max_size=3)


def rule(every: int = 1):
    """The method."""
    return synthetic_inputs.rule(synthetic_inputs.Config(match="batch", send_every=every))


class Marking:
    """The work of a shard, with the step as the first value of all that it makes."""

    def __init__(self, work: ShardWork) -> None:
        self.work = work
        self.networks = work.networks

    def run(self, job):
        """Its result, marked."""
        result = self.work.run(job)
        if not isinstance(result, ForwardResult | LearnResult):
            return result
        array = decode_exchanged(result.tensor, result.frames)
        array.flat[0] = result.at.step
        tensor, frames = encode_exchanged(result.tensor.name, whole(array))
        return msgspec.structs.replace(result, tensor=tensor, frames=frames)


class Witness(Stage):
    """Has the step of every array written in it, and looks at how much is kept."""

    def __init__(self, *args, **options) -> None:
        self.made: dict[tuple[str, int], int] = {}
        """Shard and batch: the last step that it made."""
        self.truth: dict[str, list[int]] = defaultdict(list)
        """By shard: how many steps older what a module is taught was than what it is matched with."""
        self.learnt: dict[str, list[int]] = defaultdict(list)
        self.most = 0
        super().__init__(*args, **options)

    def launch(self, name: str) -> None:
        """With work that marks what it makes."""
        super().launch(name)
        self.works[name] = Marking(self.works[name])

    def carry_out(self, name: str, effects: list) -> None:
        """As it is, and witnessed."""
        for effect in effects:
            if isinstance(effect, Compute):
                self.witness(name, effect.job)
        super().carry_out(name, effects)

    def witness(self, name: str, job) -> None:
        """How far apart the two of a pair are."""
        batches = self.options["batches"]
        if isinstance(job, ForwardJob):
            self.made[name, job.at.step % batches] = job.at.step
        elif isinstance(job, LearnJob):
            self.learnt[name].append(job.at.step)
        elif isinstance(job, TeachJob | TeachInputsJob):
            came = job.gradient if isinstance(job, TeachJob) else job.inputs
            step = int(came.flat[0])
            assert step % batches == job.at.step % batches
            if isinstance(job, TeachInputsJob):
                assert job.at.step == self.made[name, step % batches]
                np.testing.assert_array_equal(job.batch, batch_of(plan_of(0, batches=batches), step))
            self.truth[name].append(job.at.step - step)

    def delivered(self, receiver: str) -> None:
        """What is kept at once of any kind."""
        heart, work = self.hearts[receiver], self.works.get(receiver)
        kinds = []
        if isinstance(heart, BatchShard):
            kinds += [len(heart.came_up), len(heart.came_down)]
            kinds += [count for box in heart.outboxes.values() for count in counts(key[0] for key in box.waiting)]
            assert isinstance(work.networks, ShardNetwork)
            predictor = work.networks.predictor
            kinds += [sum(self.rule.sends(at.step) for at in predictor.untaught) if predictor else 0]
            assert all(box.on_their_way <= heart.shard.queue for box in heart.outboxes.values())
            told = heart.queues()
            assert (told["inputs"], told["gradients"]) == (len(heart.came_up), len(heart.came_down))
            assert told["unanswered"] + told["unsent"] <= len(heart.outboxes) * (heart.shard.queue + 2 * heart.batches)
        if isinstance(heart, ActivationStore):
            kinds += counts(key[:2] for key in heart.kept)
        self.most = max(self.most, *kinds, 0)

    def said(self) -> dict[str, list[int]]:
        """What the journal has of it."""
        lags = defaultdict(list)
        for name, record in self.journal:
            if isinstance(record, records.Step):
                lags[name] += [lag for lag in (record.gradient_lag, record.input_lag) if lag is not None]
        return lags


def counts(keys) -> list[int]:
    """How often each of them is there."""
    found: dict = defaultdict(int)
    for key in keys:
        found[key] += 1
    return list(found.values())


@settings(max_examples=settings.default.max_examples // 2)
@given(
    seed=st.integers(0, 2**32),
    batches=BATCHES,
    paces=PACES,
    queue=st.integers(1, 3),
    every=st.integers(1, 3),
    store=st.sampled_from(["", "store"]),
)
def test_what_is_reported_of_pairs_is_true(
    seed: int, batches: int, paces: dict[str, float], queue: int, every: int, store: str
) -> None:
    """At any speeds; and of no kind there are more than there are batches, at any node."""
    stage = Witness(rule(every), seed, paces, batches=batches, queue=queue, store=store)
    stage.run()
    said = stage.said()

    assert stage.server.finished
    assert {name: sorted(said[name]) for name in NAMES} == {name: sorted(stage.truth[name]) for name in NAMES}
    assert all(lag % batches == 0 for lags in said.values() for lag in lags)
    assert stage.most <= batches
    assert all(made == list(range(STEPS)) for made in stage.learnt.values())


@settings(max_examples=settings.default.max_examples // 3)
@given(
    seed=st.integers(0, 2**32),
    batches=BATCHES,
    store=st.sampled_from(["", "store"]),
    every=st.integers(1, 3),
    deaths=DEATHS,
)
def test_shards_that_die_go_on_where_all_go_on(
    seed: int, batches: int, store: str, every: int, deaths: list[tuple[int, str]]
) -> None:
    """Each step is made once in what survives, and what was kept before is gone."""
    stage = Witness(rule(every), seed, batches=batches, store=store, queue=2)
    stage.run_through(deaths)

    assert stage.server.finished
    assert [stage.surviving_steps(each) for each in NAMES] == [list(range(STEPS))] * 3
    assert stage.most <= batches


@pytest.mark.parametrize("store", ["", "store"])
def test_nobody_waits_for_who_is_slower(store: str) -> None:
    """The first shard makes all its steps before the one above is done with its first, and keeps an epoch at most."""
    stage = Witness(rule(), 1, {NAMES[1]: 0.0, NAMES[2]: 0.0}, batches=3, store=store, queue=1)
    first = stage.hearts[NAMES[0]]
    assert isinstance(first, LayerShard)
    while first.learnt < STEPS:
        stage.run(1)

    assert stage.learnt[NAMES[1]] in ([], [0])
    assert stage.most == 3

    stage.paces = {}
    stage.run()
    assert stage.server.finished
    ages = stage.said()[NAMES[1]]
    assert min(ages) <= -(STEPS - 2 * 3)  # its first predictions were matched with the last epoch's inputs
    assert stage.said()[NAMES[0]] == []  # who has made all steps teaches nobody


def test_the_batches_of_an_epoch_are_the_same_in_every_epoch() -> None:
    """Whole ones, without what is left over; else a new order is drawn for each epoch."""
    fixed, drawn = plan_of(0, batches=N // BATCH), plan_of(0)
    epochs = [np.concatenate([batch_of(fixed, step + 6 * epoch) for step in range(6)]) for epoch in range(3)]
    others = [np.concatenate([batch_of(drawn, step + 6 * epoch) for step in range(6)]) for epoch in range(3)]

    assert [sorted(epoch.tolist()) for epoch in epochs] == [list(range(N))] * 3
    np.testing.assert_array_equal(epochs[0], epochs[1])
    np.testing.assert_array_equal(epochs[0], epochs[2])
    np.testing.assert_array_equal(epochs[0], others[0])
    assert not np.array_equal(others[0], others[1])


def test_what_is_older_than_training_since_the_last_history_is_matched_with_nothing() -> None:
    """After a roll-back to step 5 the shard has predicted nothing yet, though steps had been made before."""
    shard = BatchShard(plan_of(1, batches=3), rule())
    shard.begin_at(5)
    shard.next = BatchPart(7)

    assert [shard._last(batch) for batch in range(3)] == [6, 4, 5]
    shard.came_up.put(4, np.zeros(1, dtype=np.float32))
    assert shard._teach_input() is None
    shard.came_up.put(3, np.zeros(1, dtype=np.float32))
    job = shard._teach_input()
    assert isinstance(job, TeachInputsJob)
    assert (job.at, shard.matched) == (BatchPart(6), {"input_lag": 3})
