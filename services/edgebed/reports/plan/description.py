"""What a plan will do, before it does it: every node, the totals against this machine, and what to be warned of.

The bytes of a push are those of an example: the method's own compression, applied to a random gradient.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from edgebed.algorithms.registry import row_size
from edgebed.core.measures.task import TEST
from edgebed.core.plan import EvaluatorPlan, TrainingNode, TrainingPlan, Waiting, WorkerPlan
from edgebed.core.quantities import count_text
from edgebed.core.runtimes import TRAITS, Emulation, Runtime
from edgebed.core.units import format_duration
from edgebed.emulation.calibration import warnings_here
from edgebed.emulation.means import Mechanisms, caps_memory, has_cgroups, mechanisms_of
from edgebed.learning.models.examined import constant_bytes
from edgebed.learning.objectives.registry import most_frequent_class
from edgebed.planning.bursts import burst_step_s
from edgebed.planning.deadlines import random_push
from edgebed.planning.memory import Need, container_bytes, needs_of, tight_forked
from edgebed.planning.planning import PlannedTraining
from edgebed.planning.virtual_time import speed_text, virtual_time_text
from edgebed.planning.warnings import HostCapacity, capacities, warnings_of
from edgebed.reports.plan.clients import Clients, by_client_text, clients_of
from edgebed.reports.plan.faults import FaultRow, fault_rows
from edgebed.reports.plan.hosts import HostRow, host_row
from edgebed.reports.plan.links import LinkRow, link_rows
from edgebed.reports.plan.shards import ShardRow, shard_rows


@dataclass(frozen=True, kw_only=True)
class NodeRow:
    """One node of the plan."""

    node: str
    role: str
    device_class: str
    host: str
    """The host that it is placed on; empty: this machine."""
    cpus: float | None
    memory_bytes: int | None
    container_bytes: int | None
    """Memory that its container may use, whether the scenario caps it or not; None: it has none."""
    compute_speed: float
    device: str
    """Its device, its speed, or its speed relative to the machine's."""
    gradient_s: float
    """Virtual time of a gradient, without a cap and at compute speed 1; 0 for roles that compute none."""
    waiting: str
    """Pauses between steps, as a scenario writes them."""
    examples: int
    clients: tuple[str, ...]
    """The clients whose examples they are, where the data is split by client."""
    label_counts: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Description:
    """The plan of one trial in numbers."""

    trial: str
    method: str
    parts: dict[str, dict[str, Any]]
    """Name and all settings of each part of the method, by kind."""
    data: str
    model: str
    objective: str
    nodes: tuple[NodeRow, ...]
    num_workers: int
    examples: int
    """Training examples of all workers together."""
    examples_total: int
    """Examples in the whole training set, but for those of clients that are held out."""
    left_out: tuple[str, ...]
    """Workers of the fleet that are left out, since they have too few examples."""
    clients: Clients | None
    """The clients that the data comes from; None where nobody is told of them."""
    parameters: int
    model_bytes: int
    """Size of the dense model with float32 values: what a worker pulls."""
    constant_bytes: int
    """Size of what training leaves alone: sent once to workers and evaluator, with their data, and to no server."""
    push_entries: int
    push_bytes: int
    """Bytes of a push: values, and 4 bytes for each index; the wire's encoding of indices saves about half of the
    latter. 0 where shards train, which push nothing."""
    cpus: float
    """Sum of the CPU caps, in cores."""
    memory_bytes: int
    """Sum of the memory caps."""
    host: HostCapacity
    machines: tuple[HostCapacity, ...]
    """This machine, or in containers its hosts."""
    hosts: tuple[HostRow, ...]
    """The hosts that nodes are placed on; none: this machine alone."""
    links: tuple[LinkRow, ...]
    """Links of each class and of the server; none where every link is as fast as the machine."""
    shards: tuple[ShardRow, ...]
    """Shards of layer-wise training; none where each worker has the whole model."""
    step_s: float | None
    """Virtual seconds of a step in layer-wise training."""
    step_under_caps_s: float | None
    """About how many seconds a step of layer-wise training takes where the kernel holds CPU caps."""
    links_held_by: str
    """The mechanism that holds the links; empty where none is limited or delayed."""
    faults: tuple[FaultRow, ...]
    on_failure: str
    """What is done when a node has failed."""
    durability: str
    """Where a server goes on that is started anew."""
    validation: str
    """Where the validation part comes from, with its examples; what chooses where there is none."""
    by_client: str
    """What is measured client by client, and when; empty: nothing."""
    most_frequent: tuple[int, float] | None
    """The test set's most frequent class, and its share: what who always says it comes to."""
    headline: str
    """The measure of the task that results are told by."""
    stop: tuple[str, ...]
    expectations: tuple[str, ...]
    virtual_time: str
    """How long work takes, and where that number comes from; empty but in a simulation."""
    warnings: tuple[str, ...]


