"""Whom a fault concerns: by name, by class, or drawn by the seed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.scenario.faults.targets import Group, Some, nodes_of
from edgebed.scenario.problems import Problems

PHONES = [f"phones-{k}" for k in range(8)]
WORKERS = [*PHONES, "hub-0", "hub-1"]


@pytest.fixture
def killed(resolve):
    """The nodes that a target means."""
    return lambda target, **options: [fault.node for fault in resolve({"kill": target, "at": "1s"}, **options)]


@pytest.mark.parametrize(
    ("target", "nodes"),
    [
        ("phones-3", ["phones-3"]),
        ("server", ["server"]),
        ("evaluator", ["evaluator"]),
        ("hub", ["hub-0", "hub-1"]),
        ("workers", WORKERS),
        ({"class": "hub"}, ["hub-0", "hub-1"]),
        ({"class": "phones", "count": 2}, ["phones-0", "phones-1"]),
        ({"count": 9}, WORKERS[:9]),
        ({"fraction": "100%"}, WORKERS),
        ({"class": "hub", "random": 2}, ["hub-0", "hub-1"]),
    ],
)
def test_a_target_means_these_nodes(killed, target, nodes):
    """In the order of the fleet; `workers` are workers alone."""
    assert killed(target) == nodes


@pytest.mark.parametrize(
    ("share", "number"), [("0.1%", 1), ("14%", 1), ("15%", 2), ("25%", 3), ("50%", 5), ("99%", 10), ("100%", 10)]
)
def test_a_fraction_is_rounded_and_at_least_one(killed, share, number):
    """Of ten workers; half a worker counts as one."""
    assert len(killed({"fraction": share})) == number


@given(seed=st.integers(0, 2**63 - 1), random=st.integers(1, 10))
def test_as_many_are_drawn_as_asked_each_once_and_in_order(resolve, seed, random):
    """Another number draws the same ones first."""
    drawn = [fault.node for fault in resolve({"kill": {"random": random}, "at": "1s"}, seed=seed)]
    fewer = [fault.node for fault in resolve({"kill": {"random": max(1, random - 1)}, "at": "1s"}, seed=seed)]

    assert len(drawn) == random
    assert drawn == [node for node in WORKERS if node in drawn]
    assert set(fewer) <= set(drawn)


def test_the_seed_decides_who_is_drawn_and_each_entry_draws_anew(resolve):
    """Every worker is drawn by some seed, about as often as any other."""
    entry = {"kill": {"random": 3}, "at": "1s"}
    draws = [tuple(fault.node for fault in resolve(entry, entry, seed=seed)) for seed in range(400)]
    times = [sum(node in drawn[:3] for drawn in draws) for node in WORKERS]

    assert sum(drawn[:3] == drawn[3:] for drawn in draws) < 20
    assert min(times) > 120 - 5 * 9.2  # five standard deviations
    assert max(times) < 120 + 5 * 9.2


def test_another_worker_in_the_fleet_changes_the_draw_by_one_at_most(killed, roster):
    """Everyone has a draw of its own."""
    more = roster | {"hub": Group("worker", ("hub-0", "hub-1", "hub-2"))}
    before, after = killed({"random": 4}), killed({"random": 4}, roster=more)

    assert len(set(before) - set(after)) <= 1
    assert set(after) - set(before) <= {"hub-2"}


def test_a_node_comes_before_a_class_of_the_same_name():
    """`{class: ...}` means the class."""
    roster = {"a": Group("worker", ("a-0", "a-1")), "a-1": Group("worker", ("a-1-0", "a-1-1"))}

    assert nodes_of("a-1", roster, lambda node, k: 0.0) == ("a-1",)
    assert nodes_of(Some.model_validate({"class": "a-1"}), roster, lambda node, k: 0.0) == ("a-1-0", "a-1-1")
    assert nodes_of("a-1-1", roster, lambda node, k: 0.0) == ("a-1-1",)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("phones.9", "no node 'phones.9'; class phones has phones-0 to phones-7"),
        ("phones-8", "no node 'phones-8'; class phones has phones-0 to phones-7"),
        ("phones-03", "no node 'phones-03'; class phones has phones-0 to phones-7"),
        ("fone", "no node or class 'fone'; did you mean 'phones'? allowed: phones, hub, workers, server, evaluator"),
        ("controller", "no node or class 'controller'; allowed: phones, hub, workers, server, evaluator"),
        ({"class": "hubs"}, "class: no class 'hubs'; did you mean 'hub'? allowed: phones, hub"),
        ({"class": "server"}, "class: no class 'server'; allowed: phones, hub"),
        ({"class": "hub", "count": 3}, "count: 3 are more than the 2 of class hub"),
        ({"random": 11}, "random: 11 are more than the 10 of all workers together"),
        ({"count": 0}, "count: 0 is below 1"),
        ({"fraction": "0%"}, "fraction: 0% is nobody"),
        ({"fraction": 0.5}, "fraction: not a percentage: 0.5 ("),
        ({"class": "hub", "count": 1, "random": 1}, "random: count and random exclude each other"),
        ({}, "which workers? give class, count, fraction or random; or write workers for all"),
        (
            {"klass": "hub", "count": 1},
            "klass: unknown key; did you mean 'class'? allowed: class, count, fraction, rand",
        ),
        (["hub-0"], "not a node: a list; a node, a class, a host, workers, or e.g. {class: phones, count: 3}"),
        (3, "not a node: 3; a node, a class, a host, workers"),
        ("", "not a node: ''; a node, a class, a host, workers"),
    ],
)
def test_a_target_that_there_is_not_is_named_with_those_there_are(killed, target, message):
    """At the key that is wrong."""
    with pytest.raises(Problems) as caught:
        killed(target)

    assert f"0.kill{'.' if isinstance(target, dict) and ': ' in message[:12] else ': '}{message}" in str(caught.value)
