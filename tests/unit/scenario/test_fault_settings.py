"""Faults in a scenario: what is read, what is refused and where, what the plan says, and what is doubtful."""

import json

import pytest
from tests.shared.plan_text import plan_text

from edgebed.core.errors import ScenarioError
from edgebed.core.planned.fault import PointTrigger, Trigger
from edgebed.planning.fault_warnings import fault_mechanism_warnings, fault_warnings
from edgebed.planning.link_warnings import check_links
from edgebed.planning.planning import plan_trials
from edgebed.reports.plan.described import as_dict
from edgebed.reports.plan.description import describe_plan
from edgebed.reports.plan.faults import fault_grid, fault_rows, nodes_text, steps_text
from edgebed.scenario.load import resolved_yaml

FAULTY = """\
name: faulty
question: Who lives on?
seed: 3
task: { data: digits, model: small }
method: adacomp
fleet:
  phones: { count: 8, memory: 512MiB, latency: 40ms }
  hub: { count: 2 }
stop: { updates: 1000, time: 60s }
faults:
  - { kill: hub-0, at: 1s }
"""
HUB = "{ kill: hub-0, at: 1s }"
ALL = """\
  - { freeze: { class: phones, fraction: 50% }, at: 20s, for: 10s }
  - { freeze: workers, after: push, probability: 0.004 }
  - { kill: hub-1, during: pull, step: 12, name: in-the-middle }
  - { restart: server, at_update: 500, delay: 2s }
  - { restart: { class: phones, count: 2 }, before: push, delay: 0s }
  - { cut: hub-0, at: 10s, for: 5s }
  - { cut: hub-0, at: 50s }
  - { heal: hub-0, at: 55s }
  - { thaw: workers, at_update: 900 }
  - { flap: hub-1, at: 10s, for: 30s, up: 3s, down: 1s }
  - { link: phones, at: 20s, uplink: 1mbit, downlink: 2mbit, latency: 90ms, jitter: 5ms, for: 10s }
  - { link: server, at: 25s, loss: 0.5% }
  - { cpus: { random: 3 }, at: 20s, to: 0.1, for: 10s }
  - { memory: phones-0, at: 20s }
  - { partition: [[server, phones], [hub]], at: 10s, for: 10s }
  - { churn: 20%, of: phones, at: 5s, for: 50s, absent: 10s }
  - { churn: 3, at: 5s, for: 40s }
on_failure: restart
restart_delay: 3s
detector: oracle
checkpoints: { every: 5s }
"""


@pytest.fixture
def plan(load):
    """The plan of a text with `--set` options."""
    return lambda *sets, text=FAULTY: plan_trials(load(text, *sets))[0].plan


@pytest.mark.parametrize(
    "extra",
    [
        "",
        ALL,
        ALL + "deadlines: { silence: 5s, check: 500ms }\n",
        "variants:\n  none: { faults: [] }\n  b: { faults: [{ freeze: hub, at: 3s, for: 1s }], on_failure: stop }\n",
        "variants:\n  later: { faults: { 0: { at: 9s } } }\n",
    ],
)
def test_the_resolved_form_loads_as_the_same_scenario(load, extra):
    """Every kind with its settings, in words and units again."""
    scenario = load(FAULTY + extra)

    again = load(resolved_yaml(scenario))

    assert scenario.trials == again.trials
    assert resolved_yaml(scenario) == resolved_yaml(again)


def test_the_plan_holds_what_is_done_about_faults_and_each_node_its_part(plan):
    """In base units; the policy is the controller's, silence and checkpoints are the server's."""
    text = FAULTY + ALL + "deadlines: { silence: 5s, check: 500ms }\n"
    told, plain = plan(text=text), plan()
    server, worker = told.node("server"), told.node("phones-1")

    assert (told.on_failure, told.restart_delay_s, told.detector, told.check_s) == ("restart", 3.0, "oracle", 0.5)
    assert (server.silence_s, server.checkpoint_every_updates, server.checkpoint_every_s) == (5.0, None, 5.0)
    assert worker.check_s == 0.5
    assert (plain.on_failure, plain.restart_delay_s, plain.detector, plain.check_s) == ("ignore", 1.0, "network", 1.0)
    server = plain.node("server")
    assert (server.silence_s, server.checkpoint_every_updates, server.checkpoint_every_s) == (60.0, 1000, None)


