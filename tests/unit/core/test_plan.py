"""The plan of a node, by its role: what is written, who connects to whom."""

import msgspec
import pytest
from node_plans import FIELDS, PLANS, plan_of_role
from tasks import one_array

from edgebed.core.plan import EvaluatorPlan, Method, Part, Shard, Task, TrainingNode, WorkerPlan

TASK = Task(model="-", inputs=one_array((1,)), outputs=2, layout=(), batch_size=1, gradient_time_s=0.01)
METHOD = Method(name="-", parts={"aggregation": Part(name="-")})


def node(role: str, **fields) -> TrainingNode:
    """A node's plan."""
    return plan_of_role(role=role, node=role, device_class=role, seed=1, task=TASK, method=METHOD, **fields)


@pytest.mark.parametrize("role", PLANS)
def test_a_plan_is_told_apart_by_its_role(role):
    """Which stands first where it is written."""
    written = msgspec.json.encode(node(role))

    assert written.startswith(b'{"role":"%s","node":' % role.encode())
    assert msgspec.json.decode(written, type=TrainingNode) == node(role)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(node(role)), type=TrainingNode) == node(role)


def test_no_field_stands_in_the_plans_of_all_roles_but_for_those_of_every_node():
    """A worker's are not a server's."""
    shared = set.intersection(*(set(plan.__struct_fields__) for plan in PLANS.values()))

    assert shared == {
        "node", "device_class", "host", "seed", "cpus", "memory_bytes", "restart_s", "task", "method", "trace",
        "check_s",
    }  # fmt: skip
    assert {"waiting", "points", "silence_s", "evaluate_every_s"} <= FIELDS - shared


@pytest.mark.parametrize(
    ("plan", "connects_to", "listens", "is_vital", "counts"),
    [
        (node("server"), (), True, True, (True, False)),
        (node("server", shard=Shard()), (), True, True, (True, True)),
        (node("store"), (), True, True, (True, True)),
        (node("modules", shard=Shard()), ("server",), True, True, (True, True)),
        (node("evaluator"), ("server",), False, True, (False, False)),
        (node("worker"), ("server",), False, False, (False, False)),
        (node("worker", shard=Shard(above="b")), ("server", "b"), False, True, (True, True)),
        (node("worker", shard=Shard(below="a", modules="modules")), ("server", "modules"), True, True, (True, True)),
        (node("worker", shard=Shard(below="a", above="c", store="s")), ("server", "s"), False, True, (True, True)),
    ],
)
def test_a_role_decides_who_connects_who_is_vital_and_what_is_counted(plan, connects_to, listens, is_vital, counts):
    """With the node's place among the shards."""
    assert (plan.connects_to, plan.listens, plan.is_vital) == (connects_to, listens, is_vital)
    assert (plan.counts_traffic, plan.counts_messages) == counts


def test_what_only_workers_have_of_their_own_is_the_same_for_all_others():
    """The machine's speed, and a part of the data."""
    assert [plan.compute_speed for plan in map(node, PLANS)] == [1.0] * len(PLANS)
    assert WorkerPlan.__struct_fields__.index("compute_speed")
    assert node("worker", compute_speed=0.5).compute_speed == 0.5
    assert (node("server").num_examples, node("evaluator", num_examples=3).num_examples) == (0, 3)
    assert not EvaluatorPlan.link.shaped
