"""What may surprise in a plan, before it runs: what cannot be learnt or reached, and settings without effect."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import psutil

from edgebed.observe.quantities import bytes_text
from edgebed.scenario.plan import Plan, Waiting
from edgebed.scenario.schema import TaskSection
from edgebed.scenario.units import format_duration, format_memory


@dataclass(frozen=True, kw_only=True)
class Host:
    """What the machine has for a run."""

    cpus: int
    """Cores this process may use."""
    memory_bytes: int

    @classmethod
    def here(cls) -> "Host":
        """This machine."""
        return cls(cpus=len(os.sched_getaffinity(0)), memory_bytes=psutil.virtual_memory().total)


def warnings_of(plan: Plan, runtime: str, host: Host) -> Iterator[str]:
    """A sentence for each thing that may surprise when `plan` runs in `runtime` on `host`."""
    yield from _doubts(plan)
    if runtime == "process":
        yield from _process_warnings(plan, host)
    elif any(node.memory_bytes for node in plan.nodes):
        yield "memory caps have no effect in the simulation."


def _doubts(plan: Plan) -> Iterator[str]:
    """What the scenario itself makes impossible or unlikely, whatever the runtime."""
    if plan.stop_updates is None and plan.stop_time_s is None:
        yield "only an accuracy ends this trial; if it is not reached the trial never ends by itself. Add stop.time."
    labels = np.sum([node.label_counts for node in plan.workers()], axis=0)
    if unseen := int((labels == 0).sum()):
        verb = "is" if unseen == 1 else "are"
        yield f"{unseen} of {len(labels)} labels {verb} with no worker and cannot be learnt. See task.split."
    pause_s = min(_long_pause_s(node.waiting) for node in plan.workers())
    if pause_s > plan.stall_deadline_s:
        yield (
            f"every worker may pause for {format_duration(pause_s)} or more, and a trial without progress for "
            f"{format_duration(plan.stall_deadline_s)} is ended as failed. Raise deadlines.stall."
        )


def _process_warnings(plan: Plan, host: Host) -> Iterator[str]:
    """Caps beyond the machine, and settings without effect in processes."""
    cpus = sum(node.cpus or 0.0 for node in plan.nodes)
    memory_bytes = sum(node.memory_bytes or 0 for node in plan.nodes)
    yield "links are as fast as the machine in the process runtime."
    if cpus > host.cpus:
        yield (
            f"the CPU caps add up to {cpus:g} cores, but this machine has {host.cpus}: "
            "if all are busy at once, nodes are slower than asked."
        )
    if memory_bytes > host.memory_bytes:
        yield (
            f"the memory caps add up to {format_memory(memory_bytes)}, but this machine has "
            f"{bytes_text(host.memory_bytes)}."
        )
    if memory_bytes:
        yield "memory caps are not enforced in the process runtime."
    if any(node.cpus is not None for node in plan.nodes):
        yield (
            "CPU caps are paced in the process runtime: workers and the evaluator stretch their own work; "
            "the server's cap and caps above 1 have no effect."
        )
    if any(node.compute_speed > 1.0 for node in plan.workers()):
        yield "a compute speed above 1 has no effect in the process runtime: no node is faster than the machine."
    if plan.nodes[0].task.gradient_time_s != TaskSection.model_fields["gradient_time"].default:
        yield "task.gradient_time has no effect in the process runtime: gradients take the time they take."


def _long_pause_s(waiting: Waiting) -> float:
    """A pause that is to be expected: the longest one, or where there is none the mean."""
    return waiting.mean_s if waiting.distribution == "exponential" else max(waiting.low_s, waiting.high_s)
