"""How long a shard's jobs take, in units of a gradient of the whole model; in virtual time alone.

Going forward is counted (learning/anatomy.py); going back takes twice as long, once for the inputs and once for the
weights. Copying a state takes no time.
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

STEP = 3
"""Forward and back, for what learns."""


def share_of(job: ShardJob, plan: NodePlan) -> float:
    """What `job` takes on a device of speed 1."""
    assert plan.shard is not None
    cost = dict(plan.shard.costs)
    match job:
        case ForwardJob():
            part = len(job.batch) / plan.task.batch_size
            return part * (cost["layers"] + (0.0 if job.inputs is not None else cost["inputs"]))
        case LearnJob():
            beside = {
                "module": cost["module"],
                "blend": (1 + STEP) * cost["module"],
                "direct": STEP * cost["module"],
                "head": STEP * cost["head"],
            }.get(job.source, 0.0)
            return job.share * (2 * cost["layers"] + beside)
        case TeachJob():
            return STEP * cost["module"] + (cost["layers"] if job.passes else 0.0)
        case TeachInputsJob():
            return STEP * cost["inputs"]
        case PredictJob():
            return cost[job.owner]
        case HostTeachJob():
            return STEP * cost[job.owner]
    return 0.0