def describe_plan(
    planned: PlannedTraining,
    *,
    runtime: Runtime = "process",
    emulation: Emulation = "auto",
    host: HostCapacity | None = None,
) -> Description:
    """The facts of a planned trial.

    `runtime` and `emulation` decide what holds links and which settings have no effect; `host` is this machine if None.
    """
    plan, host = planned.plan, host or HostCapacity.here()
    task, method = plan.nodes[0].task, plan.nodes[0].method
    sizes = [tensor.size for tensor in task.layout]
    entries, push_bytes = random_push(plan, row_size(plan.nodes[0].method, task)) if plan.pushes else (0, 0)
    needs = needs_of(planned) if TRAITS[runtime].has_containers else {}
    is_capped = TRAITS[runtime].has_local_processes and caps_memory(plan) and has_cgroups(emulation)
    links = tuple(link_rows(plan, 4 * sum(sizes), push_bytes))
    shards = tuple(shard_rows(plan, planned.partition))
    mechanisms = mechanisms_of(runtime, emulation) if links else None
    return Description(
        trial=plan.trial,
        method=method.name,
        parts={kind: {"name": part.name, **part.settings} for kind, part in method.parts.items()},
        data=planned.data.name,
        model=task.model,
        objective=task.objective.name,
        nodes=tuple(_row(node, needs.get(node.node), plan.client_names) for node in plan.nodes),
        num_workers=len(plan.workers()),
        examples=sum(node.num_examples for node in (plan.workers() if plan.pushes else plan.workers()[:1])),
        examples_total=len(planned.data.train),
        left_out=planned.workers_left_out,
        clients=clients_of(planned),
        parameters=sum(sizes),
        model_bytes=4 * sum(sizes),
        constant_bytes=constant_bytes(task),
        push_entries=entries,
        push_bytes=push_bytes,
        cpus=sum(node.cpus or 0.0 for node in plan.nodes),
        memory_bytes=sum(node.memory_bytes or 0 for node in plan.nodes),
        host=host,
        machines=tuple(machine for machine, _ in capacities(plan, runtime, host)),
        hosts=tuple(host_row(each, plan) for each in plan.hosts),
        links=links,
        shards=shards,
        step_s=planned.partition.step_s if planned.partition else None,
        step_under_caps_s=burst_step_s(planned.partition, plan) if planned.partition else None,
        links_held_by=_held_by(plan, mechanisms) if mechanisms else "",
        faults=tuple(fault_rows(plan)),
        on_failure=_on_failure(plan),
        durability=_durability(plan, runtime),
        validation=_validation(planned),
        by_client=by_client_text(plan),
        most_frequent=most_frequent_class(plan),
        headline=plan.headline.words,
        stop=tuple(_stops(plan)),
        expectations=tuple(_expectations(plan)),
        virtual_time=virtual_time_text(plan) if TRAITS[runtime].is_virtual else "",
        warnings=(
            *([f"task.data: {planned.data.name}: {planned.data.note}."] if planned.data.note else []),
            *planned.warnings,
            *warnings_of(plan, runtime, host, needs, emulation),
            *(tight_forked(planned) if is_capped else ()),
            *_beyond_calibration(plan, mechanisms),
        ),
    )


def waiting_text(waiting: Waiting) -> str:
    """A pause as a scenario writes it, without brackets."""
    if waiting.distribution == "exponential":
        return f"exponential {format_duration(waiting.mean_s)}"
    if waiting.distribution == "uniform":
        return f"uniform {format_duration(waiting.low_s)}..{format_duration(waiting.high_s)}"
    return format_duration(waiting.low_s)


