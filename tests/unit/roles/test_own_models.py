"""Workers with models of their own measure them when they are due, and the trial ends when all have."""

import msgspec
import numpy as np
import pytest
from controlled_fleet import Fleet
from evaluated import evaluation

from edgebed.core import records
from edgebed.core.plan import Method, Part
from edgebed.core.planned.clients import ByClient, together
from edgebed.roles.control.name import NAME
from edgebed.roles.evaluator import Evaluator
from edgebed.roles.events import Compute, Computed, HealthChecked, Journal, NodeExited, Send
from edgebed.roles.work import ClientsJob, ClientsResult, GradientJob, GradientResult
from edgebed.roles.worker import Worker
from edgebed.wire.messages import Finish, Model, Start
from edgebed.wire.tensors import encode_dense

NOTHING = Part(name="nothing")
ALONE = Method(
    name="local-only",
    parts={
        "aggregation": Part(name="synchronous"), "compression": NOTHING, "downlink": NOTHING,
        "local_work": Part(name="alone"),
    },
)  # fmt: skip
FINISHED = records.Finished(version=12, reason="12 updates were applied")
FINISH = Finish(sender=NAME, reason="12 updates were applied", version=12)
START = Start(sender=NAME, addresses=(("server", "x"),))
OWN = np.arange(6, dtype="f4")


def by_client(*clients, every=None):
    """What a worker is to measure."""
    return ByClient(part="test", clients=clients, sizes=(7,) * len(clients), every_updates=every)


@pytest.fixture
def make_worker(make_node):
    """`make_worker(plan)`: a worker in its first life, with what it is to measure."""

    def make(plan):
        return Worker(make_node("edge-0", "worker", method=ALONE, by_client=plan))

    return make


def model(version):
    """A model whose parameters are all its version, and its frames."""
    tensor, frames = encode_dense("theta", np.full(6, version, "f4"))
    return Model(sender="server", version=version, final=False, tensors=(tensor,)), frames


def jobs(effects):
    """What is to be computed."""
    return [effect.job for effect in effects if isinstance(effect, Compute)]


def trained(worker, received, version):
    """What it does with a model, and then with a push whose own model is OWN."""
    effects = worker.handle(received(*model(version)), 0.0)
    worker.handle(Computed(GradientResult((), [], 1.5, (OWN, None), 0.0, 0.0)), 0.0)
    return effects


def test_a_worker_measures_its_own_model_at_the_ends_of_intervals(make_worker, received):
    """Before it goes on, by the versions at which they end, which all workers have; the first at version 0."""
    worker = make_worker(by_client(3, 5, every=4))
    worker.handle(received(START), 0.0)
    done = {version: jobs(trained(worker, received, version)) for version in (0, 3, 6, 7, 9)}

    assert [isinstance(each, GradientJob) for each in done[0]] == [False, True]
    assert {version: each[0].version for version, each in done.items() if len(each) == 2} == {0: 0, 6: 4, 9: 8}
    assert all(isinstance(each[0], ClientsJob) for each in done.values() if len(each) == 2)
    assert done[6][0].clients == (3, 5)
    np.testing.assert_array_equal(done[0][0].theta, np.zeros(6, "f4"))
    np.testing.assert_array_equal(done[6][0].theta, OWN)


@pytest.mark.parametrize("every", [None, 4])
def test_a_worker_measures_its_last_model_when_it_is_told_that_training_is_over(every, make_worker, received):
    """That after its last push, though another one is being computed; of the version that the trial ended with."""
    worker = make_worker(by_client(3, every=every))
    worker.handle(received(START), 0.0)
    trained(worker, received, 0)
    worker.handle(received(*model(9)), 0.0)
    (job,) = jobs(worker.handle(received(FINISH), 0.0))

    assert (job.version, job.final, job.clients) == (12, True, (3,))
    np.testing.assert_array_equal(job.theta, OWN)
    sums = {"accuracy": (3.0, 4.0), "loss": (2.0, 4.0)}
    (journal,) = worker.handle(Computed(ClientsResult(12, True, (3,), (sums,), (None,))), 0.0)
    assert journal == Journal(records.Clients(
        version=12, clients=(3,), measured={"accuracy": (0.75,), "loss": (0.5,)}, final=True
    ))  # fmt: skip


def test_a_worker_that_is_started_anew_has_lost_its_model(make_worker, received):
    """It does not measure the first one again for a version that its life before has measured, but at the end."""
    worker = make_worker(by_client(3, every=4))
    worker.handle(received(START), 0.0)

    assert [type(each) for each in jobs(worker.handle(received(*model(6)), 0.0))] == [GradientJob]
    (job,) = jobs(worker.handle(received(FINISH), 0.0))
    np.testing.assert_array_equal(job.theta, np.full(6, 6, "f4"))


