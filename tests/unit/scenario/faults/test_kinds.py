"""What each kind of fault comes to: whom it concerns, what is done, and when."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from edgebed.core.planned.fault import FaultPlan, FaultStep, Injection, Trigger
from edgebed.core.planned.link import LinkChange
from edgebed.core.units import format_duration
from edgebed.scenario.faults.flap import SHORTEST_S
from edgebed.scenario.faults.registry import KINDS
from edgebed.scenario.faults.settings.targets import Group

SERVER_AND = {"server": Group("server", ("server",)), "evaluator": Group("evaluator", ("evaluator",))}
MS = st.integers(1, 120_000).map(lambda ms: ms / 1000)
ENTRIES = (
    {"kill": "hub-0", "at": "1s"},
    {"freeze": "hub-0", "at": "1s", "for": "2s"},
    {"thaw": "hub-0", "at": "4s"},
    {"restart": "hub-0", "at": "1s", "delay": "3s"},
    {"cut": "hub-0", "at": "1s", "for": "2s"},
    {"heal": "hub-0", "at": "4s"},
    {"flap": "hub-0", "at": "1s", "for": "5s", "up": "3s", "down": "1s"},
    {"link": "hub-0", "at": "1s", "uplink": "1mbit", "for": "2s"},
    {"cpus": "hub-0", "at": "1s", "to": 0.1, "for": "2s"},
    {"memory": "phones-0", "at": "1s"},
    {"partition": [["server", "phones"], ["hub"]], "at": "1s", "for": "2s"},
    {"churn": 6, "of": "phones", "at": "1s", "for": "60s", "absent": "3s"},
)


ROUNDING = 1e-6
"""What sums of milliseconds may be off by."""
EDGES = SERVER_AND | {"edge": Group("worker", tuple(f"edge-{k}" for k in range(4)), memory_capped=True, latency_s=0.04)}
"""What examples are about; one may ask for anything that a node can have."""


def entry_of(kind: str) -> dict[str, Any]:
    """The example that a kind gives of itself."""
    return YAML(typ="safe", pure=True).load(KINDS[kind].example)


def shown(fault: FaultPlan) -> list[tuple[float, str]]:
    """Each step's time and action; all concern the fault's own node."""
    assert {each.injection.node for each in fault.steps} == {fault.node}
    return [(each.after_s, each.injection.action) for each in fault.steps]


@pytest.fixture(scope="module", autouse=True)
def recorded(tmp_path_factory):
    """The file that an example names, in the current folder."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "phones.csv").write_text("device,from_s,until_s\n" + "".join(f"{k},0,9\n" for k in range(4)))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_of_a_kind_is_an_entry_of_it(resolve, kind):
    """As a scenario has it, with nodes called `edge`; docs/scenario.md shows it."""
    entry = entry_of(kind)

    assert kind in entry
    assert resolve(entry, roster=EDGES)


@pytest.mark.parametrize(
    ("entry", "steps"),
    [
        (ENTRIES[0], [(0.0, "kill")]),
        (ENTRIES[1], [(0.0, "freeze"), (2.0, "thaw")]),
        ({"freeze": "hub-0", "at": "1s"}, [(0.0, "freeze")]),
        (ENTRIES[2], [(0.0, "thaw")]),
        (ENTRIES[3], [(0.0, "kill"), (3.0, "launch")]),
        ({"restart": "server", "at_update": 7}, [(0.0, "kill"), (1.0, "launch")]),
        (ENTRIES[4], [(0.0, "cut"), (2.0, "heal")]),
        ({"cut": "server", "at": "1s"}, [(0.0, "cut")]),
        (ENTRIES[5], [(0.0, "heal")]),
        (ENTRIES[6], [(0.0, "cut"), (1.0, "heal"), (4.0, "cut"), (5.0, "heal")]),
        (ENTRIES[7], [(0.0, "link"), (2.0, "link")]),
        (ENTRIES[8], [(0.0, "cpus"), (2.0, "cpus")]),
        (ENTRIES[9], [(0.0, "memory")]),
    ],
)
def test_a_kind_becomes_steps_from_its_trigger_on(resolve, entry, steps):
    """One fault for the one node."""
    (fault,) = resolve(entry)

    assert shown(fault) == steps