def test_a_worker_is_told_where_faults_wait_for_it(plan):
    """By their places in the plan, with the trigger; nobody else is."""
    both = "faults=[{kill: hub, at: 1s}, {freeze: hub-1, after: push, step: 3}, {kill: workers, during: pull}]"
    told = plan(both)

    assert told.node("hub-1").points == (
        PointTrigger(fault=2, trigger=Trigger(point="after-push", step=3)),
        PointTrigger(fault=12, trigger=Trigger(point="during-pull")),
    )
    assert told.faults[12].node == "hub-1"
    assert len(told.node("phones-0").points) == 1
    assert not any(hasattr(told.node(name), "points") for name in ("server", "evaluator"))


@pytest.mark.parametrize(
    ("fault", "changeable"),
    [
        ("{ kill: workers, at: 1s }", set()),
        ("{ cpus: hub, at: 1s, to: 0.5 }", set()),
        ("{ cut: hub-1, at: 1s }", {"hub-1"}),
        ("{ heal: server, at: 1s }", {"server"}),
        ("{ flap: hub, at: 1s, for: 3s }", {"hub-0", "hub-1"}),
        ("{ link: hub-0, during: push, uplink: 1mbit }", {"hub-0"}),
        ("{ partition: [[server, phones], [hub]], at: 1s }", {"hub-0", "hub-1"}),
    ],
)
def test_something_has_to_hold_a_link_that_a_fault_cuts_or_changes(plan, fault, changeable):
    """Of no other node."""
    assert {node.node for node in plan(f"faults=[{fault}]").nodes if node.changeable} == changeable


def test_variants_and_options_replace_the_list_or_change_an_entry_of_it(load):
    """By its place, from 0; null takes all away."""
    text = FAULTY + (
        "variants:\n  a: {}\n  b: { faults: [{ freeze: hub-1, at: 2s }, { kill: hub-1, at: 3s }] }\n"
        "  c: { faults: { 0: { kill: hub-1 } } }\n  d: { faults: null }\n"
    )
    sets = ("variants.a.faults.0.at=9s", "variants.b.faults.1.name=last")
    faults = {
        planned.plan.trial: [(fault.name, fault.node, fault.trigger.at_s) for fault in planned.plan.faults]
        for planned in plan_trials(load(text, *sets))
    }

    assert faults == {
        "a": [("kill-1", "hub-0", 9.0)],
        "b": [("freeze-1", "hub-1", 2.0), ("last", "hub-1", 3.0)],
        "c": [("kill-1", "hub-1", 1.0)],
        "d": [],
    }


def test_the_same_seed_gives_the_same_faults_in_every_variant_and_another_seed_others(plan, load):
    """Whom a fault concerns does not hang on the method."""
    text = FAULTY + ALL
    other = plan_trials(load(text + "variants: { a: {}, b: { method: asgd } }\n"))

    assert plan(text=text).faults == other[0].plan.faults == other[1].plan.faults
    assert plan("seed=4", text=text).faults != other[0].plan.faults


def test_packets_cannot_be_lost_by_a_fault_either_where_nothing_can_lose_them(load):
    """At the key that asks for it."""
    scenario = load(FAULTY.replace(HUB, "{ link: hub, at: 1s, loss: 1% }"))
    planned = plan_trials(scenario)

    with pytest.raises(ScenarioError, match=r"^s\.yaml:11:32: faults\.0\.loss: packets cannot be lost here: the link"):
        check_links(scenario, planned, "simulation")


# --- what the plan shows ---------------------------------------------------------------------------------------------


def test_every_fault_is_shown_with_when_what_and_whom(plan):
    """Nodes of one entry together, and those by chance with the number to be expected."""
    text = FAULTY.replace(f"  - {HUB}\n", ALL)
    grid = fault_grid(list(fault_rows(plan(text=text))))
    shown = {row[0]: row[1:] for row in grid.rows}

    assert grid.head == ("fault", "when", "what", "nodes")
    assert len(grid.rows) == 17
    assert shown["freeze-2"] == ("after-push, 0.4 % of them", "freeze", "phones-0..7, hub-0..1; about 4 in all")
    assert shown["in-the-middle"] == ("during-pull 12", "kill", "hub-1")
    assert shown["restart-4"] == ("at update 500", "kill, launch after 2s", "server")
    assert shown["restart-5"] == ("first before-push", "kill, launch", "phones-0..1")
    assert shown["cut-6"] == ("at 10s", "cut, heal after 5s", "hub-0")
    assert shown["link-11"][1] == (
        "link uplink 1mbit, downlink 2mbit, latency 90ms, jitter 5ms, link as planned after 10s"
    )
    assert shown["cpus-13"][1] == "cpus 0.1, cpus as planned after 10s"
    assert shown["flap-10"][1] == "cut, heal after 1s, cut after 4s, heal after 5s, ..., 16 steps in 29s"
    assert shown["partition-15"][2] == "hub-0..1"
    assert shown["freeze-1"][2].count("phones-") >= 1