def test_a_worker_that_has_been_sent_no_model_says_so(make_worker, received):
    """Nobody waits for it."""
    worker = make_worker(by_client(3))
    worker.handle(received(START), 0.0)

    assert worker.handle(received(FINISH), 0.0) == [
        Journal(records.Clients(version=12, clients=(), measured={}, final=True))
    ]


def test_nothing_is_measured_of_a_model_that_nobody_trains(make_node, received):
    """The evaluator says when it is there, as of any other, and goes on to the next."""
    evaluator = Evaluator(make_node("evaluator", "evaluator", method=ALONE, evaluate_every_updates=5))
    evaluator.handle(received(START), 0.0)
    journal, send = evaluator.handle(received(*model(0)), 0.0)

    assert journal == Journal(records.Evaluated(version=0, measured={}))
    assert send.message.at_version == 5


@pytest.fixture
def fleet(make_plan, received):
    """Three workers, two of whom have clients; training is over."""
    plan = make_plan(3)
    clients = {"edge-0": by_client(0, 1), "edge-1": by_client(2)}
    nodes = tuple(
        msgspec.structs.replace(node, method=ALONE, **{"by_client": clients[node.node]} if node.node in clients else {})
        for node in plan.nodes
    )
    made = Fleet(msgspec.structs.replace(plan, nodes=nodes), received).start()
    told = made.report("server", FINISHED)
    assert [(each.to, each.message.version) for each in told if isinstance(each, Send)] == [
        ("evaluator", 12), ("edge-0", 12), ("edge-1", 12),
    ]  # fmt: skip
    return made


def test_a_trial_waits_for_a_worker_that_had_died_and_is_back(make_plan, received):
    """It has a model of its own again."""
    plan = make_plan(2)
    nodes = tuple(
        msgspec.structs.replace(node, method=ALONE, by_client=by_client(0)) if node.node == "edge-0" else node
        for node in plan.nodes
    )
    fleet = Fleet(msgspec.structs.replace(plan, nodes=nodes), received).start()
    fleet.do(NodeExited("edge-0", "killed"))
    fleet.start("edge-0")
    fleet.report("server", FINISHED)
    fleet.report("evaluator", evaluation(version=12, accuracy=0.5, loss=1.0, final=True))
    assert not has_ended(fleet)
    fleet.report("edge-0", told(0))

    assert has_ended(fleet)


def told(*clients, final=True):
    """What a worker has measured."""
    return records.Clients(version=12, clients=clients, measured={}, final=final)


def has_ended(fleet):
    """Whether everybody is being stopped."""
    return fleet.controller.is_ending


def test_a_trial_ends_when_all_have_measured_their_last_models(fleet):
    """All clients of each, however many lines that takes, and the evaluator what it has."""
    for said in (told(0, 1, final=False), told(0), told(0, 1)):
        fleet.report("edge-0", said)
    fleet.report("evaluator", evaluation(version=12, accuracy=0.5, loss=1.0, final=True))
    assert not has_ended(fleet)
    fleet.report("edge-1", told(2))

    assert has_ended(fleet)
    assert fleet.controller.ending.reason == "12 updates were applied"


def test_a_trial_waits_for_the_evaluator_as_well(fleet):
    """It may be the last; a worker that has been sent no model has nothing to measure."""
    fleet.report("edge-0", told())
    fleet.report("edge-1", told(2))
    assert not has_ended(fleet)
    fleet.report("evaluator", evaluation(version=12, accuracy=0.5, loss=1.0, final=True))

    assert has_ended(fleet)


@pytest.mark.parametrize(
    "away", [NodeExited("edge-0", "killed"), HealthChecked(frozenset(("server", "evaluator", "edge-1", "edge-2")))]
)
def test_a_trial_waits_for_nobody_who_is_away(away, fleet):
    """Dead or without a sign of life: its last model is not measured, and all else is."""
    fleet.report("evaluator", evaluation(version=12, accuracy=0.5, loss=1.0, final=True))
    fleet.report("edge-1", told(2))
    assert not has_ended(fleet)
    for _ in range(2):
        fleet.do(away)

    assert has_ended(fleet)
    assert fleet.controller.ending.outcome == "completed"


def test_what_workers_measure_is_told_as_one(fleet):
    """With the clients of all; what one measures is a part of what it was made from."""
    whole = fleet.controller.plan.by_client
    assert (whole.clients, whole.sizes, whole.own) == ((0, 1, 2), (7, 7, 7), ())
    assert whole.only((2, 9)) == by_client(2)
    assert whole.only(()) is None
    assert together([]) is None
