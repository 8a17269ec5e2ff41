"""Plans of nodes, and what data sockets need."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import zmq
from node_plans import plan_of_role

from edgebed.core.plan import TrainingNode


@pytest.fixture(scope="session")
def make_node() -> Callable[..., TrainingNode]:
    """`make_node(name, role, **fields)`: a node that trains nothing."""

    def make(node: str = "edge-0", role: str = "worker", **fields: Any) -> TrainingNode:
        return plan_of_role(node=node, role=role, **{"num_examples": 10} | fields)

    return make


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    """Whose sockets are closed afterwards."""
    made: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    yield made
    made.destroy(linger=0)
