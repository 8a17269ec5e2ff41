"""The device that a node is: it does the heart's jobs at its own speed, within caps that faults may change."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from edgebed.core.plan import NodePlan
from edgebed.roles.events import Compute
from edgebed.roles.work import Job, JobRunner
from edgebed.runtimes.device_time import computing_s, job_time_s
from edgebed.runtimes.live.filling import NO_CAP
from edgebed.runtimes.live.shell.times import Times


class DeviceJobs:
    """The time that a node's jobs take on its device, and by how much they took longer on this machine."""

    def __init__(self, plan: NodePlan) -> None:
        self.plan = plan
        self.is_asked = plan.core is not None
        self.device_s = 0.0
        self.late_s = 0.0
        self.last = (0.0, 0.0, 1.0)
        """The last job: its seconds on the device without a cap, those it took, and the share of a core it had."""

    def did(self, job: Job, took_s: float, cpus: float | None) -> None:
        """Count a job that took so long with that cap; none of which the plan says no time, as copying a state."""
        whole_s = job_time_s(self.plan, job) if self.is_asked else 0.0
        if whole_s > 0.0:
            self._count((whole_s, took_s, min(1.0, cpus or 1.0)))

    def cap(self, cpus: float | None) -> None:
        """The kernel has another cap, which the last job may have met: the node hears of it only afterwards."""
        whole_s, took_s, share = self.last
        if min(1.0, cpus or 1.0) < share:
            self._count(self.last, -1.0)
            self._count((whole_s, took_s, min(1.0, cpus or 1.0)))

    def _count(self, job: tuple[float, float, float], sign: float = 1.0) -> None:
        whole_s, took_s, share = self.last = job
        self.device_s += sign * whole_s / share
        self.late_s += sign * max(0.0, took_s - whole_s / share)

    def account(self) -> dict[str, float]:
        """The fields of `Usage` about them; none where the plan says no device."""
        if not self.is_asked:
            return {}
        return {"device_s": round(self.device_s, 6), "device_late_s": round(max(0.0, self.late_s), 6)}


class NodeDevice:
    """A node's share of the machine, and how a worker spends its time on it."""

    def __init__(
        self,
        plan: NodePlan,
        runner: JobRunner | None = None,
        *,
        paces_cpus: bool = False,
        fill_memory: Callable[[], str] = lambda: NO_CAP,
    ) -> None:
        """`runner` does the jobs; None: there are none. `paces_cpus`: nothing else holds the CPU cap here.

        `fill_memory` fills memory until the process is killed; if that is impossible, it returns why.
        """
        self.plan = plan
        self.runner = runner
        self.paces_cpus = paces_cpus
        self.fill_memory = fill_memory
        self.cpus = plan.cpus
        """CPU cap in cores that holds now; None: no cap."""
        self.times = Times()
        self.jobs = DeviceJobs(plan)

    @property
    def pace(self) -> float:
        """Share of the machine's speed that the node may use; its work is stretched by the inverse."""
        return (min(1.0, self.cpus or 1.0) if self.paces_cpus else 1.0) * min(1.0, self.plan.compute_speed)

    def cap(self, cpus: float | None) -> None:
        """Change the CPU cap; None: back to the plan's."""
        self.cpus = self.plan.cpus if cpus is None else cpus
        self.jobs.cap(self.cpus)

    def compute(
        self,
        effect: Compute,
        now: Callable[[], float],
        meanwhile: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> tuple[Any, float]:
        """Do a job, while `meanwhile` is entered; return its result, and the seconds until the node may have it."""
        assert self.runner is not None
        started_s, started_cpu_s = time.perf_counter(), time.thread_time()
        with meanwhile():
            result = self.runner.run(effect.job)
        took_s, cpu_s = time.perf_counter() - started_s, time.thread_time() - started_cpu_s
        self.times.computed(result, now())
        self.jobs.did(effect.job, took_s, self.cpus)
        # waiting for a core is no work: only what was computed is stretched, and the wait counts as part of the stretch
        least_s = max(cpu_s / self.pace, computing_s(self.plan, effect.job, self.cpus) if self.plan.core else 0.0)
        stretch_s = max(0.0, least_s - took_s) if least_s > cpu_s else 0.0
        self.times.absorbed_s += max(0.0, min(took_s, least_s) - cpu_s)
        return result, stretch_s + effect.pause_s
