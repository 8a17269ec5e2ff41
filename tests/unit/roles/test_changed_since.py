"""`pull: changed-since`: a worker that is sent only what changed has the server's model, bit for bit."""

import numpy as np
import pytest
from any_update import ANY_UPDATE
from hypothesis import given
from hypothesis import strategies as st
from node_plans import know_all, plan_of_role
from tasks import one_array

from edgebed.algorithms.registry import PRESETS
from edgebed.algorithms.update import ModelUpdate
from edgebed.core.plan import Method, Part, Task, TensorLayout
from edgebed.core.records import Dropped, Note
from edgebed.roles.events import Compute, Computed, Connected, Journal, MessageReceived, Send
from edgebed.roles.server.parameter_server import ParameterServer
from edgebed.roles.work import GradientResult
from edgebed.roles.worker import Worker
from edgebed.wire import frames as codec
from edgebed.wire.messages import Join, Model, Pull, Push, Start
from edgebed.wire.tensors import decode_dense, encode_dense, encode_update

N = 60  # few enough for pushes to meet, enough for changes to be smaller than the whole
WORKERS = ("edge-0", "edge-1", "edge-2")
TASK = Task(
    model="small",
    inputs=one_array((1,)),
    outputs=2,
    layout=(TensorLayout("w", (N,)),),
    batch_size=4,
    gradient_time_s=0.01,
)
PECULIAR = np.array([0x7F800001, 0x7FC12345, 0xFF800000, 0x7F800000, 0x80000000, 0x00000001], "<u4").view("<f4")
"""A signalling NaN, a NaN with a payload, both infinities, minus zero, the smallest number."""


def plan_of(node, role, method="comp-asgd", pull="changed-since", **fields):
    """A node of the fleet."""
    parts = {kind: dict(part) for kind, part in PRESETS[method].items()}
    made = {kind: Part(name=part.pop("name"), settings=part) for kind, part in parts.items()}
    made = Method(name=method, parts=made | {"compression": ANY_UPDATE})
    given = {"device_class": role, "seed": 1, "task": TASK, "num_examples": 10} | fields
    return plan_of_role(node=node, role=role, method=made, pull=pull, **given)


START = MessageReceived("controller", Start(sender="controller", addresses=(("server", "x"),)), (), 0)


class Fleet:
    """A server and three workers that have joined, and every model that a worker was sent."""

    def __init__(self, method="comp-asgd", theta=None, pull="changed-since", **fields):
        start = np.zeros(N, "f4") if theta is None else theta
        self.server = ParameterServer(plan_of("server", "server", method, pull, **fields), start, WORKERS)
        know_all(self.server)
        self.workers = {name: Worker(plan_of(name, "worker", method, pull)) for name in WORKERS}
        self.models = []
        for name in WORKERS:
            self.join(name)

    def tell(self, name, effects):
        """Tell the server what the worker sends, and its answer to the worker; the model it then computes with."""
        (asked,) = (each for each in effects if isinstance(each, Send))
        buffers = [bytes(buffer) for buffer in codec.encode(asked.message, asked.frames)]
        effects = self.server.handle(MessageReceived(name, *codec.decode(buffers, "data"), 0), 0.0)
        (answer,) = (each for each in effects if isinstance(each, Send) and isinstance(each.message, Model))
        assert answer.to == name
        model, parts = codec.decode([bytes(part) for part in codec.encode(answer.message, answer.frames)], "data")
        self.models.append(model)
        (compute,) = self.workers[name].handle(MessageReceived("server", model, parts, 0), 0.0)
        assert isinstance(compute, Compute)
        return compute.job.theta

    def join(self, name, incarnation=1):
        """The model after a join: the first, one after a push that was lost with its connection, or a new life's."""
        worker = self.workers[name]
        if worker.incarnation != incarnation:
            worker = self.workers[name] = Worker(worker.plan, incarnation)
        if worker.computing:
            worker.handle(Computed(result(sparse())), 0.0)
            return self.tell(name, worker.handle(Connected(), 0.0))
        return self.tell(name, worker.handle(START, 0.0))

    def push(self, name, update):
        """The model after a push, which was computed at the version that the worker has."""
        return self.tell(name, self.workers[name].handle(Computed(result(update)), 0.0))

    @property
    def theta(self):
        """The server's model."""
        return self.server.aggregation.theta


