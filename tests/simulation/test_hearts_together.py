"""Hearts joined by a fake link: server, workers and evaluator without a shell, without sockets, without a network.

The link delivers in the order of sending, through the real codec. A gradient is that of half the squared distance to a
target, plus a little noise from the batch, so that a model is right if it is near the target.
"""

from collections import deque
from dataclasses import dataclass, field

import msgspec
import numpy as np
import pytest
from node_plans import know_all, plan_of_role
from tasks import one_array

from edgebed.algorithms.registry import PRESETS
from edgebed.core import records
from edgebed.core.plan import Method, Part, Task, TensorLayout, TrainingNode
from edgebed.roles.evaluator import Evaluator
from edgebed.roles.events import Compute, Computed, EndNode, Journal, MessageReceived, Send
from edgebed.roles.server.parameter_server import ParameterServer
from edgebed.roles.work import EvaluatorWork, Work
from edgebed.roles.worker import Worker
from edgebed.wire import frames as codec
from edgebed.wire import messages
from edgebed.wire.tensors import decode_dense, split_frames

SIZES = (300, 20)
TARGET = np.linspace(-1, 1, sum(SIZES), dtype="f4")


class Distance:
    """A model of 320 parameters whose loss is half its squared distance to the target."""

    def gradient(self, theta, batch, key):
        """(320,) theta and positions -> (320,) gradient, loss."""
        noise = np.random.default_rng(batch).normal(scale=0.01, size=len(theta)).astype("f4")
        return theta - TARGET + noise, float(((theta - TARGET) ** 2).sum() / 2)

    def score(self, theta, share):
        """Of the parameters, those near their target; the loss of all."""
        loss = float(((theta - TARGET) ** 2).sum() / 2)
        near = float((abs(theta - TARGET) < 0.1).sum())
        return (("test", {"accuracy": (near, len(theta)), "loss": (len(theta) * loss, len(theta))}),)


def make_method(preset: str, **compression) -> Method:
    """A preset, with some settings of its compression changed."""
    given = {kind: dict(part) for kind, part in PRESETS[preset].items()}
    given["compression"] |= compression
    return Method(name=preset, parts={kind: Part(name=part.pop("name"), settings=part) for kind, part in given.items()})


def make_plan(node: str, role: str, method: Method, **fields) -> TrainingNode:
    """A node of the pair or fleet."""
    layout = tuple(TensorLayout(f"t{k}", (size,)) for k, size in enumerate(SIZES))
    task = Task(model="-", inputs=one_array((1,)), outputs=2, layout=layout, batch_size=4, gradient_time_s=0.01)
    return plan_of_role(
        node=node, role=role, device_class=role, seed=1, task=task, method=method, num_examples=10, **fields
    )  # fmt: skip


@dataclass
class Link:
    """Delivers messages and results, first come, first served, and writes down what was said."""

    hearts: dict
    works: dict
    queue: deque = field(default_factory=deque)
    said: dict[str, list[str]] = field(default_factory=dict)
    journal: list[records.Record] = field(default_factory=list)
    to_controller: list = field(default_factory=list)

    def run(self) -> "Link":
        """Start everybody, and deliver until nothing is left."""
        start = messages.Start(sender="controller")
        self.queue += [(name, MessageReceived("controller", start, (), 0)) for name in self.hearts]
        while self.queue:
            name, event = self.queue.popleft()
            for effect in self.hearts[name].handle(event, 0.0):
                self.carry_out(name, effect)
        return self

    def carry_out(self, name, effect):
        """What a shell would do."""
        if isinstance(effect, Journal):
            self.journal.append(effect.record)
        elif isinstance(effect, Compute):
            self.queue.append((name, Computed(self.works[name].run(effect.job))))
        elif isinstance(effect, Send) and effect.to == "controller":
            self.to_controller.append(effect)
        elif isinstance(effect, Send):
            buffers = [bytes(buffer) for buffer in codec.encode(effect.message, effect.frames)]
            message, frames = codec.decode(buffers, "data")
            self.said.setdefault(f"{name} > {effect.to}", []).append(type(message).__name__)
            self.queue.append((effect.to, MessageReceived(name, message, frames, codec.size_bytes(buffers))))
        else:
            assert isinstance(effect, EndNode)
            pytest.fail(f"{name} stopped: {effect.reason}")

    def updates(self) -> list[records.Update]:
        """The pushes that were applied, in order."""
        return [record for record in self.journal if isinstance(record, records.Update)]


