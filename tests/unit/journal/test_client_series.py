"""What was measured client by client, as arrays, and what is told of it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core.measures.clients import of_clients, place_of
from edgebed.core.measures.task import TaskMeasure
from edgebed.core.records import Clients
from edgebed.journal.columns.clients import client_evaluations, spread_of

MORE = TaskMeasure(name="accuracy", unit="share", better="more")
LESS = TaskMeasure(name="loss")
VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=60)


@given(VALUES)
def test_what_is_told_of_clients_lies_between_the_worst_and_the_best(values):
    """Whichever direction is better; and the worst of one is the best of the other."""
    found, turned = spread_of(np.array(values), MORE), spread_of(np.array(values), LESS)

    assert min(values) <= found.worst_decile <= found.mean + 1e-12 <= found.best_decile + 2e-12 <= max(values) + 3e-12
    assert (turned.worst_decile, turned.best_decile) == (found.best_decile, found.worst_decile)
    assert found.clients == len(values)


def test_a_decile_is_a_tenth_of_the_clients_and_one_at_least():
    """Of twenty the two worst, of four the worst alone; clients without a value do not count."""
    assert spread_of(np.arange(20) / 20, MORE).worst_decile == pytest.approx(0.025)
    assert spread_of(np.array([0.5, 0.9, 0.7, 0.8]), MORE).worst_decile == 0.5
    assert spread_of(np.array([math.nan, 0.4, 0.6]), MORE).clients == 2
    assert spread_of(np.array([math.nan]), MORE) is None


def test_lines_of_a_version_are_put_together():
    """Many clients take several lines; the later of two about the same holds, and lost versions have none."""
    told = [
        Clients(version=10, clients=(0, 1), measured={"accuracy": (0.1, 0.2)}),
        Clients(version=10, clients=(2,), measured={"accuracy": (0.3,)}, tuned={"accuracy": (0.9,)}),
        Clients(version=20, clients=(0, 1, 2), measured={"accuracy": (0.4, 0.5, 0.6)}),
        Clients(version=20, clients=(1,), measured={"accuracy": (0.7,)}),
        Clients(version=30, clients=(0, 1, 2), measured={"accuracy": (0.0, 0.0, 0.0)}),
    ]
    found = client_evaluations(told, [10, 20])

    assert (found.version.tolist(), found.clients.tolist()) == ([10, 20], [0, 1, 2])
    assert found.measured["accuracy"].tolist() == [[0.1, 0.2, 0.3], [0.4, 0.7, 0.6]]
    assert found.last("accuracy").tolist() == [0.4, 0.7, 0.6]
    assert np.isnan(found.tuned["accuracy"][:, :2]).all()
    assert len(client_evaluations(told, [])) == 0


def test_every_number_over_clients_has_its_place():
    """Its name says whose it is, which statistic, and of which measure."""
    assert place_of("tuned_client_worst_decile_accuracy", [MORE]) == ("tuned", "worst_decile", "accuracy")
    assert place_of("client_mean_perplexity", [MORE]) is None
    assert all(place_of(name, [MORE, LESS]) for name in of_clients([MORE, LESS]))
