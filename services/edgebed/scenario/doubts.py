"""What may surprise in a plan, before it runs: what cannot be learnt or reached, and settings without effect."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import psutil

from edgebed.emulation.means import has_cgroups
from edgebed.observe.quantities import bytes_text, count_text
from edgebed.runtimes import Emulation, Runtime
from edgebed.scenario.fault_doubts import fault_doubts, fault_means_doubts
from edgebed.scenario.link_doubts import link_doubts, pace_doubts
from edgebed.scenario.memory import Need, mib_text, tight_caps, tight_text
from edgebed.scenario.plan import Plan, Waiting
from edgebed.scenario.schema import TaskSection
from edgebed.scenario.units import format_duration, format_memory

MANY_CONTAINERS = 100  # each has a process and, in most of them, torch of its own


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


def warnings_of(
    plan: Plan, runtime: Runtime, host: Host, needs: Mapping[str, Need], emulation: Emulation = "auto"
) -> Iterator[str]:
    """A sentence for each thing that may surprise when `plan` runs in `runtime` on `host`.

    `needs` is what each node needs of memory, where that matters: in containers. `emulation` says what holds links and
    caps in processes.
    """
    yield from _doubts(plan)
    yield from link_doubts(plan)
    yield from fault_doubts(plan)
    yield from _kept_doubts(plan, host)
    if runtime == "simulation":
        if any(node.memory_bytes for node in plan.nodes):
            yield "memory caps have no effect in the simulation."
        return
    yield from _live_warnings(plan, runtime, host)
    yield from pace_doubts(plan, runtime, emulation)
    yield from fault_means_doubts(plan, runtime, emulation)
    if runtime == "process" and not has_cgroups(emulation):
        yield from _process_warnings(plan)
    if runtime == "docker":
        yield from _container_warnings(plan, host, needs)


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


def _kept_doubts(plan: Plan, host: Host) -> Iterator[str]:
    """What is kept by batch, an epoch's activations of each kind, against caps and machine."""
    kept = [(node, node.shard.kept_bytes) for node in plan.nodes if node.shard and node.shard.kept_bytes]
    total = sum(size for _, size in kept)
    how = "Use a smaller task.fraction or width, other cuts, or match: step."
    for node, size in kept:
        if node.memory_bytes is not None and size > node.memory_bytes:
            cap = format_memory(node.memory_bytes)
            yield f"{node.node} may keep {mib_text(size)} by batch, above its memory cap of {cap}. {how}"
    if total > host.memory_bytes:
        have = bytes_text(host.memory_bytes)
        yield f"nodes may keep {mib_text(total)} by batch together, but this machine has {have}. {how}"


def _live_warnings(plan: Plan, runtime: Runtime, host: Host) -> Iterator[str]:
    """Caps beyond the machine, and settings without effect where time is real."""
    cpus = sum(node.cpus or 0.0 for node in plan.nodes)
    memory_bytes = sum(node.memory_bytes or 0 for node in plan.nodes)
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
    if any(node.compute_speed > 1.0 for node in plan.workers()):
        yield f"a compute speed above 1 has no effect in the {runtime} runtime: no node is faster than the machine."
    task, fields = plan.nodes[0].task, TaskSection.model_fields
    if task.gradient_time_s != fields["gradient_time"].default:
        yield f"task.gradient_time has no effect in the {runtime} runtime: gradients take the time they take."
    if task.compression_time_s != fields["compression_time"].default:
        yield f"task.compression_time has no effect in the {runtime} runtime: compression takes the time it takes."


def _process_warnings(plan: Plan) -> Iterator[str]:
    """What is not held, or not as one may think, in processes without cgroups."""
    if any(node.memory_bytes for node in plan.nodes):
        yield "memory caps are not enforced in the process runtime without root."
    if any(node.cpus is not None for node in plan.nodes):
        yield (
            "CPU caps are paced in the process runtime without root: workers and the evaluator stretch their own work; "
            "the server's cap and caps above 1 have no effect."
        )


def _container_warnings(plan: Plan, host: Host, needs: Mapping[str, Need]) -> Iterator[str]:
    """More than this machine can hold in containers, and caps that a node will not live under."""
    capped_bytes = sum(node.memory_bytes or 0 for node in plan.nodes)
    free = [node for node in plan.nodes if node.memory_bytes is None]
    free_bytes = sum(needs[node.node].bytes for node in free)
    if capped_bytes <= host.memory_bytes < capped_bytes + free_bytes:
        beside = f" beside the memory caps of {format_memory(capped_bytes)}" if capped_bytes else ""
        yield (
            f"the {count_text(len(free), 'node')} without a memory cap need {mib_text(free_bytes)} together{beside}, "
            f"but this machine has {bytes_text(host.memory_bytes)}."
        )
    for node, need in tight_caps(plan, needs):
        yield f"memory cap of {node.device_class}: {tight_text(node, need)}; the kernel may kill it."
    if len(plan.nodes) > MANY_CONTAINERS:
        yield (
            f"{len(plan.nodes)} containers are many: the docker runtime is meant for up to {MANY_CONTAINERS} nodes. "
            "Use the process runtime or the simulation for more."
        )


def _long_pause_s(waiting: Waiting) -> float:
    """A pause that is to be expected: the longest one, or where there is none the mean."""
    return waiting.mean_s if waiting.distribution == "exponential" else max(waiting.low_s, waiting.high_s)
