"""What a shard does, counted for its accounts, from the effects that its heart leads to.

The names are those of the record `Progress`. Counting effects keeps it apart from what any method does: a step is begun
when its first job is, and made when it is journaled.
"""

from collections.abc import Iterable, Iterator

from edgebed.core.records import Step
from edgebed.roles.events import Compute, Effect, Journal, Send
from edgebed.roles.layerwise.shard_work import ForwardJob, LearnJob, TeachInputsJob, TeachJob
from edgebed.roles.work import Job
from edgebed.wire.messages import Activation, Gradient


def tallied(effects: Iterable[Effect], modules: str) -> Iterator[str]:
    """Yield what each effect counts as; between a shard and the node `modules`, which predicts, nothing does."""
    for effect in effects:
        if isinstance(effect, Journal) and isinstance(effect.record, Step):
            yield "made"
        elif isinstance(effect, Compute):
            yield from _of_job(effect.job, learns_what_came=not modules)
        elif isinstance(effect, Send) and isinstance(effect.message, Activation) and effect.to != modules:
            yield "outputs_sent"
        elif isinstance(effect, Send) and isinstance(effect.message, Gradient):
            yield "gradients_sent"


def _of_job(job: Job, *, learns_what_came: bool) -> Iterator[str]:
    if isinstance(job, ForwardJob) and job.at.micro == 0:
        yield "begun"
    if isinstance(job, TeachInputsJob) or (isinstance(job, ForwardJob) and job.inputs is not None):
        yield "inputs_used"
    elif isinstance(job, TeachJob) or (isinstance(job, LearnJob) and job.gradient is not None and learns_what_came):
        yield "gradients_used"
