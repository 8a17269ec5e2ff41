"""How long work takes on a node's device: in virtual time exactly so long, in the live runtimes no less."""

from edgebed.core.plan import TrainingNode
from edgebed.roles.layerwise.shard_time import share_of
from edgebed.roles.work import ClientsJob, EvaluationJob, GradientJob, Job, ScoreJob


def computing_s(plan: TrainingNode, job: Job, cpus: float | None) -> float:
    """Seconds that the gradients of `job`, or its part of one, take on the node's device with that cap."""
    if isinstance(job, EvaluationJob | ScoreJob | ClientsJob):
        return 0.0
    taken_s = _gradients_s(plan, job) if isinstance(job, GradientJob) else share_of(job, plan) * plan.gradient_s
    return taken_s / _speed(plan, cpus)


def job_time_s(plan: TrainingNode, job: Job, cpus: float | None = None) -> float:
    """Virtual seconds that `job` takes on the node's device with that cap, compressing the push included."""
    beside_s = plan.compression_s if isinstance(job, GradientJob) and not job.after else 0.0
    return computing_s(plan, job, cpus) + beside_s / _speed(plan, cpus)


def _gradients_s(plan: TrainingNode, job: GradientJob) -> float:
    """Seconds of gradients at a speed of 1; of a smaller mini-batch what its operations take."""
    shares = [len(batch) / plan.task.batch_size for batch in job.batches]
    return shares.count(1.0) * plan.gradient_s + sum(plan.batch_s(share) for share in shares if share != 1.0)


def _speed(plan: TrainingNode, cpus: float | None) -> float:
    return plan.compute_speed * min(1.0, cpus or 1.0)
