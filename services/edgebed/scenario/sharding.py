"""How a model's layers lie on a trial's workers: where it is cut, and what each node has to know of it.

Layers are counted, not measured (learning/anatomy.py), so that a plan is the same on every machine.
"""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from edgebed.algorithms.layerwise.rule import Rule
from edgebed.algorithms.registry import rule_of
from edgebed.errors import ScenarioError
from edgebed.learning.anatomy import Anatomy
from edgebed.observe.quantities import count_text
from edgebed.scenario.partition import Device, LayerCost, Partition, Schedule, choose_cuts, cost_of
from edgebed.scenario.plan import Shard, Task
from edgebed.scenario.schema import DeviceClass, ShardsSection, Trial, class_workers

STORE, MODULES = "store", "modules"


class Sharding(NamedTuple):
    """The shards of a trial."""

    workers: dict[str, Shard]
    """In order, from the bottom."""
    server: Shard
    serving: dict[str, Shard]
    """What nodes that serve shards have to know: the one that has all gradient modules; the store, of what is kept by
    batch."""
    partition: Partition


def shard(trial: Trial, task: Task, anatomy: Anatomy, num_examples: int) -> Sharding:
    """Cut the task's model. ScenarioError, `shards.cuts: what`, where that is impossible."""
    section, rule = trial.sharding, rule_of(trial.method)
    assert section is not None
    names = [name for key, members in trial.fleet.items() for name in class_workers(key, members)]
    devices = [device_of(name, members) for key, members in trial.fleet.items() for name in class_workers(key, members)]
    layers = layer_costs(task, anatomy, rule)
    batches = num_examples // task.batch_size if rule.match == "batch" else None
    partition = partition_of(section, layers, devices, schedule_of(rule, batches or 0))
    ends = [*partition.cuts, len(layers)]
    common = Shard(
        store=STORE if section.traffic == "store" else "",
        modules=MODULES if section.modules == "apart" else "",
        queue=section.queue,
        batches=batches,
        steps=trial.stop.updates,
        backup_every=trial.checkpoints.every.updates,
        weights_every=trial.evaluation.every.updates,
    )
    total = 3 * sum(anatomy.flops)
    modules = {end: anatomy.modules[end - 1] / total for end in ends[:-1]}
    workers = {}
    for k, (name, end) in enumerate(zip(names, ends, strict=True)):
        first = ends[k - 1] if k else 0
        costs = {
            "layers": sum(anatomy.flops[first:end]) / total,
            "module": modules.get(end, 0.0),
            "head": anatomy.heads[end - 1] / total,
            "inputs": anatomy.inputs[first] / total if first else 0.0,
        }
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
        at_cuts = sum(layers[end - 1].output_bytes for end in ends[:-1])
        serving[STORE] = replace(common, kept_bytes=2 * batches * at_cuts)
    if section.modules == "apart":
        owners = tuple(zip(names[:-1], ends[:-1], strict=True))
        costs = {owner: modules[end] for owner, end in owners}
        serving[MODULES] = replace(common, above=names[-1], owners=owners, costs=tuple(costs.items()))
        sizes.append((MODULES, 0))
    return Sharding(workers, replace(common, sizes=tuple(sizes)), serving, partition)


def partition_of(
    section: ShardsSection, layers: Sequence[LayerCost], devices: Sequence[Device], schedule: Schedule
) -> Partition:
    """As the section wants it. ScenarioError where there are too few layers, or none fit."""
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
    """As many layers each as possible; the last ones have one more where they do not divide."""
    return [layers * k // shards for k in range(1, shards)]


def device_of(name: str, section: DeviceClass) -> Device:
    """What a worker can do, as it is when training begins."""
    link = {key: rate for key, rate in (("uplink_bit_s", section.uplink), ("downlink_bit_s", section.downlink)) if rate}
    return Device(
        name=name,
        speed=section.compute_speed * min(1.0, section.cpus or 1.0),
        memory_bytes=section.memory,
        latency_s=section.latency,
        **link,
    )


def layer_costs(task: Task, anatomy: Anatomy, rule: Rule) -> list[LayerCost]:
    """Of each layer, for a mini-batch, on a device of speed 1."""
    total, b = 3 * sum(anatomy.flops), task.batch_size
    ends = anatomy.modules if rule.has_module else anatomy.heads if rule.source == "head" else None
    return [
        LayerCost(
            compute_s=3 * flops / total * task.gradient_time_s,
            output_bytes=4 * b * outputs,
            memory_bytes=4 * (4 * weights + 3 * b * kept),
            end_compute_s=4 * ends[k] / total * task.gradient_time_s if ends else 0.0,
        )
        for k, (flops, outputs, weights, kept) in enumerate(
            zip(anatomy.flops, anatomy.outputs, anatomy.weights, anatomy.kept, strict=True)
        )
    ]


def schedule_of(rule: Rule, batches: int = 0) -> Schedule:
    """How shards work together under that rule, which may keep what is exchanged by that many batches."""
    return Schedule(
        together=not rule.waits,
        micro_batches=rule.micro_batches,
        gradients=rule.down != "nothing",
        sends_every=rule.send_every,
        every=rule.stride(is_first=False),
        batches=batches,
    )
