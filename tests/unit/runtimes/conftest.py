"""Plans of nodes, and what data sockets need."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import zmq
from node_plans import plan_of_role

from edgebed.core.plan import Method, NodePlan, Part, Task


@pytest.fixture(scope="session")
def make_node() -> Callable[..., NodePlan]:
    """`make_node(name, role, **fields)`: a node that trains nothing."""
    task = Task(model="-", input_shape=(1,), classes=2, layout=(), batch_size=1, gradient_time_s=0.01)
    part = Part(name="-")
    parts = {"aggregation": part, "compression": part, "local_work": Part(name="gradient-step")}
    method = Method(name="-", parts=parts)

    def make(node: str = "edge-0", role: str = "worker", **fields: Any) -> NodePlan:
        given = {"device_class": role, "seed": 1, "num_examples": 10} | fields
        return plan_of_role(node=node, role=role, task=task, method=method, **given)

    return make


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    """Whose sockets are closed afterwards."""
    made: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    yield made
    made.destroy(linger=0)
