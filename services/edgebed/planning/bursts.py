"""What a step takes where the kernel holds CPU caps, which it does period by period.

A capped process computes at full speed until it has used its share of a period up, and then waits for the next one. A
shard that is always busy gets its cap on average. One that waits for the others most of the time has its share saved up
when its turn comes: then a cap costs less than its factor says, down to nothing.
"""

from collections.abc import Sequence
from itertools import pairwise

from edgebed.core.plan import TrainingPlan
from edgebed.emulation.model.cpu_quota import PERIOD_S, CpuQuota
from edgebed.planning.partition import LayerPartition

STEPS = 200
"""Number of steps that are followed to find the mean step time."""
PHASE = 0.38
"""Offset between the CPU periods of neighbouring devices, as a share of a period."""


def burst_step_s(partition: LayerPartition, plan: TrainingPlan) -> float:
    """Seconds that a step takes where the kernel holds the caps; the predicted time where that makes no difference."""
    caps = [node.cpus for node in plan.workers()]
    if not partition.hops_s or all(cpus is None or cpus >= 1.0 for cpus in caps):
        return partition.step_s
    quotas = [CpuQuota(cpus, PHASE * k % 1.0 * PERIOD_S) for k, cpus in enumerate(caps)]
    work = [
        tuple(min(1.0, cpus or 1.0) * part_s for part_s in parts)
        for cpus, parts in zip(caps, partition.turns_s, strict=True)
    ]
    now_s, ends_s = 0.0, [0.0]
    for _ in range(STEPS):
        now_s = _step(now_s, quotas, work, partition.hops_s)
        ends_s.append(now_s)
    steps_s = [after - before for before, after in pairwise(ends_s[STEPS // 5 :])]
    return sum(steps_s) / len(steps_s)


def _step(
    now_s: float, quotas: Sequence[CpuQuota], work: Sequence[tuple[float, ...]], hops_s: Sequence[tuple[float, float]]
) -> float:
    """When a step that begins at `now_s` has gone up through all devices and down again."""
    for quota, (forward_s, _), (up_s, _) in zip(quotas, work, (*hops_s, (0.0, 0.0)), strict=True):
        now_s = quota.done_s(now_s, forward_s) + up_s
    for quota, (_, backward_s), (_, down_s) in zip(
        reversed(quotas), reversed(work), reversed(((0.0, 0.0), *hops_s)), strict=True
    ):
        now_s = quota.done_s(now_s, backward_s) + down_s
    return now_s
