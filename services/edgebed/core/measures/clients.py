"""The numbers over clients that a trial has of each measure of its task, such as `client_worst_decile_accuracy`."""

from collections.abc import Iterable

from edgebed.core.measures.measure import Better, Measure, unit_of
from edgebed.core.measures.task import TaskMeasure

STATISTICS = ("mean", "std", "worst_decile", "best_decile")
"""Over clients, each of which counts as one; a decile is the mean of a tenth of them, of one at least."""
WHOSE = {"client": "seen", "chosen_client": "chosen", "tuned_client": "tuned", "unseen_client": "held_out"}
"""What the names of numbers over clients begin with, and the part of a summary that these are of: of those that
training saw, by the last model, by the version that validation chose, and by the last one after fine-tuning on each
one's own examples; and of those that it never saw."""


def of_clients(measures: Iterable[TaskMeasure]) -> dict[str, Measure]:
    """What a trial that measures client by client has of each measure of its task."""
    found: dict[str, Measure] = {}
    for each in measures:
        for whose in WHOSE:
            for statistic in STATISTICS:
                name = f"{whose}_{statistic}_{each.name}"
                better: Better = "less" if statistic == "std" else each.better
                words = f"{whose.replace('_', '-')} {statistic.replace('_', ' ')}"
                found[name] = Measure(unit_of(each), better, compared=words, name=name, label=f"{words} {each.words}")
    return found


def place_of(name: str, measures: Iterable[TaskMeasure]) -> tuple[str, str, str] | None:
    """The part of a summary, the statistic and the measure that such a name is of; None: it is none of these names."""
    for each in measures:
        for whose, part in WHOSE.items():
            for statistic in STATISTICS:
                if name == f"{whose}_{statistic}_{each.name}":
                    return part, statistic, each.name
    return None
