"""The worker says one thing at a time, on batches that depend on the seed and the step alone."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core import chance
from edgebed.core.plan import Waiting
from edgebed.core.planned.fault import PointTrigger, Trigger
from edgebed.core.records import Diverged, Note
from edgebed.roles.events import Compute, Computed, Disconnected, EndNode, Journal, Send, Wake, Woken
from edgebed.roles.finiteness import NotFinite
from edgebed.roles.work import EvaluationResult, GradientJob, GradientResult, Work
from edgebed.roles.worker import BatchOrder, Worker
from edgebed.scenario.methods import resolve_method
from edgebed.wire.messages import Join, Model, Proceed, Push, Refuse, Start, Stop, Tensor
from edgebed.wire.tensors import encode_dense

START = Start(sender="controller", addresses=(("server", "x"),))


def model(version, *, final=False):
    """A model whose parameters are all its version, and its frames."""
    tensor, frames = encode_dense("theta", np.full(6, version, "f4"))
    return Model(sender="server", version=version, final=final, tensors=(tensor,)), frames


def result(memory=None):
    """The result of a gradient job."""
    tensor = Tensor("update", "float32", (6,), "dense", 6)
    return GradientResult((tensor,), [bytes(24)], 1.5, memory, 0.0, 0.0)


@pytest.fixture
def worker(make_node):
    """A worker of incarnation 2 that waits."""
    return Worker(make_node("edge-0", "worker", waiting=Waiting(distribution="exponential", mean_s=0.1)), 2)


def test_a_worker_joins_computes_and_pushes_in_turn(worker, received):
    """Start, join; model, gradient at that model with its pause; result, push with the model's version as base."""
    assert worker.handle(received(START), 0.0) == [Send("server", Join(sender="edge-0", incarnation=2))]
    for step, version in enumerate((4, 9)):
        (compute,) = worker.handle(received(*model(version)), 0.0)
        assert isinstance(compute, Compute)
        np.testing.assert_array_equal(compute.job.theta, np.full(6, version, "f4"))
        np.testing.assert_array_equal(compute.job.batches[0], BatchOrder(worker.plan, "edge-0#2").batch(step))
        assert (compute.job.step, compute.job.draw_name) == (step, "edge-0#2")
        assert compute.pause_s == chance.waiting_time(worker.plan.waiting, 1, "edge-0#2", step) > 0.0

        push = Push(
            sender="edge-0", incarnation=2, step=step, base=version, loss=1.5, examples=10, tensors=result().tensors
        )  # fmt: skip
        assert worker.handle(Computed(result()), 0.0) == [Send("server", push, result().frames)]


def test_what_was_not_finite_is_said_once_in_a_life(worker, received):
    """With the push that it went into; training goes on."""
    spoilt = msgspec.structs.replace(result(), not_finite=NotFinite("buffer", "mask"))
    worker.handle(received(START), 0.0)
    said = []
    for version, each in enumerate((result(), spoilt, spoilt)):
        worker.handle(received(*model(version)), 0.0)
        said.append([effect.record for effect in worker.handle(Computed(each), 0.0) if isinstance(effect, Journal)])

    assert said == [[], [Diverged(incarnation=2, step=1, what="buffer", tensor="mask")], []]


def test_what_the_compression_remembers_is_handed_to_the_next_step(worker, received):
    """And nothing to the first."""
    worker.handle(received(START), 0.0)
    (first,) = worker.handle(received(*model(0)), 0.0)
    worker.handle(Computed(result(memory="residual")), 0.0)
    (second,) = worker.handle(received(*model(1)), 0.0)

    assert (first.job.memory, second.job.memory) == (None, "residual")


def test_a_final_model_needs_no_gradient(worker, received):
    """The worker waits to be told to stop; a late push that was refused for this reason is no failure."""
    worker.handle(received(START), 0.0)

    assert worker.handle(received(*model(9, final=True)), 0.0) == []
    assert worker.handle(received(Refuse(sender="server", code="finished", reason="…")), 0.0) == []