def test_the_text_and_the_json_of_a_plan_have_the_faults(load):
    """The same facts for people and for programs: there every moment has its row."""
    (planned,) = plan_trials(load(FAULTY + ALL))
    description = describe_plan(planned, runtime="simulation")
    text, rows = plan_text(description), json.loads(json.dumps(as_dict(description)))["faults"]

    assert "When a node has failed: it is restarted after 3s, and the server is told at once." in text
    assert all(any(line.startswith(f"{row['name']} ") for line in text.splitlines()) for row in rows)
    assert sum(len(row["nodes"]) for row in rows) == len(planned.plan.faults)
    assert {
        "name": "kill-1",
        "when": "at 1s",
        "what": "kill",
        "nodes": ["hub-0"],
        "peers": [],
        "expected": None,
        "every_s": None,
    } in rows
    assert [row["expected"] for row in rows if row["name"] == "freeze-3"] == [4.0]


def test_a_plan_without_faults_says_nothing_of_them(load):
    """A line that is always there is not read."""
    (planned,) = plan_trials(load(FAULTY.replace(f"faults:\n  - {HUB}\n", "")))

    assert "failed" not in plan_text(describe_plan(planned, runtime="simulation"))


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("{ kill: workers, after: push, probability: 0.001 }", 1.0),
        ("{ kill: workers, after: push, probability: 0.5 }", 10.0),
        ("{ restart: workers, after: push, probability: 0.5 }", 500.0),
        ("{ freeze: workers, after: push, probability: 0.5, for: 1s }", 500.0),
        ("{ freeze: hub, after: push, probability: 0.005 }", 1.0),
        ("{ freeze: hub, after: push }", None),
    ],
)
def test_what_is_to_be_expected_by_chance_is_pushes_times_probability(plan, entry, expected):
    """Of 1,000 updates by ten workers; what ends a worker's part happens to each once at most."""
    assert sum(row.expected or 0.0 for row in fault_rows(plan(f"faults=[{entry}]"))) == pytest.approx(expected or 0.0)


def test_without_a_number_of_updates_nothing_is_to_be_expected(plan):
    """How many there will be is not known."""
    entry = "faults=[{ kill: workers, after: push, probability: 0.001 }]"

    assert [row.expected for row in fault_rows(plan(entry, "stop.updates=null"))] == [None]


def test_many_moments_and_many_nodes_are_shown_in_short(plan):
    """The first and the last of the moments; some of the nodes, and how many there are."""
    rows = list(fault_rows(plan("faults=[{churn: 30, at: 5s, for: 40s, absent: 2s}]")))
    ((_, when, what, whom),) = fault_grid(rows).rows

    assert when.startswith(f"{rows[0].when} ... ")
    assert when.endswith(f"{rows[-1].when.removeprefix('at ')}, 20 times")
    assert what == "kill, launch after 2s"
    assert len(rows) == 20
    assert "phones-" in whom


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        (["a-0", "a-1", "a-2"], "a-0..2"),
        (["a-0", "a-2", "b-1", "b-2"], "a-0, a-2, b-1..2"),
        (["a-1", "b-2"], "a-1, b-2"),
        (["server"], "server"),
        (["a-b-0", "a-b-1"], "a-b-0..1"),
        ([f"a-{2 * k}" for k in range(7)], "a-0, a-2, a-4, a-6, a-8 and others, 7 nodes"),
        ([f"a-{2 * k}" for k in range(6)], "a-0, a-2, a-4, a-6, a-8, a-10"),
    ],
)
def test_neighbours_are_joined(nodes, text):
    """In the order that they are given."""
    assert nodes_text(nodes) == text


def test_steps_have_their_times(plan):
    """Those at once have none."""
    (fault,) = plan("faults=[{restart: hub-0, at: 1s, delay: 0s}]").faults

    assert steps_text(fault.steps) == "kill, launch"


