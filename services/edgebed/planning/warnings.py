"""Warnings about a plan, before it runs: what cannot be learnt or reached, and settings without effect."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import psutil

from edgebed.core.plan import GRADIENT_TIME_S, NodePlan, Plan, TrainingPlan
from edgebed.core.quantities import bytes_text, count_text
from edgebed.core.runtimes import TRAITS, Emulation, Runtime
from edgebed.core.units import format_duration, format_memory
from edgebed.emulation.means import lacks_caps
from edgebed.planning.fault_warnings import fault_mechanism_warnings, fault_warnings
from edgebed.planning.link_warnings import link_warnings, pace_warnings
from edgebed.planning.memory import Need, mib_text, tight_caps, tight_text
from edgebed.scenario.schema import TaskSection

MANY_CONTAINERS = 100  # each has a process and, in most of them, torch of its own


@dataclass(frozen=True, kw_only=True)
class HostCapacity:
    """What the machine has for a run."""

    cpus: int
    """Number of cores that this process may use."""
    memory_bytes: int

    name: str = ""
    """Name of the host; empty: this machine."""

    @classmethod
    def here(cls) -> "HostCapacity":
        """The host that this process runs on."""
        return cls(cpus=len(os.sched_getaffinity(0)), memory_bytes=psutil.virtual_memory().total)

    def __str__(self) -> str:
        return f"host {self.name}" if self.name else "this machine"


def capacities(plan: Plan, runtime: Runtime, here: HostCapacity) -> list[tuple[HostCapacity, tuple[NodePlan, ...]]]:
    """The machines that a run is on, with the nodes of each: this one, or in containers the plan's hosts if any.

    A host that says nothing of what it has counts as having as much as this machine.
    """
    if not plan.hosts or not TRAITS[runtime].has_containers:
        return [(here, plan.nodes)]
    return [
        (
            HostCapacity(
                name=host.name, cpus=host.cores or here.cpus, memory_bytes=host.memory_bytes or here.memory_bytes
            ),
            tuple(node for node in plan.nodes if node.host == host.name),
        )
        for host in plan.hosts
    ]


def warnings_of(
    plan: TrainingPlan, runtime: Runtime, host: HostCapacity, needs: Mapping[str, Need], emulation: Emulation = "auto"
) -> Iterator[str]:
    """A sentence for each thing that may surprise when `plan` runs in `runtime` on `host`.

    `needs` is what each node needs of memory, where that matters: in containers. `emulation` says what holds links and
    caps in processes.
    """
    yield from _plan_warnings(plan)
    yield from link_warnings(plan)
    yield from fault_warnings(plan)
    yield from _batch_warnings(plan, host)
    if TRAITS[runtime].is_virtual:
        if any(node.memory_bytes for node in plan.nodes):
            yield "memory caps have no effect in the simulation."
        if plan.security != "plain":
            yield f"security: {plan.security} has no effect in the simulation, which has no sockets."
        return
    machines = capacities(plan, runtime, host)
    for machine, nodes in machines:
        yield from machine_warnings(machine, nodes)
    yield from _live_warnings(plan, runtime)
    yield from pace_warnings(plan, runtime, emulation)
    yield from fault_mechanism_warnings(plan, runtime, emulation)
    if lacks_caps(runtime, emulation):
        yield from _process_warnings(plan)
    if TRAITS[runtime].has_containers:
        yield from _container_warnings(plan, machines, needs)


def _plan_warnings(plan: TrainingPlan) -> Iterator[str]:
    """Warnings about what the scenario itself makes impossible or unlikely, whatever the runtime."""
    if plan.stop_updates is None and plan.stop_time_s is None:
        ends = plan.stop_level.measure if plan.stop_level else "nothing"
        yield f"only {ends} ends this trial; if it is not reached the trial never ends by itself. Add stop.time."
    labels = np.sum([node.label_counts for node in plan.workers()], axis=0)
    if unseen := int((labels == 0).sum()):
        verb = "is" if unseen == 1 else "are"
        yield f"{unseen} of {len(labels)} labels {verb} with no worker and cannot be learnt. See task.split."
    batch_size, most = plan.nodes[0].task.batch_size, max(node.num_examples for node in plan.workers())
    if most < batch_size:
        have = count_text(most, "example")
        yield f"task.batch_size: each mini-batch is all that a worker has: no more than {have}, and not {batch_size}."
    yield from _time_warnings(plan)


def _time_warnings(plan: TrainingPlan) -> Iterator[str]:
    """Warnings about a gradient's virtual time that is of no device in particular."""
    task = plan.nodes[0].task
    if task.uncounted:
        yield (
            f"the operations of {task.model} cannot be counted: {task.uncounted}. In virtual time a gradient takes "
            f"{format_duration(task.gradient_time_s)} on every device; give task.gradient_time."
        )
    elif not task.gradient_flop and (known := {node.device_class: None for node in plan.workers() if node.core}):
        why = "shards.profile has the times of layers" if plan.is_profiled else "task.gradient_time holds everywhere"
        yield f"device and speed of {', '.join(known)} do not change what a gradient takes: {why}; leave it out."


