"""The heart of the controller of programs: what holds of every trial, and what is done in single cases."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from staged_programs import Life, StagedPrograms, node

from edgebed.core import records
from edgebed.core.plan import ProgramsPlan
from edgebed.core.planned.fault import AtMeasure, FaultPlan, FaultStep, Injection, Trigger
from edgebed.core.planned.program import Ends, Program, Ready

ALL = Ends()
PORT = Ready(port=8000)
SEEDS = st.integers(0, 1 << 40)
KILLED = Life(lives_s=1e9)


def plan_of(*nodes, ends: Ends = ALL, **fields: Any) -> ProgramsPlan:
    """A trial of these nodes."""
    return ProgramsPlan(
        scenario="s", trial="program", question="", seed=1, nodes=nodes, program=Program(ends=ends), **fields
    )


def fault(name: str, *steps: tuple[float, str], **trigger: Any) -> FaultPlan:
    """A fault of a node: (seconds after its trigger, action)."""
    done = tuple(FaultStep(after_s=s, injection=Injection(node=name, action=action)) for s, action in steps)
    return FaultPlan(name=f"fault of {name}", node=name, trigger=Trigger(**trigger), steps=done)


def homes(count: int = 3, **fields: Any):
    """Nodes of one class."""
    return tuple(node(f"home-{k}", k, **fields) for k in range(count))


def lives(**by_name: Life):
    """What each node does in every life; those that are not named live 5 s and end with 0."""
    return lambda name, _: by_name.get(name.replace("-", "_"), Life())


def states(world: StagedPrograms, name: str) -> list[str]:
    """The states of a node."""
    return [record.state for record in world.all(records.Node) if record.name == name]


# --- laws -----------------------------------------------------------------------------------------------------------


def world_of(seed: int) -> StagedPrograms:
    """A trial of three classes, one after the other or not, with anything that may happen to it."""
    draw = random.Random(seed)
    classes = {"hub": (), "home": draw.choice([(), ("hub",)]), "edge": draw.choice([(), ("home",)])}
    waits = {name: draw.choice([PORT, Ready()]) for name in classes}
    names = [f"{name}-{k}" for name in classes for k in range(draw.randint(int(name != "edge"), 2))]
    nodes = [node(name, rank, after=classes[name[:-2]], ready=waits[name[:-2]]) for rank, name in enumerate(names)]
    table = {
        name: [
            Life(
                lives_s=draw.choice([0.2, 1.0, 7.0, 1e9]),
                code=draw.choice([0, 0, 0, 1, 127, None]),
                ready_s=draw.choice([0.1, 0.5, 0.5, 3.0, None]),
                is_stubborn=draw.random() < 0.3,
            )
            for _ in range(3)
        ]
        for name in names
    }
    steps = (
        [(0.0, "kill")],
        [(0.0, "kill"), (2.0, "launch")],
        [(0.0, "freeze")],
        [(0.0, "freeze"), (1.0, "thaw")],
        [(0.0, "cut"), (1.0, "heal")],
    )
    faults = [
        fault(draw.choice(names), *draw.choice(steps), at_s=draw.choice([0.0, 0.5, 2.0, 6.0]))
        for _ in range(draw.randint(0, 3))
    ]
    plan = plan_of(
        *nodes,
        ends=draw.choice([Ends(), Ends(), Ends(kind="first"), Ends(kind="class", of="hub"), Ends(kind="log", log="x")]),
        faults=tuple(faults),
        on_failure=draw.choice(["ignore", "restart", "restart-all", "restart-all", "stop"]),
        restart_delay_s=draw.choice([0.1, 1.0]),
        silence_s=3.0,
        join_deadline_s=5.0,
        stop_time_s=20.0,
    )
    return StagedPrograms(
        plan,
        lambda name, incarnation: table[name][incarnation % 3],
        lambda: draw.choice([0.0, 0.01, 0.3]),
        draw.choice([None, None, 0.0, 1.0, 4.0]),
    )


@settings(max_examples=300)
@given(SEEDS)
def test_every_trial_ends_once_and_leaves_nothing(seed: int) -> None:
    """Whatever happens in whichever order: it ends once, with every life's end in the journal."""
    world = world_of(seed).run()

    assert not world.alive
    assert len(world.all(records.Ended)) == 1
    assert isinstance(world.journal[-1][1], records.Ended)
    for name, count in world.lives.items():
        exits = [record for record in world.all(records.Exited) if record.name == name]
        assert [record.incarnation for record in exits] == list(range(1, count + 1))
        assert sum(launched == name for _, launched in world.launches) == count
        assert states(world, name).count("started") == count


