"""Plans of nodes by the name of their role, for tests that have it as a parameter; a server that knows everybody."""

from typing import Any, get_args

from tasks import one_array

from edgebed.core.plan import Method, Part, Task, TrainingNode
from edgebed.roles.server.parameter_server import ParameterServer

PLANS = {plan.role: plan for plan in get_args(TrainingNode)}
FIELDS = {name for plan in PLANS.values() for name in plan.__struct_fields__}
TASK = Task(model="-", inputs=one_array((1,)), outputs=2, layout=(), batch_size=1, gradient_time_s=0.01)
METHOD = Method(
    name="-",
    parts={
        "aggregation": Part(name="synchronous"),
        "compression": Part(name="none"),
        "local_work": Part(name="gradient-step"),
    },
)
"""What no test looks at that takes them from here."""


def plan_of_role(*, role: str, **fields: Any) -> TrainingNode:
    """The plan of a node with that role; fields that only other roles have are left out, and others may be."""
    fields = {"device_class": role, "seed": 1, "task": TASK, "method": METHOD} | fields
    elsewhere = FIELDS - set(PLANS[role].__struct_fields__)
    plan: TrainingNode = PLANS[role](**{name: value for name, value in fields.items() if name not in elsewhere})
    return plan


def know_all(server: ParameterServer) -> ParameterServer:
    """The server, told of more incarnations of each worker than any test has."""
    server.membership.tell((worker, 1_000) for worker in server.workers)
    return server