def _batch_warnings(plan: TrainingPlan, host: HostCapacity) -> Iterator[str]:
    """Warnings where tensors stored by batch, an epoch's activations of each kind, exceed caps or the machine."""
    kept = [(node, shard.kept_bytes) for node in plan.nodes if (shard := node.shard) and shard.kept_bytes]
    total = sum(size for _, size in kept)
    how = "Use a smaller task.fraction or width, other cuts, or match: step."
    for node, size in kept:
        if node.memory_bytes is not None and size > node.memory_bytes:
            cap = format_memory(node.memory_bytes)
            yield f"{node.node} may keep {mib_text(size)} by batch, above its memory cap of {cap}. {how}"
    if total > host.memory_bytes:
        have = bytes_text(host.memory_bytes)
        yield f"nodes may keep {mib_text(total)} by batch together, but this machine has {have}. {how}"


def machine_warnings(machine: HostCapacity, nodes: Sequence[NodePlan]) -> Iterator[str]:
    """Warnings about caps beyond a machine."""
    cpus = sum(node.cpus or 0.0 for node in nodes)
    memory_bytes = sum(node.memory_bytes or 0 for node in nodes)
    if cpus > machine.cpus:
        yield (
            f"the CPU caps add up to {cpus:g} cores, but {machine} has {machine.cpus}: "
            "if all are busy at once, nodes are slower than asked."
        )
    if memory_bytes > machine.memory_bytes:
        yield (
            f"the memory caps add up to {format_memory(memory_bytes)}, but {machine} has "
            f"{bytes_text(machine.memory_bytes)}."
        )


def _live_warnings(plan: TrainingPlan, runtime: Runtime) -> Iterator[str]:
    """Warnings about settings without effect where time is real."""
    if any(node.compute_speed > 1.0 for node in plan.workers()):
        yield f"a compute speed above 1 has no effect in the {runtime} runtime: no node is faster than the machine."
    task, fields = plan.nodes[0].task, TaskSection.model_fields
    is_paced = any(node.core for node in plan.workers())
    if not task.gradient_flop and task.gradient_time_s != GRADIENT_TIME_S and not is_paced:
        yield f"task.gradient_time has no effect in the {runtime} runtime: gradients take the time they take."
    if task.compression_time_s != fields["compression_time"].default:
        yield f"task.compression_time has no effect in the {runtime} runtime: compression takes the time it takes."
    if task.exchange_time_s != fields["exchange_time"].default:
        yield f"task.exchange_time has no effect in the {runtime} runtime: exchanges take the time they take."
    if any(node.restart_s for node in plan.nodes):
        yield f"restart_time has no effect in the {runtime} runtime: restarts take the time they take."


def _process_warnings(plan: TrainingPlan) -> Iterator[str]:
    """Warnings about what is not held, or not as one may think, in processes without cgroups."""
    if any(node.memory_bytes for node in plan.nodes):
        yield "memory caps are not enforced in the process runtime without root."
    if any(node.cpus is not None for node in plan.nodes):
        yield (
            "CPU caps are paced in the process runtime without root: workers and the evaluator stretch their own work; "
            "the server's cap and caps above 1 have no effect."
        )


def _container_warnings(
    plan: TrainingPlan, machines: Sequence[tuple[HostCapacity, Sequence[NodePlan]]], needs: Mapping[str, Need]
) -> Iterator[str]:
    """Warnings about more than a machine can hold in containers, and caps too low for their nodes."""
    for machine, nodes in machines:
        capped_bytes = sum(node.memory_bytes or 0 for node in nodes)
        free = [node for node in nodes if node.memory_bytes is None]
        free_bytes = sum(needs[node.node].bytes for node in free)
        if capped_bytes <= machine.memory_bytes < capped_bytes + free_bytes:
            beside = f" beside the memory caps of {format_memory(capped_bytes)}" if capped_bytes else ""
            yield (
                f"the {count_text(len(free), 'node')} without a memory cap need {mib_text(free_bytes)} "
                f"together{beside}, but {machine} has {bytes_text(machine.memory_bytes)}."
            )
        if len(nodes) > MANY_CONTAINERS:
            yield (
                f"{len(nodes)} containers are many for one machine: the docker runtime is meant for up to "
                f"{MANY_CONTAINERS} nodes on each. Use more hosts, the process runtime or the simulation for more."
            )
    for host in plan.hosts:
        if host.engine.startswith("tcp://") and not host.tls:
            yield f"hosts.{host.name}: tcp:// without tls: whoever is on the way is root there, and in the run."
    if len(plan.hosts) > 1 and plan.security == "plain":
        yield "security: plain: what nodes on different hosts exchange can be read, and changed, on the way."
    for node, need in tight_caps(plan, needs):
        yield f"memory cap of {node.device_class}: {tight_text(node, need)}; the kernel may kill it."
