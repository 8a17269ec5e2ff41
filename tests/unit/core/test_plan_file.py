"""A plan as it is recorded: small, whole, and refused where it is none."""

import math
import re
from typing import Any

import msgspec
import pytest
from node_plans import PLANS, plan_of_role
from tasks import one_array

from edgebed.core.plan import Method, Part, Plan, ProgramsPlan, Shard, Task, TrainingNode, TrainingPlan
from edgebed.core.planned.fault import AtMeasure, FaultPlan, FaultStep, Injection, PointTrigger, Trigger
from edgebed.core.planned.link import LinkChange, LinkPlan
from edgebed.core.planned.plan_file import dump_plan, load_plan
from edgebed.core.planned.program import Ends, OutputMeasure, Program, ProgramPlan, Ready

TASK = Task(model="-", inputs=one_array((1,)), outputs=10, layout=(), batch_size=1, gradient_time_s=0.01)
METHOD = Method(name="-", parts={"aggregation": Part(name="-", settings={"alpha": [1, 2.5]})})
TRACED = LinkPlan(changes=tuple(LinkChange(at_s=float(k), uplink_bit_s=k + 1) for k in range(100)), period_s=100.0)


def node(role: str, name: str = "", device_class: str = "", **fields: Any) -> TrainingNode:
    """A node's plan."""
    fields = {"task": TASK, "method": METHOD, "seed": 1} | fields
    return plan_of_role(role=role, node=name or role, device_class=device_class or role, **fields)


def plan_of(*nodes: TrainingNode) -> TrainingPlan:
    """A plan of these nodes."""
    return TrainingPlan(scenario="s", trial="t", question="?", seed=1, nodes=nodes, stop_updates=7)


def edge(k: int, **fields: Any) -> TrainingNode:
    """One of many workers with a recorded link each."""
    own = {"num_examples": 600 + k, "label_counts": tuple(range(60, 70)), "link": TRACED} | fields
    return node("worker", f"edge-{k}", "edge", **own)


def again(plan: Plan) -> Plan:
    """What is read of it."""
    return load_plan(msgspec.json.decode(dump_plan(plan)))


def test_whatever_a_node_has_of_its_own_is_read_again():
    """Inside of structs, too, and in classes that differ in what is common to the others."""
    other = msgspec.structs.replace(TASK, batch_size=2)
    plan = plan_of(
        *map(node, PLANS),
        edge(0),
        edge(1, link=msgspec.structs.replace(TRACED, offset_s=math.pi), host="b"),
        edge(2, link=LinkPlan(), points=(PointTrigger(fault=1, trigger=Trigger(point="after-pull")),)),
        edge(3, task=other),
        node("worker", "odd-0", "odd", task=other, seed=2, shard=Shard(first=1, costs=(("a", 0.5),))),
        node("worker", "odd-1", "odd", shard=Shard(first=2, above="odd-0")),
        node("worker", "odd-2", "odd"),
        node("worker", "server-0", "server", trace=True),
    )

    assert again(plan) == plan