@settings(max_examples=300)
@given(SEEDS)
def test_no_program_starts_before_those_it_comes_after_are_ready(seed: int) -> None:
    """At the beginning, and whenever all are started anew; a single one that is restarted waits for nobody."""
    world = world_of(seed)
    begun: list[tuple[str, bool]] = []
    start = world.start

    def started(name: str, number: int) -> None:
        awaited = [each.node for each in world.plan.nodes if each.device_class in world.heart.plans[name].after]
        begun.append((name, all(each in world.ready for each in awaited)))
        start(name, number)

    world.start = started
    world.delay = lambda: 0.0  # so that nobody dies between
    world.run()

    firsts = dict(reversed(begun))
    assert all(firsts.values()), begun


@settings(max_examples=300)
@given(SEEDS)
def test_a_trial_is_completed_only_if_no_program_that_decides_has_failed(seed: int) -> None:
    """Where all have ended all decide; an end on purpose, or its consequence, is no failure."""
    world = world_of(seed).run()
    last = {record.name: record for record in world.all(records.Exited)}
    if world.plan.program.ends.kind == "all" and world.ended.reason.startswith("all programs have ended"):
        failed = any(record.is_failure for record in last.values())
        assert world.ended.outcome == ("failed" if failed else "completed")


# --- single cases ---------------------------------------------------------------------------------------------------


def test_exit_codes_are_the_outcome() -> None:
    """All end with 0: completed; one with 3: failed, and the reason names it."""
    assert StagedPrograms(plan_of(*homes())).run().ended == records.Ended(
        outcome="completed", reason="all programs have ended"
    )

    failed = StagedPrograms(plan_of(*homes()), lives(home_1=Life(code=3))).run().ended

    assert failed.outcome == "failed"
    assert failed.reason == "all programs have ended; home-1: exit code 3"


@pytest.mark.parametrize(
    ("ends", "time_s", "outcome"),
    [
        (Ends(), 9.1, "failed"),
        (Ends(kind="first"), 1.1, "completed"),
        (Ends(kind="class", of="hub"), 5.1, "completed"),
        (Ends(kind="class", of="edge-0"), 9.1, "failed"),
    ],
)
def test_what_ends_a_trial(ends: Ends, time_s: float, outcome: str) -> None:
    """All, the first, a class or a node: those decide, and the others are asked to end."""
    nodes = (node("hub-0", 0), node("home-0", 1), node("edge-0", 2))
    of = lives(home_0=Life(lives_s=1.0), edge_0=Life(lives_s=9.0, code=2))
    world = StagedPrograms(plan_of(*nodes, ends=ends), of).run()

    assert world.ended.outcome == outcome
    assert world.now == pytest.approx(time_s, abs=0.1)


def test_a_command_that_cannot_be_begun_fails_the_trial_at_once() -> None:
    """Nobody restarts it: it would end in the same way."""
    of = lives(home_1=Life(lives_s=0.1, code=127))
    world = StagedPrograms(plan_of(*homes(), on_failure="restart"), of).run()

    assert world.ended.outcome == "failed"
    assert world.ended.reason.startswith("home-1: exit code 127")
    assert world.lives["home-1"] == 1


@pytest.mark.parametrize("policy", ["restart", "restart-all"])
def test_a_program_that_ends_at_once_five_times_in_a_row_fails_the_trial(policy: str) -> None:
    """One that lacks a module, say; one whose lives are longer goes on."""
    plan = plan_of(*homes(), on_failure=policy, stop_time_s=300.0)
    loops = StagedPrograms(plan, lives(home_0=Life(lives_s=0.5, code=1), home_1=KILLED, home_2=KILLED)).run()
    longer = StagedPrograms(plan, lives(home_0=Life(lives_s=3.0, code=1), home_1=KILLED, home_2=KILLED)).run()

    assert loops.ended.outcome == "failed"
    assert loops.ended.reason.startswith("home-0: exit code 1")
    assert loops.ended.reason.endswith(", for the 5th time in a row")
    assert longer.ended.reason.startswith("5m have passed")


def test_a_readiness_that_never_comes_fails_the_trial() -> None:
    """The reason has the node, what was waited for, and what to do."""
    nodes = (node("hub-0", 0, ready=PORT), node("home-0", 1, after=("hub",)))
    of = lives(hub_0=Life(lives_s=1e9, ready_s=None))
    world = StagedPrograms(plan_of(*nodes, join_deadline_s=10.0), of).run()

    assert world.ended.outcome == "failed"
    for text in ("hub-0 not ready", "nobody listens on its port 8000", "deadlines.join: 10s", "logs/NODE.log"):
        assert text in world.ended.reason
    assert world.lives == {"hub-0": 1, "home-0": 0}


