"""Scenarios drawn for the study of ranks: always valid, always the same, and varied."""

import collections

import numpy as np
import pytest
from tasks import one_array

from edgebed.core.units import parse_duration, parse_rate
from edgebed.learning.models.registry import layout
from edgebed.planning.deadlines import push_time, sizes_of
from edgebed.planning.planning import plan_trials
from edgebed.running.run import Options, plan_checked
from edgebed.scenario.load import load_scenario
from validation.ranking import edges
from validation.ranking.drawn_methods import METHODS, model_bytes
from validation.ranking.draws import Draws
from validation.ranking.estimate import FRAMED, estimated_times
from validation.ranking.generate import SCENARIO_METHODS, draw_scenario

DRAWN = 60
REGIMES = [name for name, *_ in edges.REGIMES]
RUNTIMES = ("simulation", "process")


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


@pytest.mark.slow
def test_every_scenario_at_the_edges_can_be_run() -> None:
    """It passes all checks before a run in the simulation and in processes, and has a plan for each method."""
    for number in range(DRAWN):
        drawn = edges.draw_scenario(5, number)
        scenario = load_scenario(drawn.document, ())
        for runtime in RUNTIMES:
            planned = plan_checked(scenario, Options(runtime=runtime, emulation="auto", trace=False, force=False))
            assert len(planned) == edges.SCENARIO_METHODS
            assert {each.plan.stop_updates for each in planned} == {drawn.document["stop"]["updates"]}


def test_regimes_at_the_edges_take_turns() -> None:
    """By the number, whatever the seed; names and draws are others than those of the usual scenarios."""
    for seed in (1, 2):
        assert [edges.draw_scenario(seed, number).traits[0] for number in range(8)] == 2 * REGIMES
    drawn = edges.draw_scenario(3, 5)
    assert drawn == edges.draw_scenario(3, 5)
    assert drawn.name == drawn.document["name"] == "ranks-3-edges-005"
    assert drawn.document["fleet"] != edges.draw_scenario(4, 5).document["fleet"]


def test_trainings_at_the_edges_take_about_half_a_minute_by_the_estimate() -> None:
    """None is over in a few seconds; of those whose fast workers wait for slow ones it knows too little."""
    drawn = [estimated_times(edges.draw_scenario(5, number).document) for number in range(DRAWN)]
    times = [time_s for each in drawn for name, time_s in each.items() if name not in edges.PACED_BY_SLOWEST]
    assert min(times) > 8
    assert max(times) < 90
    assert np.median(times) == pytest.approx(27, abs=10)


def test_classes_far_apart_are_so_and_the_fast_one_fills_the_servers_link() -> None:
    """Ten to a hundred times, up and down; what the fast devices can send together is more than the server receives."""
    for number in range(0, DRAWN, 4):
        document = edges.draw_scenario(5, number).document
        fast, slow = (document["fleet"][name] for name in ("fast", "slow"))
        for key in ("uplink", "downlink"):
            assert 9.9 < parse_rate(fast[key]) / parse_rate(slow[key]) < 101
        assert fast["count"] * parse_rate(fast["uplink"]) > parse_rate(document["server"]["downlink"])


def test_pushes_near_silence_take_most_of_it() -> None:
    """Half to nine tenths, as planning counts it, of the slow class; at half of its rate the push does not fit."""
    beyond = 0
    for number in range(1, DRAWN, 4):
        document = edges.draw_scenario(5, number).document
        silence_s = parse_duration(document["deadlines"]["silence"])
        for planned in plan_trials(load_scenario(document, ())):
            plan = planned.plan
            slow = next(worker for worker in plan.workers() if worker.device_class == "slow")
            takes = push_time(slow, plan.server, sizes_of(plan))
            assert 0.48 < takes.total_s / silence_s < 0.92
        for fault in document.get("faults", ()):
            rates = parse_rate(document["fleet"]["slow"]["uplink"]), parse_rate(fault["uplink"])
            beyond += takes.total_s + takes.push_s * (rates[0] / rates[1] - 1) > silence_s
            assert parse_duration(fault["for"]) > silence_s
    assert beyond > 0


def test_large_models_are_of_megabytes_and_take_their_time() -> None:
    """1 to 50 MB, as torch counts them, at rates at which they take 0.2 to 5 s in either direction."""
    sizes = {}
    for number in range(2, DRAWN, 4):
        document = edges.draw_scenario(5, number).document
        size = sizes[document["task"]["width"]] = model_bytes(document["task"])
        for key in ("uplink", "downlink"):
            assert 0.199 < 8 * FRAMED * size / parse_rate(document["fleet"]["edge"][key]) < 5
    assert all(1e6 < size < 50e6 for size in sizes.values())
    width = min(sizes)
    tensors = layout("four-layer", one_array((1, 8, 8)), 10, sizes=(("width", width), ("kernel", edges.KERNEL)))
    assert sizes[width] == 4 * sum(tensor.size for tensor in tensors)


def test_workers_come_and_go_and_faults_coincide() -> None:
    """Several leavings of several workers, two faults at the same update of different ones, and both together."""
    kinds = collections.Counter()
    for number in range(3, DRAWN, 4):
        drawn = edges.draw_scenario(5, number)
        faults = drawn.document["faults"]
        at_once = [fault["at_update"] for fault in faults if "at_update" in fault]
        leaves = [fault for fault in faults if "churn" in fault]
        kinds[len(leaves), len(at_once)] += 1
        assert len(set(at_once)) <= 1
        assert ("two faults at once" in drawn.traits) is (len(at_once) == 2)
        assert drawn.document["on_failure"] == "restart"
        if leaves:
            plan = plan_trials(load_scenario(drawn.document, ()))[0].plan
            left = [fault.node for fault in plan.faults if fault.recurs]
            assert len(left) >= 3
            assert len(set(left)) >= 2
    assert set(kinds) == {(1, 0), (0, 2), (1, 2)}
