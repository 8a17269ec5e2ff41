"""A small fleet: six parameters, a server, an evaluator, a few workers."""

from collections.abc import Callable
from typing import Any

import pytest

from edgebed.algorithms.registry import PRESETS
from edgebed.roles.events import Effect, Journal, Received, Send
from edgebed.roles.records import Record
from edgebed.scenario.plan import Method, NodePlan, Part, Plan, Task, TensorLayout
from edgebed.wire.messages import AnyMessage

TASK = Task(
    model="small",
    input_shape=(1, 8, 8),
    classes=10,
    layout=(TensorLayout("w", (2, 2)), TensorLayout("b", (2,))),
    batch_size=4,
    gradient_time_s=0.01,
)


def preset(name: str) -> Method:
    """A preset as the plan has it."""
    parts = {
        kind: Part(name=part["name"], settings={key: value for key, value in part.items() if key != "name"})
        for kind, part in PRESETS[name].items()
    }
    return Method(name=name, **parts)


def plan_node(node: str, role: str, **fields: Any) -> NodePlan:
    """A node of the fleet."""
    given = {"device_class": role, "seed": 1, "task": TASK, "method": preset("asgd"), "num_examples": 10} | fields
    return NodePlan(node=node, role=role, **given)


@pytest.fixture(scope="session")
def make_node() -> Callable[..., NodePlan]:
    """`make_node(name, role, **fields)`."""
    return plan_node


@pytest.fixture(scope="session")
def make_plan() -> Callable[..., Plan]:
    """`make_plan(num_workers, **fields)`: a trial with workers edge-0, edge-1 and so on."""

    def make(num_workers: int = 2, **fields: Any) -> Plan:
        nodes = (
            plan_node("server", "server", stop_updates=fields.get("stop_updates")),
            plan_node("evaluator", "evaluator", evaluate_every_updates=2),
            *(plan_node(f"edge-{k}", "worker") for k in range(num_workers)),
        )
        return Plan(scenario="test", trial="asgd", question="", seed=1, nodes=nodes, **fields)

    return make


@pytest.fixture(scope="session")
def received() -> Callable[..., Received]:
    """`received(message, frames, peer)`: the event that a message arrived, from its sender's connection."""

    def receive(message: AnyMessage, frames: Any = (), peer: str = "") -> Received:
        return Received(peer or message.sender, message, frames, 100)

    return receive


@pytest.fixture(scope="session")
def sent() -> Callable[..., list[tuple[str, AnyMessage]]]:
    """`sent(effects)`: (to, message) of each message among them."""

    def select(effects: list[Effect]) -> list[tuple[str, AnyMessage]]:
        return [(effect.to, effect.message) for effect in effects if isinstance(effect, Send)]

    return select


@pytest.fixture(scope="session")
def journalled() -> Callable[..., list[Record]]:
    """`journalled(effects)`: the records among them."""

    def select(effects: list[Effect]) -> list[Record]:
        return [effect.record for effect in effects if isinstance(effect, Journal)]

    return select
