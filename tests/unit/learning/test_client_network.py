"""A model measured client by client: sums that make the whole, and fine-tuning on a client's own examples."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tasks import examples_of, one_array

from edgebed.core.measures.task import added
from edgebed.core.plan import Task
from edgebed.core.planned.clients import ByClient, FineTune
from edgebed.learning.client_network import ClientNetwork
from edgebed.learning.models import registry as models
from edgebed.learning.network import Network

RNG = np.random.default_rng(5)
FORM = one_array((1, 28, 28))
TASK = Task(
    model="small", inputs=FORM, outputs=10, layout=models.layout("small", FORM, 10), batch_size=10, gradient_time_s=0.01
)
COUNT = 130
HELD_OUT = examples_of(
    RNG.integers(0, 256, (COUNT, 1, 28, 28), dtype=np.uint8), RNG.integers(0, 10, COUNT).astype(np.uint8)
)
NETWORK = Network(TASK, HELD_OUT)
THETA = models.initial_parameters(TASK, 1)


def by_client(clients, fine_tune=None):
    """The network with the examples of these clients, one for each example; the same ones to be tuned on."""
    owned = dataclasses.replace(HELD_OUT, clients=np.array(clients))
    names, sizes = np.unique([each for each in clients if each >= 0], return_counts=True)
    plan = ByClient(part="test", clients=tuple(names.tolist()), sizes=tuple(sizes.tolist()), fine_tune=fine_tune)
    return ClientNetwork(NETWORK, plan, 3, owned, owned if fine_tune else None)


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(0, 6), min_size=COUNT, max_size=COUNT))
def test_the_sums_of_all_clients_are_those_of_the_whole(clients):
    """Whoever has which examples: correct answers to the last one, losses but for rounding."""
    found = by_client(clients)

    whole = added([sums for _, sums in NETWORK.score(THETA)])
    parts = added([found.measure(THETA, client) for client in found.plan.clients])
    assert parts["accuracy"] == whole["accuracy"]
    assert parts["loss"][0] == pytest.approx(whole["loss"][0], rel=1e-5)
    assert parts["loss"][1] == whole["loss"][1] == COUNT


def test_nobodys_examples_are_no_clients():
    """Those whose owner the data does not know."""
    found = by_client([-1] * 30 + [4] * 100)

    assert found.plan.clients == (4,)
    assert found.measure(THETA, 4)["loss"][1] == 100


def test_a_client_that_is_tuned_by_no_step_has_the_global_model():
    """To the bit."""
    found = by_client([0] * 60 + [1] * 70, FineTune(steps=0, learning_rate=0.1))

    np.testing.assert_array_equal(found.tuned(THETA, 1), THETA)
    assert found.measure(found.tuned(THETA, 1), 1) == found.measure(THETA, 1)


def test_a_client_learns_from_its_own_examples_alone():
    """Its own loss falls; who else there is makes no difference, and the model that came is not written to."""
    tuning, before = FineTune(steps=30, learning_rate=0.05), THETA.copy()
    alone, beside = by_client([-1] * 60 + [1] * 70, tuning), by_client([0] * 60 + [1] * 70, tuning)
    own = beside.tuned(THETA, 1)

    np.testing.assert_array_equal(own, alone.tuned(THETA, 1))
    np.testing.assert_array_equal(THETA, before)
    assert beside.measure(own, 1)["loss"][0] < beside.measure(THETA, 1)["loss"][0]
    assert not np.array_equal(own, beside.tuned(THETA, 0))


def test_a_client_with_fewer_examples_than_a_batch_learns_from_all_of_them():
    """A step is the gradient of all that it has."""
    found = by_client([0] * 126 + [1] * 4, FineTune(steps=1, learning_rate=0.1))
    gradient, _ = NETWORK.gradient(THETA, np.arange(126, 130), 0, HELD_OUT)

    np.testing.assert_allclose(found.tuned(THETA, 1), THETA - np.float32(0.1) * gradient, atol=1e-6)


def test_a_client_without_training_examples_is_not_tuned():
    """There is nothing to learn from."""
    found = by_client([0] * 130, FineTune(steps=3, learning_rate=0.1))

    assert found.tuned(THETA, 7) is None
