"""The work of all nodes of a trial, done with one network that holds all the data."""

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from edgebed.core.errors import InfrastructureError, OwnCodeError
from edgebed.core.imports import reason
from edgebed.learning.beginning import Beginning
from edgebed.learning.client_network import ClientNetwork
from edgebed.learning.network import Network
from edgebed.planning.node_plans import EVALUATOR
from edgebed.planning.planning import PlannedTraining
from edgebed.roles.work import Job, JobRunner, Steps, Work
from edgebed.runtimes.node_building import work_of


def jobs_of(planned: PlannedTraining, beginning: Beginning, device: str = "cpu") -> Callable[[str, Job], Steps]:
    """Return a function that does any node's job: one network has all the data, a node's part is looked up in it.

    Torch computes on `device`.
    """
    data, plan = planned.data, planned.plan
    works: dict[str, JobRunner] = {}
    constants = beginning.constants(plan.node(EVALUATOR))
    trained = Network(plan.nodes[0].task, data.train, constants, device)
    tested = Network(plan.nodes[0].task, planned.measured, constants, device)

    class Part:
        """The network as one node sees it."""

        def __init__(self, part: NDArray[np.int64]) -> None:
            self.part = part

        def gradient(
            self, theta: NDArray[np.float32], batch: NDArray[np.int64], key: int
        ) -> tuple[NDArray[np.float32], float]:
            return trained.gradient(theta, self.part[batch], key)

    def make(name: str) -> JobRunner:
        node = plan.node(name)

        def network() -> Network | Part:
            return tested if node.role == "evaluator" else Part(planned.parts[name])

        def clients(_: Network | Part) -> ClientNetwork:
            assert planned.clients is not None
            found = planned.clients
            return ClientNetwork(tested, found.plan, node.seed, found.measured, found.own)

        examples = functools.partial(planned.examples, node)
        work = work_of(node, examples, beginning.constants(node), network, clients, device=device)
        assert work is not None, f"{name} has no work"
        return work

    def run_job(node: str, job: Job) -> Steps:
        try:
            if node not in works:
                works[node] = make(node)
            work = works[node]
            return (yield from work.steps(job)) if isinstance(work, Work) else work.run(job)
        except OwnCodeError as error:
            raise error.on(node) from error
        except (Exception, SystemExit) as error:
            raise InfrastructureError(f"{node} failed in its work: {reason(error)}") from error

    return run_job
