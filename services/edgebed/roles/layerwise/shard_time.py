"""How long a shard's jobs take, in units of a gradient of the whole model; in virtual time alone.

The plan says what each kind of work costs (planning/layer_costs.py). Copying a state takes no time.
"""

from edgebed.core.plan import TrainingNode
from edgebed.roles.layerwise.shard_work import (
    ForwardJob,
    HostTeachJob,
    LearnJob,
    PredictJob,
    ShardJob,
    TeachInputsJob,
    TeachJob,
)

BESIDE = {"module": ("predict",), "blend": ("predict", "teach"), "direct": ("teach",), "head": ("head",)}
"""Work beside the layers, by what a shard learns from."""


def share_of(job: ShardJob, plan: TrainingNode) -> float:
    """Return the share of a whole gradient's time that `job` takes on a device of speed 1."""
    assert plan.shard is not None
    cost = dict(plan.shard.costs)

    def of(*kinds: str) -> float:
        return sum(cost.get(kind, 0.0) for kind in kinds)

    match job:
        case ForwardJob():
            part = len(job.batch) / plan.task.batch_size
            return part * (of("forward") if job.inputs is not None else of("forward", "guess"))
        case LearnJob():
            step = of("step") if job.is_last_part else 0.0
            return job.share * of("backward", *BESIDE.get(job.source, ())) + step
        case TeachJob():
            return of("teach", "again") if job.passes else of("teach")
        case TeachInputsJob():
            return of("teach-guess")
        case PredictJob():
            return of(f"predict {job.owner}")
        case HostTeachJob():
            return of(f"teach {job.owner}")
    return 0.0
