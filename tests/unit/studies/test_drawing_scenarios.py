"""Scenarios drawn for `agree --ranks`: always valid, always the same, and varied."""

import collections

import pytest

from edgebed.planning.planning import plan_trials
from edgebed.scenario.load import load_scenario
from edgebed.studies.ranking.drawing import METHODS, SCENARIO_METHODS, Draws, draw_scenario

DRAWN = 60


def test_every_drawn_scenario_can_be_run() -> None:
    """It loads without a mistake, and has a plan for each method."""
    for number in range(0, DRAWN, 3):
        drawn = draw_scenario(5, number)
        scenario = load_scenario(drawn.document, ())
        plans = [planned.plan for planned in plan_trials(scenario)]
        assert len(plans) == SCENARIO_METHODS
        assert {plan.stop_updates for plan in plans} == {drawn.document["stop"]["updates"]}


def test_a_draw_is_always_the_same_and_seeds_differ() -> None:
    """The same number of a seed is the same scenario; another seed or number is another."""
    assert draw_scenario(5, 7) == draw_scenario(5, 7)
    assert len({str(draw_scenario(seed, number).document["fleet"]) for seed in (1, 2) for number in range(1, 6)}) == 10


def test_the_first_is_the_saturated_server() -> None:
    """Whatever the seed: six workers whose whole gradients ask for more than the server's link carries."""
    for seed in (1, 2):
        first = draw_scenario(seed, 0)
        assert first.traits == ("saturated server",)
        assert first.document["server"] == {"uplink": "4mbit", "downlink": "4mbit"}
    assert all("saturated server" not in draw_scenario(1, number).traits for number in range(1, DRAWN))


def test_all_that_can_be_drawn_is() -> None:
    """Every method, every trait and every kind of fault comes up among a hundred."""
    drawn = [draw_scenario(1, number) for number in range(100)]
    methods = collections.Counter(method for each in drawn for method in each.document["variants"])
    traits = collections.Counter(trait for each in drawn for trait in each.traits)
    assert set(methods) == set(METHODS)
    for trait in ("links of workers", "link of the server", "latency", "CPU caps", "slow devices", "two classes"):
        assert traits[trait] > 10
    for fault in ("freeze", "cut", "kill", "link", "cpus", "restart"):
        assert traits[f"fault: {fault}"] > 0


def test_draws_go_by_their_names() -> None:
    """What else is drawn changes none of them; numbers and choices lie where they are asked to."""
    draws = Draws(1, 2)
    first = draws.share("this")
    draws.share("that")
    assert draws.share("this") == first
    assert all(2 <= Draws(1, number).between("x", 2, 8) <= 8 for number in range(50))
    assert {Draws(1, number).one("x", "abc") for number in range(50)} == set("abc")
    picked = [Draws(1, number).weighted("x", {"seldom": 0.1, "often": 0.9}) for number in range(200)]
    assert picked.count("seldom") == pytest.approx(20, abs=15)
    some = Draws(1, 3).some("x", "abcdef", 3)
    assert len(set(some)) == 3
    assert some == sorted(some)