def join_hearts(method: Method, num_workers: int, stop_updates: int, pull: str = "full") -> Link:
    """A server, workers and an evaluator of every fifth version."""
    names = [f"edge-{k}" for k in range(num_workers)]
    server = make_plan("server", "server", method, stop_updates=stop_updates, pull=pull)
    evaluator = make_plan("evaluator", "evaluator", method, evaluate_every_updates=5)
    workers = [make_plan(name, "worker", method, pull=pull) for name in names]
    hearts = {
        "server": know_all(ParameterServer(server, np.zeros(sum(SIZES), "f4"), tuple(names))),
        "evaluator": Evaluator(evaluator),
        **{plan.node: Worker(plan) for plan in workers},
    }
    works = {plan.node: Work(plan, Distance()) for plan in workers}
    return Link(hearts, {"evaluator": EvaluatorWork(Distance()), **works}).run()


METHODS = {
    "asgd": make_method("asgd"),
    "asgd in float16": make_method("asgd", values="float16"),
    "comp-asgd": make_method("comp-asgd", fraction=0.2),
    "adacomp": make_method("adacomp", fraction=0.2),
    "adacomp in float16": make_method("adacomp", fraction=0.2, values="float16"),
}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("num_workers", [1, 3])
def test_hearts_train_a_model_together_and_come_to_rest(method, num_workers):
    """Every update is counted once, the evaluator sees every fifth version and the final one, the model is learned."""
    link = join_hearts(method, num_workers, stop_updates=203)

    assert [record.version for record in link.updates()] == list(range(1, 204))
    evaluated = [record for record in link.journal if isinstance(record, records.Evaluated)]
    assert [record.version for record in evaluated] == [*range(0, 203, 5), 203]
    assert [record.final for record in evaluated] == [False] * 41 + [True]
    assert evaluated[-1].measured["accuracy"] > 0.95 > evaluated[0].measured["accuracy"]
    (finished,) = [record for record in link.journal if isinstance(record, records.Finished)]
    assert (finished.version, finished.reason) == (203, "203 updates were applied")
    (checkpoint,) = link.to_controller
    theta = decode_dense(*split_frames(checkpoint.message.tensors, checkpoint.frames)["theta"])
    np.testing.assert_array_equal(theta, link.hearts["server"].aggregation.theta)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_what_a_pull_brings_makes_no_difference_to_what_is_learned(method):
    """Whole models or changed entries: the same updates in the same order, the same bits at the end."""
    whole, changed = (join_hearts(method, 3, stop_updates=60, pull=pull) for pull in ("full", "changed-since"))

    kept = [[msgspec.structs.replace(each, sent=0) for each in link.updates()] for link in (whole, changed)]
    assert kept[0] == kept[1]
    assert whole.said == changed.said
    thetas = [link.hearts["server"].aggregation.theta.tobytes() for link in (whole, changed)]
    assert thetas[0] == thetas[1]


def test_a_worker_and_the_server_take_turns():
    """Join, then push for model, until the model is final."""
    link = join_hearts(METHODS["adacomp"], 1, stop_updates=3)

    assert link.said["edge-0 > server"] == ["Join", "Push", "Push", "Push"]
    assert link.said["server > edge-0"] == ["Model"] * 4
    assert link.said["evaluator > server"] == ["Pull", "Pull"]


def test_every_worker_gets_its_turn_with_the_staleness_of_the_others():
    """Three in a ring: each update finds the model two versions older than it left it."""
    link = join_hearts(METHODS["asgd"], 3, stop_updates=60)

    assert [record.worker for record in link.updates()] == [f"edge-{k % 3}" for k in range(60)]
    assert {record.staleness for record in link.updates()[3:]} == {2}
    refused = [record.code for record in link.journal if isinstance(record, records.Refused)]
    assert refused == ["finished"] * 2  # the two pushes that were on their way


def test_the_same_hearts_say_the_same_again():
    """Same seed, same journal and same model, to the last bit."""
    first, second = (join_hearts(METHODS["adacomp"], 3, stop_updates=50) for _ in range(2))

    assert first.journal == second.journal
    theta, again = (link.hearts["server"].aggregation.theta for link in (first, second))
    np.testing.assert_array_equal(theta, again)


def test_adacomp_that_sends_everything_trains_as_asgd_does():
    """Bit for bit, through worker, wire and server; no gradient entry is zero here."""
    everything = join_hearts(make_method("adacomp", fraction=1.0), 3, stop_updates=60)
    asgd = join_hearts(METHODS["asgd"], 3, stop_updates=60)

    theta, expected = (link.hearts["server"].aggregation.theta for link in (everything, asgd))
    np.testing.assert_array_equal(theta, expected)
    assert [r.loss for r in everything.updates()] == [r.loss for r in asgd.updates()]
