"""Who trains on what: clients on workers, clients held out, and those with too few examples."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_text import plan_text

import edgebed
from edgebed.core.errors import ScenarioError
from edgebed.learning.data_sets.examples import Examples
from edgebed.planning.division import Division, divide, hold_out, used_of
from edgebed.planning.planning import PlannedTraining, plan_trials
from edgebed.reports.plan.description import describe_plan
from edgebed.scenario.choices import HeldOut, Split
from edgebed.scenario.load import load_scenario
from edgebed.scenario.schema import TaskSection

SCENARIO: dict[str, Any] = {
    "name": "people",
    "seed": 3,
    "task": {"data": "people:people", "model": "small", "batch_size": 8, "split": "by-client"},
    "method": "fedavg",
    "fleet": {"edge": {"count": 3}},
    "stop": {"updates": 30},
}


def plan(*sets: str) -> PlannedTraining:
    """The scenario, planned with `--set` options."""
    (planned,) = plan_trials(load_scenario(SCENARIO, sets))
    return planned


def data_of(sizes: list[int], seed: int) -> edgebed.DataSet:
    """Clients with so many training examples each, in any order; three of each are for testing."""
    rng = np.random.default_rng(seed)
    ids = rng.permutation(np.repeat([f"c{k:02d}" for k in range(len(sizes))], sizes))
    tested = np.repeat([f"c{k:02d}" for k in range(len(sizes))], 3)
    return edgebed.DataSet(
        train=(rng.random((len(ids), 2)), rng.integers(0, 2, len(ids)), ids),
        test=(rng.random((len(tested), 2)), rng.integers(0, 2, len(tested)), tested),
        name="made",
    )


def divided(data: edgebed.DataSet, workers: int, seed: int, fraction: float = 1.0, least: int = 1) -> Division:
    """The division by client among so many workers."""
    task = TaskSection.model_construct(fraction=fraction, split=Split("by-client"), min_examples=least)
    labels = data.train.targets[""]
    return divide(task, data, labels, used_of(data, fraction, seed), [f"edge-{k}" for k in range(workers)], seed)


SIZES = st.lists(st.integers(1, 30), min_size=2, max_size=25)


@given(sizes=SIZES, seed=st.integers(0, 2**32), held=st.integers(0, 10), least=st.integers(1, 12), data=st.data())
def test_every_example_of_a_client_that_takes_part_is_on_one_worker_and_none_of_others(sizes, seed, held, least, data):
    """Whole clients, each on one worker; what is held out is in the test set with its client, and on no worker."""
    whole = data_of(sizes, seed)
    used, held_out = hold_out(whole, HeldOut(min(held, len(sizes) - 1)), seed)
    clients = used.train.clients
    enough = [number for number in np.unique(clients) if (clients == number).sum() >= least]
    if not enough:
        assert divided(used, 1, seed, least=least).parts == {}
        return
    division = divided(used, data.draw(st.integers(1, len(enough))), seed, least=least)
    owners = {worker: set(clients[part].tolist()) for worker, part in division.parts.items()}
    together = np.concatenate(list(division.parts.values()))

    assert np.array_equal(np.sort(together), np.flatnonzero(np.isin(clients, enough)))
    assert len(together) == len(np.unique(together))
    assert sum(map(len, owners.values())) == len(set.union(*owners.values())) == len(enough)
    assert all(owners.values())
    assert all((np.diff(part) > 0).all() for part in division.parts.values())
    assert not set(held_out) & set(clients.tolist())
    assert {*division.clients_left_out} | {*enough} | {*held_out} == set(range(len(sizes)))
    for number in range(len(sizes)):
        expected = 3 + (sizes[number] if number in held_out else 0)
        assert (used.test.clients == number).sum() == expected


@given(sizes=SIZES, seed=st.integers(0, 2**32), data=st.data())
def test_workers_have_about_as_many_examples(sizes, seed, data):
    """Without its smallest client, which came last, no worker has more than the one that has fewest."""
    made = data_of(sizes, seed)
    parts = divided(made, data.draw(st.integers(1, len(sizes))), seed).parts.values()
    smallest = [np.unique(made.train.clients[part], return_counts=True)[1].min() for part in parts]

    assert all(len(part) - last <= min(map(len, parts)) for part, last in zip(parts, smallest, strict=True))


def test_who_is_on_which_worker_hangs_on_the_seed():
    """The same seed gives the same, another one another; variants of the same task share the data."""
    first, again, other = plan(), plan(), plan("seed=4")

    assert [node.clients for node in first.plan.workers()] == [node.clients for node in again.plan.workers()]
    assert [node.clients for node in first.plan.workers()] != [node.clients for node in other.plan.workers()]


@given(seed=st.integers(0, 2**32))
def test_to_hold_out_more_holds_out_the_same_and_others(seed):
    """So that results with more of them can be compared."""
    data = data_of([5] * 12, 0)
    few, more = (set(hold_out(data, HeldOut(count), seed)[1]) for count in (3, 7))

    assert (len(few), len(more)) == (3, 7)
    assert few < more


def test_a_fraction_is_drawn_within_each_client_and_leaves_one_example_at_least():
    """Whatever the split: a method that pools everybody sees the same examples."""
    data = data_of([1, 2, 40], 0)
    by_client = np.concatenate(list(divided(data, 2, 7, fraction=0.25).parts.values()))
    task = TaskSection.model_construct(fraction=0.25, split=Split(), min_examples=1)
    pooled = divide(task, data, data.train.targets[""], used_of(data, 0.25, 7), ["edge-0"], 7).parts["edge-0"]

    assert np.bincount(data.train.clients[by_client]).tolist() == [1, 1, 10]
    assert np.array_equal(np.sort(by_client), pooled)


def test_names_of_clients_may_be_numbers():
    """As a list in YAML has them."""
    data = edgebed.DataSet(
        train=(np.zeros((4, 1)), np.zeros(4, int), np.array([11, 7, 7, 40])), test=(np.zeros((1, 1)), np.zeros(1, int))
    )
    kept, held_out = hold_out(data, HeldOut(names=("7",)), 1)

    assert held_out == (0,)
    assert kept.train.clients.tolist() == [1, 2]
    assert kept.test.clients.tolist() == [-1, 0, 0]  # of the data's own test set nobody says whose it is


def test_validation_examples_of_those_held_out_are_tested_with():
    """Nothing that training is steered by is theirs."""
    planned = plan("task.data={name: people:people, validation: true}", "task.held_out=[p7, p1]")
    data, held_out = planned.data, planned.plan.evaluator.held_out

    assert [planned.plan.client_names[each] for each in held_out] == ["p1", "p7"]
    assert not np.isin(data.validation.clients, held_out).any()
    assert np.isin(data.test.clients, held_out).sum() == 2 * 4 + (2 + 34) + 2 * 2
    assert planned.plan.evaluator.num_examples == len(data.test)


def test_workers_are_told_whose_examples_they_have():
    """By number, with a split by client alone."""
    planned = plan("task.min_examples=3")

    assert sorted(each for node in planned.plan.workers() for each in node.clients) == [2, 3, 4, 5, 6, 7]
    assert planned.clients_left_out == (0, 1)
    assert {node.clients for node in plan("task.split=iid").plan.workers()} == {()}


def test_a_worker_with_too_few_examples_is_no_node_and_its_faults_do_not_happen():
    """All others count as the fleet: a round waits for them alone."""
    sets = ("task.data=digits", "task.split={dirichlet: 0.05}", "fleet.edge.count=12", "task.min_examples=100")
    planned = plan(*sets, "faults=[{kill: edge, at: 1s}]")
    names = [node.node for node in planned.plan.workers()]

    assert set(names) | set(planned.workers_left_out) == {f"edge-{k}" for k in range(12)}
    assert planned.workers_left_out
    assert min(node.num_examples for node in planned.plan.workers()) >= 100
    assert {node.num_workers for node in planned.plan.workers()} == {len(names)}
    assert {fault.node for fault in planned.plan.faults} == set(names)
    assert any(warning.startswith("faults of edge-") for warning in planned.warnings)


def test_everybody_counts_once_in_what_a_push_stands_for():
    """A round of averaged models goes through all data once, whatever each has."""
    planned = plan()

    assert planned.plan.server.epochs_a_push * len(planned.plan.workers()) == pytest.approx(1.0)


def test_examples_travel_with_their_clients():
    """So that the evaluator can measure by client."""
    planned = plan("task.held_out=2")
    for part in (planned.data.test, planned.examples(planned.plan.workers()[0])):
        assert np.array_equal(Examples.of_named(part.named("test"), "test").clients, part.clients)


def test_all_may_not_be_held_out():
    """Also where the data names more clients than train."""
    data = data_of([3, 3], 0)
    with pytest.raises(ScenarioError, match="hold out fewer"):
        hold_out(data, HeldOut(names=("c00", "c01")), 1)


def test_a_plan_says_who_is_where_who_is_held_out_and_who_is_left_out():
    """Names, numbers and examples; without clients not a word of them."""
    planned = plan("task.held_out=[p7]", "task.min_examples=3", "task.fraction=0.9")
    lines = plan_text(describe_plan(planned)).splitlines()
    left_out = plan("task.data=digits", "task.split={dirichlet: 0.05}", "fleet.edge.count=12", "task.min_examples=100")
    count = len(left_out.workers_left_out)

    assert "  Clients: 4, 1 to 2 on a worker; examples of each: 4 to 18, median 9" in lines
    assert "  Left out by task.min_examples: 3 clients (p0, p1, p2)" in lines
    assert "  Held out of training: 1 client (p7); 38 of the 66 examples of the test set are theirs" in lines
    assert any(line.startswith("edge-0 ") and "p" in line for line in lines)
    assert f"; {count} workers left out by task.min_examples" in plan_text(describe_plan(left_out))
    assert "lient" not in plan_text(describe_plan(left_out))


def test_a_plan_warns_where_no_worker_has_a_whole_mini_batch():
    """Not where some have none, as is usual with people."""
    (warning,) = (each for each in describe_plan(plan("task.batch_size=100")).warnings if "batch_size" in each)

    assert (
        warning == "task.batch_size: each mini-batch is all that a worker has: no more than 34 examples, and not 100."
    )
    assert not [each for each in describe_plan(plan()).warnings if "batch_size" in each]