@pytest.mark.parametrize("code", ["unknown-node", "stale-incarnation", "malformed", "duplicate"])
def test_a_refusal_ends_the_worker_and_is_journalled(code, worker, received):
    """It says by whom and why."""
    reason = f"refused by server ({code}): because"

    effects = worker.handle(received(Refuse(sender="server", code=code, reason="because")), 0.0)

    assert effects == [Journal(Note(text=reason)), EndNode(reason)]


@pytest.mark.parametrize(
    "event", [Disconnected("x"), Computed(EvaluationResult(1, False, {}))], ids=["disconnected", "other"]
)
def test_what_no_worker_can_be_sent_is_a_bug(event, worker, received):
    """Nobody connects to it, it evaluates nothing, and the shell itself handles `stop`."""
    with pytest.raises(AssertionError, match="Worker got"):
        worker.handle(event, 0.0)
    with pytest.raises(AssertionError, match="Worker got"):
        worker.handle(received(Stop(sender="controller", reason="")), 0.0)


def order_of(make_node, num_examples, batch_size, node="edge-0", incarnation=1):
    """The batches of a worker with so many examples, in one of its lives."""
    plan = make_node(node, "worker", num_examples=num_examples)
    task = msgspec.structs.replace(plan.task, batch_size=batch_size)
    return BatchOrder(msgspec.structs.replace(plan, task=task), chance.draw_name(node, incarnation))