# --- doubts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("faults", "doubt"),
    [
        ("{ restart: server, at_update: 900 }", "restart-1 comes at update 900, before the first checkpoint (every"),
        ("{ kill: server, at: 5s }", "kill-1 kills the server, and nothing starts it anew: the trial ends there."),
        (
            "{ cut: workers, at: 5s }",
            "After cut-1 no worker is left, and nothing brings one back: the trial ends there.",
        ),
        (
            "{ link: hub, at: 5s, uplink: 1mbit, for: 5s }, { link: hub-0, at: 9s, uplink: 2mbit }",
            "link-1 and link-2 overlap at 1 node, e.g. hub-0: what ends first sets its link back to what is planned",
        ),
        (
            "{ cpus: hub, at: 5s, to: 0.1, for: 5s }, { cpus: workers, at: 5s, to: 0.2, for: 9s }",
            "cpus-1 and cpus-2 overlap at 2 nodes, e.g. hub-0: what ends first sets its CPU cap back to what is plan",
        ),
    ],
)
def test_what_may_surprise_is_said_once(plan, faults, doubt):
    """However many nodes it concerns."""
    (found,) = fault_warnings(plan(f"faults=[{faults}]"))

    assert found.startswith(doubt)


@pytest.mark.parametrize(
    "faults",
    [
        "{ kill: hub-0, at: 59s }",
        "{ kill: hub-0, at_update: 999 }",
        "{ restart: server, at: 5s }",
        "{ freeze: hub, at: 5s, for: 9s }, { freeze: hub, at: 9s, for: 9s }",
        "{ link: hub, at: 5s, uplink: 1mbit, for: 5s }, { link: hub-0, at: 10s, uplink: 2mbit }",
        "{ link: hub, at: 5s, uplink: 1mbit }, { link: hub, at: 9s, uplink: 2mbit }",
        "{ link: hub-0, at: 5s, uplink: 1mbit, for: 9s }, { link: hub-1, at: 6s, uplink: 2mbit, for: 9s }",
        "{ link: hub, at: 5s, uplink: 1mbit, for: 9s }, { cpus: hub, at: 6s, to: 1 }",
    ],
)
def test_what_is_sound_is_not_doubted(plan, faults):
    """Nor is a node that two faults freeze: it goes on after both."""
    assert list(fault_warnings(plan(f"faults=[{faults}]"))) == []


def test_a_killed_server_that_is_started_anew_is_not_doubted(plan):
    """The policy does it."""
    assert list(fault_warnings(plan("faults=[{ kill: server, at: 5s }]", "on_failure=restart"))) == []


FREEZE_TO_UPDATE = "{ freeze: hub, at: 5s }, { thaw: hub, at_update: 900 }"


@pytest.mark.parametrize(
    ("faults", "options", "doubts"),
    [
        (
            FREEZE_TO_UPDATE,
            ["on_failure=restart"],
            ["freeze-1 is ended by thaw-2 at an update that may come late: hub-0 counts as dead when it has been sil"],
        ),
        (
            FREEZE_TO_UPDATE,
            ["on_failure=restart"],
            ["(2s), and on_failure: restart starts it anew. Give freeze-1 a for"],
        ),
        (FREEZE_TO_UPDATE, ["on_failure=stop", "deadlines.check=9s"], ["(18s), and on_failure: stop ends the trial"]),
        (FREEZE_TO_UPDATE, ["on_failure=ignore"], []),
        ("{ freeze: hub, at: 5s }, { thaw: hub, at: 30s }", ["on_failure=restart"], []),
        ("{ freeze: hub, at: 5s, for: 30s }, { thaw: hub, at_update: 900 }", ["on_failure=restart"], []),
        ("{ freeze: hub, at: 5s }", ["on_failure=restart"], []),
    ],
)
def test_a_freeze_that_is_taken_for_a_death_before_it_ends_is_doubted(plan, faults, options, doubts):
    """Only where its end cannot be known: with a `for`, or a thaw at a time, it is no death."""
    found = list(fault_warnings(plan(f"faults=[{faults}]", *options)))

    assert len(found) == len(doubts)
    assert all(doubt in text for doubt, text in zip(doubts, found, strict=True))


def test_memory_needs_something_that_caps_it(plan):
    """In processes that is the kernel, for root; the simulation and containers have it."""
    told = plan("faults=[{ memory: phones, at: 5s }]")

    assert len(list(fault_mechanism_warnings(told, "process", "model"))) == 1
    assert list(fault_mechanism_warnings(told, "process", "kernel")) == []
    assert list(fault_mechanism_warnings(told, "simulation", "auto")) == []
    assert list(fault_mechanism_warnings(plan(), "process", "model")) == []