def test_a_node_takes_a_line_and_shares_what_its_class_has():
    """With task, method and trace of the link written once."""
    plan = plan_of(
        node("server"),
        node("evaluator"),
        *(edge(k, link=msgspec.structs.replace(TRACED, offset_s=k / 7)) for k in range(50)),
    )
    written = dump_plan(plan)
    lines = written.partition(b'"nodes": [')[2].splitlines()

    assert [written.count(part) for part in (b'"layout"', b'"aggregation"', b'"at_s": 99.0')] == [1, 1, 1]
    assert len(lines) == 52 + 3
    assert max(map(len, lines)) <= 150
    server, _, first, *others = again(plan).nodes
    for worker in (first, *others):
        assert worker.task is server.task
        assert worker.method is server.method
        assert worker.link.changes is first.link.changes


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"common": None}, "Expected `object`, got `null` - at `$.common`"),
        ({"nodes": []}, "it has 0 nodes that are server, not one"),
        ({"nodes": [["server", 0]]}, "it has 0 nodes that are evaluator, not one"),
        ({"nodes": [["server", 0], ["server", 1]]}, "2 nodes are called server"),
        ({"nodes": [["server", 0], ["edge-0", 0], ["evaluator", 1]]}, "it has 2 nodes that are server, not one"),
        ({"nodes": [{"role": "server"}]}, "Expected `array`, got `object`"),
        ({"nodes": [["server", 2]]}, "server is of class 2, of 2"),
        ({"nodes": [["server", -1]]}, "server is of class -1, of 2"),
        ({"nodes": [["server", 0, {"speed": 1}]]}, "unknown field `speed`"),
        ({"nodes": [["server", 0, {"link": {"loss": "all"}}]]}, "Expected `float`, got `str`"),
        ({"classes": [{"role": "queen"}]}, "Invalid value 'queen'"),
    ],
)
def test_what_is_no_plan_is_refused(change, problem):
    """With what is wrong in it."""
    written = msgspec.json.decode(dump_plan(plan_of(node("server"), node("evaluator"))))

    with pytest.raises(msgspec.ValidationError, match=re.escape(problem)):
        load_plan(written | change)


def program(k: int, **fields: Any) -> ProgramPlan:
    """One of many nodes that run a program."""
    own = {"run": ("python", "train.py"), "environment": {"THREADS": "1"}, "link": TRACED} | fields
    return ProgramPlan(node=f"home-{k}", device_class="home", seed=1, index=k, rank=k, **own)


def programs(*nodes: ProgramPlan, **fields: Any) -> ProgramsPlan:
    """A plan of nodes that run a program."""
    measured = Program(ends=Ends(kind="class", of="home"), measures=(OutputMeasure(name="loss", pattern="(x)"),))
    return ProgramsPlan(scenario="s", trial="program", question="?", seed=1, nodes=nodes, program=measured, **fields)


def test_a_plan_of_programs_is_read_again_and_takes_a_line_for_each_node():
    """With ranks and the places in a trace alone written for each."""
    trigger = Trigger(at_measure=AtMeasure(measure="loss", value=0.5, comparison="<="))
    step = FaultStep(after_s=0.0, injection=Injection(node="home-1", action="kill"))
    plan = programs(
        program(0, ready=Ready(port=8000), after=("home",)),
        *(program(k, link=msgspec.structs.replace(TRACED, offset_s=k / 7)) for k in range(1, 50)),
        faults=(FaultPlan(name="kill-1", node="home-1", trigger=trigger, steps=(step,)),),
        on_failure="restart-all",
        expectations=(("final_loss", "<=", 0.3), ("exit_code", "==", 0.0)),
    )
    lines = dump_plan(plan).partition(b'"nodes": [')[2].splitlines()

    assert again(plan) == plan
    assert len(lines) == 50 + 3
    assert max(map(len, lines)) <= 150


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"nodes": []}, "it has no nodes"),
        ({"nodes": [["home-0", 0], ["home-0", 0]]}, "2 nodes are called home-0"),
        ({"nodes": [["home-0", 0], ["home-1", 0]]}, "home-1 has rank 0, and is at place 1"),
        ({"nodes": [["home-0", 0, {"task": {}}]]}, "unknown field `task`"),
        ({"classes": [{"role": "worker"}]}, "Invalid value 'worker'"),
        ({"program": {"ends": {"kind": "last"}}}, "Invalid enum value 'last'"),
        (
            {"expectations": [["best_accuracy", ">=", 1]]},
            "it expects something of 'best_accuracy', which is no measure",
        ),
    ],
)
def test_what_is_no_plan_of_programs_is_refused(change, problem):
    """With what is wrong in it."""
    written = msgspec.json.decode(dump_plan(programs(program(0))))

    with pytest.raises(msgspec.ValidationError, match=re.escape(problem)):
        load_plan(written | change)