def test_a_change_of_a_link_or_a_cap_names_the_new_value_and_ends_as_planned(resolve):
    """What is left out stays as it is."""
    link, cpus = resolve(ENTRIES[7], ENTRIES[8])

    assert link.steps == (
        FaultStep(
            after_s=0.0, injection=Injection(node="hub-0", action="link", change=LinkChange(uplink_bit_s=1_000_000))
        ),
        FaultStep(after_s=2.0, injection=Injection(node="hub-0", action="link")),
    )
    assert [each.injection.cpus for each in cpus.steps] == [0.1, None]


@pytest.mark.parametrize(
    ("keys", "trigger"),
    [
        ({"at": "30s"}, Trigger(at_s=30.0)),
        ({"at": "0s"}, Trigger(at_s=0.0)),
        ({"at_update": 500}, Trigger(at_update=500)),
        ({"before": "push"}, Trigger(point="before-push")),
        ({"during": "push", "step": 0}, Trigger(point="during-push", step=0)),
        ({"after": "push", "probability": 0.0004}, Trigger(point="after-push", probability=0.0004)),
        ({"during": "pull", "step": 12}, Trigger(point="during-pull", step=12)),
        ({"after": "pull", "probability": 1.0}, Trigger(point="after-pull", probability=1.0)),
    ],
)
def test_a_trigger_is_a_time_a_number_of_updates_or_one_of_five_points(resolve, keys, trigger):
    """In base units."""
    (fault,) = resolve({"kill": "hub-0"} | keys)

    assert fault.trigger == trigger


def test_an_entry_is_called_by_its_name_or_by_its_kind_and_place(resolve):
    """From 1, as a reader counts."""
    faults = resolve({"kill": "hub-0", "at": "1s"}, {"freeze": "hub", "at": "1s"}, ENTRIES[2] | {"name": "again"})

    assert [(fault.name, fault.node) for fault in faults] == [
        ("kill-1", "hub-0"), ("freeze-2", "hub-0"), ("freeze-2", "hub-1"), ("again", "hub-0"),
    ]  # fmt: skip


@given(duration_s=MS, down_ms=st.integers(250, 20_000), up_ms=st.integers(250, 20_000))
def test_a_link_flaps_by_turns_and_carries_in_the_end(resolve, duration_s, down_ms, up_ms):
    """From the first moment; no cut is longer than asked, nothing happens after the whole."""
    down_s, up_s = down_ms / 1000, up_ms / 1000
    entry = {"flap": "hub-0", "at": "1s", "for": format_duration(duration_s)}
    (fault,) = resolve(entry | {"down": f"{down_ms}ms", "up": f"{up_ms}ms"})
    steps = shown(fault)

    assert steps[0] == (0.0, "cut")
    assert [action for _, action in steps] == ["cut", "heal"] * (len(steps) // 2)
    assert steps[-1][0] <= duration_s
    assert min(down_s, up_s) >= SHORTEST_S
    for (first_s, action), (second_s, _) in pairwise(steps):
        expected_s = down_s if action == "cut" else up_s
        is_cut_short = (second_s, action) == (duration_s, "cut")
        assert second_s - first_s == pytest.approx(expected_s) or (is_cut_short and second_s - first_s <= down_s)
    assert steps[-1][0] + up_s >= duration_s - 1e-9  # the next cut would have been too late


# --- partition -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "cut"),
    [
        ([["server", "phones"], ["hub"]], ["hub-0", "hub-1"]),
        ([["hub", "phones-3"], ["server"]], ["hub-0", "hub-1", "phones-3"]),
        ([["hub-1"], ["phones-0", "server"], ["hub-0"]], ["hub-1", "hub-0"]),
        ([["server"], ["workers"]], [*(f"phones-{k}" for k in range(8)), "hub-0", "hub-1"]),
        ([["server"], ["hub-0", "hub-0"]], ["hub-0"]),
    ],
)
def test_a_partition_cuts_those_who_are_not_with_the_server(resolve, groups, cut):
    """Who is with it, or in no group, is left alone; so is the server, without which all would be cut."""
    faults = resolve({"partition": groups, "at": "1s", "for": "5s"})

    assert [fault.node for fault in faults] == cut
    assert all(shown(fault) == [(0.0, "cut"), (5.0, "heal")] for fault in faults)