def result(update):
    """What a worker is to push."""
    tensor, frames = encode_update("update", update)
    return GradientResult((tensor,), frames, 1.0, None, 0.0, 0.0)


def sparse(*indices, value=1.0):
    """A push of some entries."""
    return ModelUpdate(N, np.array(indices, np.int64), np.full(len(indices), value, "f4"))


def dense(value=1.0):
    """A push of all entries."""
    return ModelUpdate(N, None, np.full(N, value, "f4"))


def bits(theta):
    """What NaN and minus zero can be compared by."""
    return theta.view("<u4").tolist()


values = st.floats(width=32) | st.sampled_from(PECULIAR.tolist())
updates = st.builds(dense, values) | st.builds(
    lambda indices, value: sparse(*sorted(indices), value=value), st.sets(st.integers(0, N - 1), max_size=N), values
)
steps = st.lists(st.tuples(st.sampled_from(WORKERS), st.none() | updates), max_size=25)
"""(worker, its push), or (worker, None) where it joins anew."""


@given(steps=steps, method=st.sampled_from(["asgd", "comp-asgd", "adacomp"]))
def test_after_every_answer_the_workers_model_is_the_servers(steps, method):
    """Whoever pushes what, in any order; what was handed to an earlier job is not written."""
    fleet = Fleet(method, np.resize(PECULIAR, N))
    given = []
    for worker, update in steps:
        theta = fleet.join(worker) if update is None else fleet.push(worker, update)

        assert bits(theta) == bits(fleet.theta)
        given.append((theta, bits(theta)))
    assert all(bits(theta) == before for theta, before in given)


@given(updates=st.lists(updates | st.just(sparse(*range(1, N))), max_size=10))
def test_no_answer_is_larger_than_the_whole_model(updates):
    """In the tensor's own bytes; with their positions nearly all entries are larger than all."""
    fleet = Fleet()
    for update in updates:
        fleet.push("edge-0", update)

    for model in fleet.models:
        (tensor,) = model.tensors
        assert tensor.index_bytes + 4 * tensor.entries <= 4 * N
        assert (model.since is None) == (tensor.encoding == "dense")


def test_only_what_changed_since_the_workers_last_answer_is_sent():
    """Its own push and those of others since then, each entry once."""
    fleet = Fleet()
    fleet.push("edge-0", sparse(1, 2))
    fleet.push("edge-1", sparse(2, 30))
    fleet.push("edge-0", sparse(7))

    assert [(model.version, model.since, model.tensors[0].entries) for model in fleet.models[3:]] == [
        (1, 0, 2), (2, 0, 3), (3, 1, 3),
    ]  # fmt: skip


def test_nothing_changed_is_an_answer_of_no_entries():
    """A push may choose none."""
    fleet = Fleet()

    assert bits(fleet.push("edge-0", sparse())) == bits(fleet.theta)
    assert (fleet.models[-1].since, fleet.models[-1].tensors[0].entries) == (0, 0)


def test_a_worker_gets_the_whole_model_when_it_joins_and_after_a_dense_push():
    """Also in a new incarnation; for who has seen the dense push its successor is sparse again."""
    fleet = Fleet()
    fleet.push("edge-0", sparse(1))
    fleet.join("edge-0", incarnation=2)
    fleet.push("edge-1", dense())
    fleet.push("edge-1", sparse(1))

    assert [model.since for model in fleet.models] == [None, None, None, 0, None, None, 2]


def test_a_push_of_another_version_than_was_sent_is_answered_with_the_whole_model():
    """The server does not guess which version the worker really has."""
    fleet = Fleet()
    fleet.push("edge-0", sparse(1))
    fleet.workers["edge-0"].base = 0
    fleet.push("edge-0", sparse(1))

    assert [model.since for model in fleet.models[3:]] == [0, None]


