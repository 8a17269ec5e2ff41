"""How long a shard's jobs take, in units of a gradient of the whole model; in virtual time alone.

The plan says what each kind of work costs (scenario/layer_costs.py). Copying a state takes no time.
"""

from edgebed.roles.shard_work import (
    ForwardJob,
    HostTeachJob,
    LearnJob,
    PredictJob,
    ShardJob,
    TeachInputsJob,
    TeachJob,
)
from edgebed.scenario.plan import NodePlan

BESIDE = {"module": ("predict",), "blend": ("predict", "teach"), "direct": ("teach",), "head": ("head",)}
"""By what a shard learns from: the work beside its layers."""


def share_of(job: ShardJob, plan: NodePlan) -> float:
    """What `job` takes on a device of speed 1."""
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