# --- churn -----------------------------------------------------------------------------------------------------------


@st.composite
def churns(draw):
    """(entry, size of the class) that can be: somebody is always there to leave."""
    size, duration_s, absent_s = draw(st.integers(2, 40)), draw(st.integers(1, 300)), draw(st.integers(1, 30))
    rate = draw(st.one_of(st.integers(1, 60), st.integers(1, 100).map(lambda share: f"{share}%")))
    a_minute = rate if isinstance(rate, int) else size * int(rate[:-1]) / 100
    leaving = int(a_minute * duration_s / 60 + 0.5)
    if leaving == 0 or -(-absent_s * leaving // duration_s) + 1 > size:
        rate, duration_s, absent_s, a_minute = 1, 60, 1, 1
    entry = {"churn": rate, "of": "edge", "at": "5s", "for": f"{duration_s}s", "absent": f"{absent_s}s"}
    return entry, size, a_minute * duration_s / 60


@given(churn=churns(), seed=st.integers(0, 2**63 - 1))
def test_churn_is_as_much_as_asked_and_everybody_comes_back(resolve, churn, seed):
    """Its number is exact; nobody leaves who is away; each leave has its return, `absent` later."""
    entry, size, expected = churn
    roster = SERVER_AND | {"edge": Group("worker", tuple(f"edge-{k}" for k in range(size)))}
    faults = resolve(entry, seed=seed, roster=roster)
    absent_s, duration_s = float(entry["absent"][:-1]), float(entry["for"][:-1])
    times_s = [fault.trigger.at_s for fault in faults]

    assert abs(len(faults) - expected) <= 0.5 + ROUNDING
    assert times_s == sorted(times_s)
    assert times_s[0] >= 5.0
    assert times_s[-1] <= 5.0 + duration_s
    away_until_s: dict[str, float] = {}
    for fault in faults:
        assert shown(fault) == [(0.0, "kill"), (absent_s, "launch")]
        assert away_until_s.get(fault.node, 0.0) <= fault.trigger.at_s + ROUNDING
        away_until_s[fault.node] = fault.trigger.at_s + absent_s


def test_in_every_part_of_its_time_as_many_leave(resolve):
    """One in each slot: 30 in five minutes are six in each of them."""
    faults = resolve({"churn": 6, "of": "phones", "at": "0s", "for": "5m", "absent": "2s"})
    minutes = [int(fault.trigger.at_s // 60) for fault in faults]

    assert [minutes.count(k) for k in range(5)] == [6] * 5
    assert len({fault.node for fault in faults}) > 4
    gaps_s = [second.trigger.at_s - first.trigger.at_s for first, second in pairwise(faults)]
    assert max(gaps_s) - min(gaps_s) > 1.0  # not by the clock


# --- every kind ------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**63 - 1), kinds=st.lists(st.sampled_from(list(KINDS)), max_size=12))
def test_whatever_is_asked_concerns_nodes_that_there_are_and_is_in_order(resolve, seed, kinds):
    """The first step at once, the others by time; the same again for the same seed."""
    nodes = {node for group in EDGES.values() for node in group.nodes}
    entries = [entry_of(kind) for kind in kinds]
    faults = resolve(*entries, seed=seed, roster=EDGES)

    assert faults == resolve(*entries, seed=seed, roster=EDGES)
    for fault in faults:
        times_s = [time_s for time_s, _ in shown(fault)]
        assert fault.node in nodes
        assert times_s[0] == 0.0
        assert times_s == sorted(times_s)