def test_the_last_model_is_whole_and_so_is_every_evaluators():
    """What is measured depends on nothing that came before."""
    fleet = Fleet(stop_updates=2)
    fleet.push("edge-0", sparse(1))
    (answer,) = fleet.server.handle(MessageReceived("e", Pull(sender="evaluator", at_version=0), (), 0), 0.0)

    assert answer.message.since is None
    np.testing.assert_array_equal(decode_dense(answer.message.tensors[0], answer.frames), fleet.theta)

    tensor, frames = encode_update("update", sparse(1))
    push = Push(sender="edge-0", incarnation=1, step=1, base=1, loss=1.0, tensors=(tensor,))
    *_, last = fleet.server.handle(MessageReceived("edge-0", push, frames, 0), 0.0)

    assert (last.message.version, last.message.final, last.message.since) == (2, True, None)


def test_those_who_need_the_same_share_one_encoding():
    """As after a round, or at the start."""
    fleet = Fleet()
    fleet.push("edge-0", sparse(1))
    answers = fleet.server._answer("edge-1", "edge-2")

    assert answers[0].message is answers[1].message
    assert answers[0].message.since == 0
    assert answers[0].frames is answers[1].frames


def test_every_answer_is_whole_where_nothing_else_is_asked_for():
    """`pull: full`; and the worker then keeps no model."""
    fleet = Fleet(pull="full")
    fleet.push("edge-0", sparse(1))

    assert [model.since for model in fleet.models] == [None] * 4
    assert fleet.workers["edge-0"].theta is None


@pytest.mark.parametrize("versions", [(), (4,), (4, 6)])
def test_changes_since_another_version_are_not_used(versions):
    """The worker says so and asks for the whole model, with which it goes on."""
    worker = Worker(plan_of("edge-0", "worker"), 2)
    worker.handle(START, 0.0)
    for version in versions:
        whole, frames = encode_dense("theta", np.full(N, version, "f4"))
        model = Model(sender="server", version=version, final=False, tensors=(whole,))
        worker.handle(MessageReceived("server", model, frames, 0), 0.0)
        worker.handle(Computed(result(sparse(1))), 0.0)

    tensor, frames = encode_update("theta", sparse(3))
    model = Model(sender="server", version=9, final=False, since=5, tensors=(tensor,))
    note, join = worker.handle(MessageReceived("server", model, frames, 0), 0.0)

    has = f"version {versions[-1]}" if versions else "none"
    text = f"sent what changed since version 5 of the model, and has {has}: joins anew"
    assert note == Journal(Note(text=text))
    assert join == Send("server", Join(sender="edge-0", incarnation=2, joins=1))


@pytest.mark.parametrize(
    "encoded",
    [
        encode_dense("theta", np.zeros(N, "f4")),
        encode_update("theta", ModelUpdate(N + 1, np.array([3]), np.ones(1, "f4"))),
        encode_update("theta", ModelUpdate(N, np.array([3]), np.ones(1, "f2"))),
    ],
    ids=["dense", "another size", "rounded"],
)
def test_changes_that_do_not_fit_the_model_are_a_broken_message(encoded):
    """Nothing of them is used."""
    worker = Worker(plan_of("edge-0", "worker"))
    worker.handle(START, 0.0)
    whole, frames = encode_dense("theta", np.zeros(N, "f4"))
    worker.handle(
        MessageReceived("server", Model(sender="server", version=5, final=False, tensors=(whole,)), frames, 0), 0.0
    )
    worker.handle(Computed(result(sparse(1))), 0.0)
    tensor, frames = encoded
    model = Model(sender="server", version=9, final=False, since=5, tensors=(tensor,))

    (dropped,) = worker.handle(MessageReceived("server", model, frames, 0), 0.0)

    assert isinstance(dropped.record, Dropped)
    assert "changes of" in dropped.record.reason
    assert worker.base == 5
