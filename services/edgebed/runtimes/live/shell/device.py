"""The device that a node is: it does the heart's jobs at its own speed, within caps that faults may change."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from edgebed.core.plan import TrainingNode
from edgebed.emulation.resources import cgroup_usage
from edgebed.roles.events import Compute
from edgebed.roles.work import Job, JobRunner
from edgebed.runtimes.device_time import computing_s, job_time_s
from edgebed.runtimes.live.shell.times import Times

STEP_BYTES = 8 << 20
NO_CAP = "its memory cannot be filled: the kernel holds no cap of it"
SHARE_MAX = 4
"""Memory to take at most, as a multiple of the cap: a kernel that grants so much does not hold the cap."""


class DeviceJobs:
    """The CPU time that a node's jobs take on its device, by how much they took more here, and how long they waited.

    In CPU time: a cap holds back whatever else a node does as well. What a job waits for by itself takes none.
    """

    def __init__(self, plan: TrainingNode) -> None:
        self.plan = plan
        self.is_asked = plan.core is not None
        self.device_s = 0.0
        self.late_s = 0.0
        self.waits_s = 0.0
        self.count = 0

    def did(self, job: Job, cpu_s: float, took_s: float, cpus: float | None = None) -> None:
        """Count a job that took so much CPU time, and time, at that cap in cores; none of which the plan says no time.

        E.g. copying a state.
        """
        device_s = job_time_s(self.plan, job) if self.is_asked else 0.0
        if device_s > 0.0:
            self.device_s += device_s
            self.late_s += max(0.0, cpu_s - device_s)
            self.waits_s += max(0.0, took_s - max(cpu_s, device_s) / min(1.0, cpus or 1.0))
            self.count += 1

    def account(self) -> dict[str, float]:
        """The fields of `Usage` about them; none where the plan says no device."""
        if not self.is_asked:
            return {}
        times = {"device_s": self.device_s, "device_late_s": self.late_s, "device_waits_s": self.waits_s}
        return {"device_jobs": self.count} | {name: round(each_s, 6) for name, each_s in times.items()}


class NodeDevice:
    """A node's share of the machine, and how a worker spends its time on it."""

    def __init__(
        self,
        plan: TrainingNode,
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

    def compute(
        self,
        effect: Compute,
        now: Callable[[], float],
        meanwhile: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> tuple[Any, float]:
        """Do a job, while `meanwhile` is entered; return its result, and the seconds until the node may have it."""
        assert self.runner is not None
        started_s, started_cpu_s, all_threads_s = time.perf_counter(), time.thread_time(), time.process_time()
        with meanwhile():
            result = self.runner.run(effect.job)
        took_s, cpu_s = time.perf_counter() - started_s, time.thread_time() - started_cpu_s
        self.times.computed(result, now())
        self.jobs.did(effect.job, time.process_time() - all_threads_s, took_s, self.cpus)
        # waiting for a core is no work: only what was computed is stretched, and the wait counts as part of the stretch
        least_s = max(cpu_s / self.pace, computing_s(self.plan, effect.job, self.cpus) if self.plan.core else 0.0)
        stretch_s = max(0.0, least_s - took_s) if least_s > cpu_s else 0.0
        self.times.absorbed_s += max(0.0, min(took_s, least_s) - cpu_s)
        return result, stretch_s + effect.pause_s


def fill_memory() -> str:
    """Take memory until this process is killed, as by a leak; return why not. Its cgroup must be its own."""
    limit = cgroup_usage().memory_limit_bytes
    if limit is None:
        return NO_CAP
    taken: list[bytes] = []
    while len(taken) * STEP_BYTES < SHARE_MAX * limit:
        taken.append(b"\1" * STEP_BYTES)  # written, else the kernel would only promise it
    return f"its memory was filled with {SHARE_MAX} times its cap, and the kernel let it"