@given(num_examples=st.integers(1, 30), batch_size=st.integers(1, 40), epochs=st.integers(1, 4))
def test_every_epoch_shows_every_example_once(make_node, num_examples, batch_size, epochs):
    """Batches laid end to end are permutations laid end to end; of fewer examples than a batch each has all."""
    order = order_of(make_node, num_examples, batch_size)
    size = min(batch_size, num_examples)
    batches = [order.batch(k) for k in range(-(-num_examples * epochs // size))]

    assert {len(batch) for batch in batches} == {size}
    shown = np.concatenate(batches)[: num_examples * epochs].reshape(epochs, num_examples)
    for epoch in shown:
        assert sorted(epoch) == list(range(num_examples))


@pytest.mark.parametrize("k", [0, 2])
def test_a_batch_keeps_no_more_than_its_own_examples(make_node, k):
    """Ten thousand of them are in a job at once: whole orders of 60,000 examples would be gigabytes."""
    assert order_of(make_node, 10, 4).batch(k).base is None


@given(asked=st.lists(st.integers(0, 50), min_size=1, max_size=10))
def test_a_batch_depends_on_its_number_alone(make_node, asked):
    """Not on which others were asked for, nor on whether one was asked for twice."""
    used = order_of(make_node, 10, 4)
    for k in asked:
        np.testing.assert_array_equal(used.batch(k), order_of(make_node, 10, 4).batch(k))


def test_epochs_workers_and_lives_have_orders_of_their_own(make_node):
    """A fixed order would be another method, and who was started anew would learn from the same examples again."""
    orders = [
        order_of(make_node, 100, 100),
        order_of(make_node, 100, 100, "edge-1"),
        order_of(make_node, 100, 100, incarnation=2),
    ]
    shown = [order.batch(epoch).tolist() for order in orders for epoch in (0, 1)]

    assert len({tuple(batch) for batch in shown}) == 6


class Noted:
    """Notes the key of each gradient."""

    def __init__(self):
        self.keys = []

    def gradient(self, theta, batch, key):
        """One at every entry."""
        self.keys.append(key)
        return np.ones(6, "f4"), 0.0


def test_the_work_of_a_later_life_has_draws_of_its_own(make_node):
    """Else what it draws while it computes would be what its first life drew."""
    noted = Noted()
    work = Work(make_node("edge-0", "worker"), noted)
    for incarnation in (1, 2, 2):
        draw_name = chance.draw_name("edge-0", incarnation)
        work.run(GradientJob(np.zeros(6, "f4"), (np.arange(4),), 0, None, draw_name))

    assert noted.keys[0] == chance.key(1, "work", "edge-0", 0) != noted.keys[1] == noted.keys[2]


def test_every_mini_batch_has_draws_of_its_own(make_node):
    """Of local steps as of others: dropout leaves out other units each time, and the same when a job is done again."""
    noted = Noted()
    work = Work(make_node("edge-0", "worker", method=resolve_method("fedavg")), noted)
    for step in (0, 1, 0):
        work.run(GradientJob(np.zeros(6, "f4"), (np.arange(4),) * 3, step))
    first, second, again = noted.keys[:3], noted.keys[3:6], noted.keys[6:]

    assert len({*first, *second}) == 6
    assert first == again
    assert first[0] == chance.key(1, "work", "edge-0", 0)


def test_a_worker_that_is_started_anew_compresses_as_the_others_do(make_node):
    """What begins gently goes by the version of the model, not by the worker's own steps: 8 examples, 4 at a time."""
    dgc = {"name": "dgc", "fraction": 0.34, "warm_up": [1.0, 0.5], "whole": "nothing"}
    method = resolve_method({"preset": "sync-sgd", "compression": dgc})
    work = Work(make_node("edge-0", "worker", method=method, num_workers=3, num_examples=8), Noted())

    def sent(step, version):
        job = GradientJob(np.zeros(6, "f4"), (np.arange(4),), step, None, "edge-0#2", version)
        (tensor,) = work.run(job).tensors
        return tensor.entries

    assert [sent(0, version) for version in (0, 5, 6, 11, 12)] == [6, 6, 3, 3, 2]
    assert sent(9, 0) == 6


class Working:
    """A worker that says after every three seconds of work that it works; its wakes come at their time."""

    def __init__(self, node, received):
        self.worker, self.received = Worker(node, 1), received
        self.wakes: list[tuple[float, str]] = []
        self.said: list[tuple[float, str]] = []
        self.tell(received(START), 0.0)

    def tell(self, event, now):
        """Something happens, and before that what is due until then."""
        while self.wakes and self.wakes[0][0] < now:
            at_s, token = self.wakes.pop(0)
            self.take(self.worker.handle(Woken(token), at_s), at_s)
        self.take(self.worker.handle(event, now), now)

    def take(self, effects, now):
        """What it does."""
        for effect in effects:
            if isinstance(effect, Wake):
                self.wakes = sorted([*self.wakes, (effect.at_s, effect.token)])
            elif isinstance(effect, Send):
                self.said.append((now, type(effect.message).__name__.lower()))

    def push(self, begins_s, ends_s):
        """It pulls and pushes; what it has said meanwhile."""
        begin = len(self.said)
        self.tell(self.received(*model(0)), begins_s)
        self.tell(Computed(result()), ends_s)
        return self.said[begin:]


@pytest.fixture
def working(make_node, received):
    """Such a worker, which has joined."""
    return Working(make_node("edge-0", "worker", working_s=3.0), received)


def test_a_worker_at_work_for_long_says_so_in_time_and_again(working):
    """Once in each three seconds of one push, counted from its model; not while it waits for an answer."""
    assert working.push(10.0, 20.0) == [(13.0, "working"), (16.0, "working"), (19.0, "working"), (20.0, "push")]
    assert working.push(50.0, 52.9) == [(52.9, "push")]


def test_a_worker_that_pushes_in_time_says_nothing_and_asks_for_few_wakes(working):
    """However many pushes there are: a wake is asked for about every three seconds."""
    said = [each for k in range(1000) for each in working.push(k * 0.1, k * 0.1 + 0.09)]

    assert {what for _, what in said} == {"push"}
    assert int(working.worker.alarm.count) <= 100 / 3.0 + 1


def test_a_worker_that_is_not_asked_to_says_nothing(make_node, received):
    """As those of a plan made before."""
    worker = Working(make_node("edge-0", "worker"), received)

    assert worker.push(0.0, 1000.0) == [(1000.0, "push")]
    assert worker.wakes == []


def test_a_worker_that_stands_at_a_fault_says_nothing(make_node, received):
    """It does nothing until it may proceed: whoever is to be frozen there is as silent as if it were already."""
    point = PointTrigger(fault=0, trigger=Trigger(point="after-pull", step=0))
    worker = Working(make_node("edge-0", "worker", working_s=3.0, points=(point,)), received)
    worker.tell(received(*model(0)), 1.0)
    worker.tell(received(Proceed(sender="controller")), 60.0)
    worker.tell(Computed(result()), 64.0)

    assert worker.said[1:] == [(1.0, "reached"), (63.0, "working"), (64.0, "push")]
