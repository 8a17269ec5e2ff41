"""The devices of all nodes in virtual time: how long work takes on each, and the processes that really do it."""

import numpy as np

from edgebed.algorithms.registry import vectors_of
from edgebed.core import chance
from edgebed.core.plan import TrainingNode, TrainingPlan
from edgebed.emulation.model.cpu_quota import PERIOD_S, CpuQuota
from edgebed.roles.events import Compute
from edgebed.roles.server.due_models import room_for
from edgebed.roles.work import GradientJob, Job
from edgebed.runtimes.device_time import job_time_s
from edgebed.runtimes.simulation.arena import Arena
from edgebed.runtimes.simulation.pool import BATCH, IN_FLIGHT, Pool, Run
from edgebed.runtimes.simulation.simulated_node import PendingResult


class SimulatedDevices:
    """The nodes' speeds and caps, and their work under way."""

    def __init__(self, plan: TrainingPlan, theta: np.ndarray, run_job: Run, processes: int) -> None:
        """`theta` is a model of the trial; `run_job` does a node's job, here or in a forked process."""
        # each worker holds a model and an update; the evaluator, the server's last answer and its checkpoint a model;
        # children of the pool may hold both for cancelled work; others wait for the evaluator
        slots = 2 * len(plan.nodes) + 8 + 2 * IN_FLIGHT * BATCH * processes + room_for(theta.nbytes)
        self.arena = Arena(len(vectors_of(plan.nodes[0].method)) * len(theta), slots)
        self.pool = Pool(run_job, processes, self.arena)
        self.plans = {node.node: node for node in plan.nodes}
        self.quotas = {node.node: CpuQuota(node.cpus, _phase_s(node)) for node in plan.nodes}

    def cap(self, node: str, cpus: float | None) -> None:
        """Change a CPU cap; None: back to the plan's."""
        self.quotas[node].cpus = self.plans[node].cpus if cpus is None else cpus

    def submit(self, node: str, effect: Compute, now: float) -> tuple[float, PendingResult]:
        """Begin a node's work; return when it will be done, and its result to be."""
        plan = self.plans[node]
        exchange_s = plan.task.exchange_time_s if isinstance(effect.job, GradientJob) else 0.0
        due_s = self._done_s(plan, effect.job, now) + effect.pause_s + exchange_s
        return due_s, PendingResult(self.pool.submit(node, effect.job, due_s))

    def _done_s(self, plan: TrainingNode, job: Job, now: float) -> float:
        """As live: a node waits for its speed, and for a device's cap; a cap on this machine's core is the kernel's."""
        quota = self.quotas[plan.node]
        if plan.core:
            return now + job_time_s(plan, job, quota.cpus)
        work_s = job_time_s(plan, job)
        return max(quota.done_s(now, work_s * min(1.0, plan.compute_speed)), now + work_s)


def _phase_s(node: TrainingNode) -> float:
    return -PERIOD_S * chance.uniform(node.seed, "CPU cap", node.node)
