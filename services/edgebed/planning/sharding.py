"""How a model's layers lie on a trial's workers: where the model is cut, and what each node has to know of the cuts.

What layers cost is counted, or read from a profile, and never measured here: so a plan is the same on every machine.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from edgebed.algorithms.layerwise.rule import Rule
from edgebed.algorithms.registry import rule_of
from edgebed.core.errors import ScenarioError
from edgebed.core.plan import Shard, Task
from edgebed.core.planned.link import LinkPlan
from edgebed.core.quantities import count_text
from edgebed.planning.layer_costs import LayerMeasurements, LayerTimes, layer_costs, shares
from edgebed.planning.partition import LayerPartition, choose_cuts, cost_of
from edgebed.planning.stages import INFINITE, Device, LayerCost, PipelineSchedule
from edgebed.scenario.devices.caps import class_nodes
from edgebed.scenario.links import LinkSection, link_of
from edgebed.scenario.schema import ShardsSection, TrialSection

if TYPE_CHECKING:
    from edgebed.learning.models.anatomy import Anatomy

STORE, MODULES = "store", "modules"


class Sharding(NamedTuple):
    """The shards of a trial."""

    workers: dict[str, Shard]
    """Shards by worker, from the bottom."""
    server: Shard
    serving: dict[str, Shard]
    """What nodes that serve shards have to know: the node with all gradient modules; the store, about tensors stored by
    batch."""
    partition: LayerPartition


def shard(
    trial: TrialSection,
    task: Task,
    anatomy: "Anatomy",
    found: LayerMeasurements,
    own_bytes: Sequence[int],
    seed: int,
    num_examples: int,
) -> Sharding:
    """Cut the task's model. ScenarioError, `shards.cuts: what`, where that is impossible.

    `own_bytes` is what each worker needs of memory besides its layers; each sees `num_examples`.
    """
    section, rule = trial.sharding, rule_of(trial.method)
    assert section is not None
    members = [(name, each) for key, each in trial.fleet.items() for name in class_nodes(key, each.count)]
    names = [name for name, _ in members]
    devices = [
        device_of(name, each, seed, task)._replace(own_s=found.own_s, own_bytes=own)
        for (name, each), own in zip(members, own_bytes, strict=True)
    ]
    is_apart = section.modules == "apart"
    layers = layer_costs(found, rule, section.queue, apart=is_apart)
    batches = num_examples // task.batch_size if rule.match == "batch" else None
    partition = partition_of(section, layers, devices, schedule_of(trial, rule, seed, task, batches or 0))
    ends = [*partition.cuts, len(layers)]
    common = Shard(
        batches=batches,
        store=STORE if section.traffic == "store" else "",
        modules=MODULES if is_apart else "",
        queue=section.queue,
        steps=trial.stop.updates,
        backup_every=trial.checkpoints.every.updates,
        weights_every=trial.evaluation.every.updates,
    )
    workers = {}
    for k, (name, end) in enumerate(zip(names, ends, strict=True)):
        first = ends[k - 1] if k else 0
        costs = shares(
            found.times[first:end],
            found.times[first - 1] if first else None,
            rule,
            task.gradient_time_s,
            is_last=end == len(layers),
            apart=is_apart,
            own_s=found.own_s,
        )
        workers[name] = replace(
            common,
            first=first,
            end=end,
            below=names[k - 1] if k else "",
            above=names[k + 1] if k + 1 < len(names) else "",
            frozen=name in section.frozen,
            memory_bytes=partition.memory_bytes[k],
            kept_bytes=partition.kept_bytes[k],
            costs=tuple(costs.items()),
        )
    sizes = [(name, sum(anatomy.weights[each.first : each.end])) for name, each in workers.items()]
    serving = {}
    if batches:
        at_cuts = sum(layers[end - 1].array_bytes for end in ends[:-1])
        serving[STORE] = replace(common, kept_bytes=2 * batches * at_cuts)
    if is_apart:
        owners = tuple(zip(names[:-1], ends[:-1], strict=True))
        costs = {kind: share for owner, end in owners for kind, share in _of_module(owner, found.times[end - 1], task)}
        serving[MODULES] = replace(common, above=names[-1], owners=owners, costs=tuple(costs.items()))
        sizes.append((MODULES, 0))
    return Sharding(workers, replace(common, sizes=tuple(sizes)), serving, partition)


def _of_module(owner: str, times: LayerTimes, task: Task) -> Iterator[tuple[str, float]]:
    """Costs of a gradient module's jobs where it lies on a node of its own, with the messages that they need."""
    unit_s = task.gradient_time_s
    yield f"predict {owner}", (times.predict + times.up_taken + times.down_sent) / unit_s
    yield f"teach {owner}", (times.teach + times.down_taken) / unit_s