def _row(node: TrainingNode, need: Need | None, client_names: Sequence[str]) -> NodeRow:
    return NodeRow(
        node=node.node,
        role=node.role,
        device_class=node.device_class,
        host=node.host,
        cpus=node.cpus,
        memory_bytes=node.memory_bytes,
        container_bytes=container_bytes(node, need) if need else None,
        compute_speed=node.compute_speed,
        device=speed_text(node) if isinstance(node, WorkerPlan) else "",
        gradient_s=node.gradient_s if isinstance(node, WorkerPlan) else 0.0,
        waiting=waiting_text(node.waiting if isinstance(node, WorkerPlan) else Waiting()),
        examples=node.num_examples,
        clients=tuple(client_names[each] for each in node.clients) if isinstance(node, WorkerPlan) else (),
        label_counts=node.label_counts if isinstance(node, WorkerPlan | EvaluatorPlan) else (),
    )


def _on_failure(plan: TrainingPlan) -> str:
    done = {
        "ignore": "nothing is done but what these faults do",
        "restart": f"it is restarted after {format_duration(plan.restart_delay_s)}",
        "stop": "the trial ends",
    }[plan.on_failure]
    return f"{done}, and the server is told at once" if plan.detector == "oracle" else done


def _validation(planned: PlannedTraining) -> str:
    own, count = planned.data.validation, planned.plan.evaluator.num_validation
    if not count:
        unused = "" if own is None else f"; the data has one of {len(own):,} examples: task.validation: own"
        return f"none, the test part of {len(planned.data.test):,} examples chooses{unused}"
    kept = count_text(planned.num_kept, "client") + " too small for one" if planned.num_kept else ""
    where = "the data's own" if planned.validation is own else "held out of the training examples"
    tested = f"{len(planned.data.test):,} are for testing"
    return f"{count_text(count, 'example')}, {', '.join(filter(None, (where, kept)))}; {tested}"


def _durability(plan: TrainingPlan, runtime: Runtime) -> str:
    server = plan.server
    if not plan.pushes:
        return "from the last backup of all shards"
    if server.durability == "none":
        return "from the last checkpoint"
    kept = "from its log, with all that was answered"
    if TRAITS[runtime].is_virtual:
        return f"{kept}; the log is in memory: a simulation that was killed resumes from the last checkpoint"
    return f"{kept}, also if the machine lost power" if server.durability == "fsync" else kept


def _stops(plan: TrainingPlan) -> Iterator[str]:
    if plan.stop_updates is not None:
        passes = plan.stop_updates * plan.server.epochs_a_push
        yield f"{plan.stop_updates:,} updates" + (f" ({passes:.3g} passes through the data)" if passes else "")
    if plan.stop_time_s is not None:
        yield format_duration(plan.stop_time_s)
    if level := plan.stop_level:
        measure = next(each for each in plan.measures if each.name == level.measure)
        part = plan.evaluator.selects_by
        on = "" if part == TEST else f" on the {part} part"
        yield measure.level_told(level.value) + on + (f", mean of {level.window}" if level.window > 1 else "")


def _expectations(plan: TrainingPlan) -> Iterator[str]:
    yield from (f"{measure} {comparison} {bound:g}" for measure, comparison, bound in plan.expectations)
    if plan.expects_trusted:
        yield "verdict trusted"


def _beyond_calibration(plan: TrainingPlan, mechanisms: Mechanisms | None) -> Iterator[str]:
    """Warnings where a plan asks for more than this machine's calibration found that it holds."""
    if mechanisms is not None and mechanisms.place is not None:
        yield from warnings_here(plan, mechanisms.place)


def _held_by(plan: TrainingPlan, mechanisms: Mechanisms) -> str:
    delayed = any(node.link.delayed for node in plan.nodes)
    by_nodes = delayed and mechanisms.by_kernel and mechanisms.netem is False
    return f"{mechanisms}, latency by the nodes themselves (this kernel has no netem)" if by_nodes else str(mechanisms)
