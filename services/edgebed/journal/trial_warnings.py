"""What a reader of a trial must know before trusting its numbers, in words; pure."""

from collections import Counter
from collections.abc import Iterator, Sequence

from edgebed.core.plan import TrainingPlan
from edgebed.core.quantities import count_text, first_text, seconds_text
from edgebed.core.records import Node
from edgebed.journal.accounts.seen_pushes import AFTER_THE_END
from edgebed.journal.accounts.skipped_evaluations import skipped_text
from edgebed.journal.columns.clients import without_last
from edgebed.journal.series import Series
from edgebed.journal.series_faults import unasked_losses

LOST_MAX = 3
"""Number of lost nodes that are named with the reason why they are gone."""


def unheard_of(plan: TrainingPlan, series: Series) -> Iterator[str]:
    """Classes of workers none of whose pushes was applied; those that came after the last update do not count."""
    classes = {worker.node: worker.device_class for worker in plan.workers() if worker.pushes}
    applied: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for life in series.accounting.lives if series.accounting else ():
        if name := classes.get(life.worker):
            applied[name] += life.applied
            refused = sum(life.refused.values()) - life.refused.get(AFTER_THE_END, 0)
            others[name] += refused + life.lost_in_flight + life.lost_with_server
    for name, count in others.items():
        if count and not applied[name]:
            which = "the only push" if count == 1 else f"none of the {count:,} pushes"
            yield f"{which} of class {name} was {'not ' if count == 1 else ''}applied"


def losses(series: Series, workers: set[str]) -> Iterator[str]:
    """Nodes that died or never came unasked, with the reason; of many how many there are, and the first of them."""
    lost_nodes = unasked_losses(series.nodes, series.faults)
    last = list({node.name: node for node in lost_nodes}.values())
    if len(last) > LOST_MAX:
        yield from _lost_counts(lost_nodes, workers)
    for node in last[:LOST_MAX]:
        yield f"{node.name} {node.state}: {node.reason}" if node.reason else f"{node.name} {node.state}"
    if len(last) > LOST_MAX:
        yield f"and {len(last) - LOST_MAX} more"


def _lost_counts(lost_nodes: Sequence[Node], workers: set[str]) -> Iterator[str]:
    """How many workers, and how many other nodes, died or are missing, e.g. `5 workers died, 1 missing`."""
    for noun, lost in (
        ("worker", [node for node in lost_nodes if node.name in workers]),
        ("other node", [node for node in lost_nodes if node.name not in workers]),
    ):
        died, missing = (len({node.name for node in lost if node.state == state}) for state in ("died", "missing"))
        if died:
            yield f"{count_text(died, noun)} died" + (f", {missing} missing" if missing else "")
        elif missing:
            yield f"{count_text(missing, noun)} missing"


def resumptions(series: Series) -> Iterator[str]:
    """A warning where the trial was resumed, which makes it another one than its seed alone says."""
    if times_s := series.continued_s:
        *_, last_s = times_s
        often = f"{len(times_s)} times, the last time at " if len(times_s) > 1 else "at "
        yield (
            f"it was resumed {often}{seconds_text(last_s)} of training: nodes started anew, and draw other random "
            "numbers than in an uninterrupted trial of this seed"
        )


def unmeasured(plan: TrainingPlan, series: Series) -> Iterator[str]:
    """What was not measured that should be, and why the accounting does not close."""
    if skipped := skipped_text(plan, series):
        yield skipped
    if series.ran_to_end and (missing := without_last(plan, series.clients)):
        who = f"{count_text(len(missing), 'client')} ({first_text(missing, LOST_MAX)})"
        yield f"{who} not measured at the end: their workers were away"
    for problem in series.accounting.problems if series.accounting else ():
        yield f"not every {'step' if series.shards.resumed else 'update'} is accounted for: {problem}"


def shares(plan: TrainingPlan, series: Series) -> Iterator[str]:
    """Measures that are declared to be shares, and are none."""
    for measure in plan.measures:
        for values in (series.evaluations.measured.get(measure.name), series.evaluations.validation.get(measure.name)):
            if measure.is_share and values is not None and (wrong := (values < 0.0) | (values > 1.0)).any():
                value, version = values[wrong][0], int(series.evaluations.version[wrong][0])
                yield (
                    f"{measure.words} is {value:.4g} at update {version:,}, and a share is from 0 to 1; its objective "
                    "declares unit='share'"
                )
                break


def divergence(series: Series) -> Iterator[str]:
    """What was not finite in a trial that does not count as diverged."""
    first = series.first_not_finite
    if first and series.outcome != "diverged":
        since, rest = ("since", "") if series.has_diverged else ("at", ", though every loss is")
        yield f"{first.text} is not finite {since} update {first.update:,}{rest}"