def test_deaths_after_a_planned_one_are_its_consequence() -> None:
    """Within `silence`; the trial has not failed by them."""
    of = lives(home_0=Life(lives_s=4.0, code=1), home_1=KILLED)
    killed = plan_of(*homes(2), faults=(fault("home-1", (0.0, "kill"), at_s=2.0),), silence_s=3.0)
    world = StagedPrograms(killed, of).run()
    exits = {record.name: record for record in world.all(records.Exited)}

    assert exits["home-1"].asked
    assert exits["home-0"].consequence_of == "home-1"
    assert world.ended.outcome == "completed"
    assert "home-0: exit code 1, a consequence of the end of home-1" in world.ended.reason

    later = StagedPrograms(killed, lives(home_0=Life(lives_s=8.0, code=1), home_1=KILLED)).run()
    assert later.ended.outcome == "failed"


def test_all_are_started_anew_together() -> None:
    """`restart-all`: the death of one ends all; each has one more life, in the order of `after`."""
    nodes = (node("hub-0", 0, ready=PORT), *(node(f"home-{k}", k + 1, after=("hub",)) for k in range(2)))
    plan = plan_of(*nodes, faults=(fault("home-1", (0.0, "kill"), at_s=2.0),), on_failure="restart-all")
    world = StagedPrograms(plan).run()

    assert world.lives == {"hub-0": 2, "home-0": 2, "home-1": 2}
    assert [name for _, name in world.launches] == ["hub-0", "home-0", "home-1"] * 2
    assert world.ended.outcome == "completed"
    done = [(record.action, record.target) for record in world.all(records.Fault) if record.name == "on_failure"]
    assert sorted(done) == sorted([("kill", "hub-0"), ("kill", "home-0"), *(("launch", each.node) for each in nodes)])


def test_all_wait_for_one_that_a_fault_keeps_away() -> None:
    """A kill for 6 s: all begin anew when the fault launches its node, not after the delay."""
    plan = plan_of(
        *homes(2), faults=(fault("home-1", (0.0, "kill"), (6.0, "launch"), at_s=2.0),), on_failure="restart-all"
    )
    world = StagedPrograms(plan).run()

    assert world.lives == {"home-0": 2, "home-1": 2}
    assert [time_s for time_s, _ in world.launches[2:]] == pytest.approx([8.05, 8.05], abs=0.1)


def test_a_program_that_has_ended_in_order_is_not_launched_by_a_fault() -> None:
    """The kill finds nobody, and what would undo it does nothing."""
    plan = plan_of(*homes(2), faults=(fault("home-1", (0.0, "kill"), (1.0, "launch"), at_s=6.0),))
    world = StagedPrograms(plan, lives(home_0=Life(lives_s=9.0))).run()

    assert world.lives == {"home-0": 1, "home-1": 1}
    assert [record.no_op != "" for record in world.all(records.Fault)] == [True, True]


def test_a_fault_comes_when_a_measure_is_reached() -> None:
    """By a line of the node that is meant, once."""
    at = AtMeasure(measure="step", value=2, of="home-0")
    plan = plan_of(*homes(2), faults=(fault("home-1", (0.0, "kill"), at_measure=at),))
    says = tuple((float(k), {"step": float(k)}) for k in range(4))
    world = StagedPrograms(plan, lives(home_0=Life(says=says), home_1=Life(says=says[2:], lives_s=1e9))).run()

    (done,) = world.all(records.Fault)
    assert (done.action, done.target) == ("kill", "home-1")
    assert done.asked_s == pytest.approx(2.05, abs=0.1)


def test_a_program_that_does_not_end_is_killed() -> None:
    """After a grace, when the trial is interrupted; the others have ended in their own way."""
    of = lives(home_0=Life(lives_s=1e9, is_stubborn=True), home_1=KILLED)
    world = StagedPrograms(plan_of(*homes(2)), of, interrupt_s=2.0).run()
    exits = {record.name: record.signal for record in world.all(records.Exited)}

    assert world.ended.outcome == "interrupted"
    assert exits == {"home-0": "SIGKILL", "home-1": "SIGTERM"}
    assert states(world, "home-0")[-1] == "stopped"


def test_a_trial_whose_programs_are_all_frozen_for_good_fails() -> None:
    """It would never end."""
    plan = plan_of(*homes(1), faults=(fault("home-0", (0.0, "freeze"), at_s=1.0),))

    assert StagedPrograms(plan).run().ended.reason == "home-0 frozen, and nothing undoes it"