def partition_of(
    section: ShardsSection, layers: Sequence[LayerCost], devices: Sequence[Device], schedule: PipelineSchedule
) -> LayerPartition:
    """The partition that the section asks for. ScenarioError where there are too few layers, or no cuts fit."""
    if len(layers) < len(devices):
        raise ScenarioError(
            f"the model has {count_text(len(layers), 'layer')}, too few for {len(devices)} workers with a shard each; "
            "use fewer workers"
        )
    if section.cuts == "auto":
        return choose_cuts(layers, devices, schedule)
    cuts = even_cuts(len(layers), len(devices)) if section.cuts == "even" else section.cuts
    if len(cuts) != len(devices) - 1 or (cuts and cuts[-1] >= len(layers)):
        raise ScenarioError(
            f"{len(devices)} workers need {len(devices) - 1} cuts, of layers from 1 to {len(layers) - 1}; not {cuts}"
        )
    return cost_of(layers, devices, schedule, cuts)


def even_cuts(layers: int, shards: int) -> list[int]:
    """Cuts into shards with as many layers each as possible; the last ones have one more where they do not divide."""
    return [layers * k // shards for k in range(1, shards)]


def device_of(name: str, section: LinkSection, seed: int, task: Task) -> Device:
    """The capacities of a node when training begins; with a trace, on average."""
    link = link_of(section, seed, name)
    rates = (link.uplink_bit_s, link.downlink_bit_s) if link.period_s is None else _mean_rates(link, link.period_s)
    cpus, memory = getattr(section, "cpus", None), getattr(section, "memory_cap", None)
    core = getattr(section, "core", None)
    of_core = task.gradient_time_s / core.gradient_s(task.gradient_flop) if core and task.gradient_flop else 1.0
    return Device(
        name=name,
        speed=of_core * getattr(section, "compute_speed", 1.0) * min(1.0, cpus or 1.0),
        memory_bytes=memory,
        uplink_bit_s=INFINITE if rates[0] is None else rates[0],
        downlink_bit_s=INFINITE if rates[1] is None else rates[1],
        latency_s=section.latency,
    )


def _mean_rates(link: LinkPlan, period_s: float) -> tuple[float | None, float | None]:
    """Return the mean rates of a link that follows a trace; a direction that the trace lacks is as it is."""
    ends = [*(change.at_s for change in link.changes[1:]), period_s]
    spans = [end - change.at_s for change, end in zip(link.changes, ends, strict=True)]
    up = [span * change.uplink_bit_s for change, span in zip(link.changes, spans, strict=True) if change.uplink_bit_s]
    down = [
        span * change.downlink_bit_s for change, span in zip(link.changes, spans, strict=True) if change.downlink_bit_s
    ]
    return sum(up) / period_s if up else link.uplink_bit_s, sum(down) / period_s if down else link.downlink_bit_s


def schedule_of(trial: TrialSection, rule: Rule, seed: int, task: Task, batches: int = 0) -> PipelineSchedule:
    """How shards work together under a rule, and which nodes serve them, storing up to `batches` by batch."""
    section = trial.sharding
    assert section is not None
    serving = {role: device_of(role, each, seed, task) for role, each in trial.serving.items()}
    is_apart = "modules" in serving
    return PipelineSchedule(
        together=is_apart or not rule.waits,
        micro_batches=rule.micro_batches,
        gradients=rule.down != "nothing",
        from_loss=rule.down == "true-gradient",
        queue=None if rule.waits or batches else section.queue,
        store=serving.get("store"),
        apart=serving.get("modules"),
        asks=rule.waits,
        sends_every=rule.send_every,
        every=rule.stride(is_first=False),
        batches=batches,
    )
