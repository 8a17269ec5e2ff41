"""Whom a fault concerns: by name, by class, or drawn by the seed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkChange
from edgebed.scenario.faults.settings.targets import Group, Some, nodes_of

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
    ("two", "pairs"),
    [
        (["hub-1", "phones-2"], [("phones-2", "hub-1")]),
        (["server", "hub"], [("hub-0", "server"), ("hub-1", "server")]),
        (["hub", "phones-0"], [("phones-0", "hub-0"), ("phones-0", "hub-1")]),
    ],
)
def test_between_two_is_each_of_the_first_with_each_of_the_second(resolve, two, pairs):
    """The same whichever is named first; the fault is that of a node of a class, which may have points."""
    for named in (two, two[::-1]):
        faults = resolve({"flap": {"between": named}, "before": "push", "for": "2s"})

        assert sorted((fault.node, fault.steps[0].injection.peer) for fault in faults) == sorted(pairs)
        assert all({each.injection.peer for each in fault.steps} < set(WORKERS) | {"server"} for fault in faults)
        assert {fault.trigger.point for fault in faults} == {"before-push"}


def test_a_link_between_two_has_the_rate_at_which_each_may_send_to_the_other(resolve):
    """And is as planned after its time."""
    (fault,) = resolve({"link": {"between": ["server", "hub-0"]}, "rate": "1mbit", "at": "2s", "for": "3s"})
    begin, end = (each.injection for each in fault.steps)

    assert (begin.node, begin.peer, begin.action, begin.change) == (
        "hub-0",
        "server",
        "link",
        LinkChange(uplink_bit_s=10**6),
    )
    assert (end.node, end.peer, end.change, fault.steps[1].after_s) == ("hub-0", "server", None, 3.0)
    assert begin.at("server") == Injection(node="server", peer="hub-0", action="link", change=begin.change)
