"""The numbers over clients that a trial has of each measure of its task, such as `client_worst_decile_accuracy`."""

from collections.abc import Iterable

from edgebed.core.measures.measure import UNITS, Better, Measure
from edgebed.core.measures.task import TaskMeasure

STATISTICS = {
    "mean": "Mean over clients, each of which counts as one",
    "std": "Standard deviation over clients",
    "worst_decile": "Mean of the worst tenth of the clients, of one at least",
    "best_decile": "Mean of the best tenth of the clients, of one at least",
}
WHOSE = {
    "client": ("seen", "of those that training saw"),
    "tuned_client": ("tuned", "of those that training saw, after fine-tuning on each one's own examples"),
    "unseen_client": ("held_out", "of those that training never saw"),
}
"""What the names of numbers over clients begin with, the part of a summary that they are of, and whose they are."""


def of_clients(measures: Iterable[TaskMeasure]) -> dict[str, Measure]:
    """What a trial that measures client by client has of each measure of its task."""
    found: dict[str, Measure] = {}
    for each in measures:
        for whose in WHOSE:
            for statistic in STATISTICS:
                name = f"{whose}_{statistic}_{each.name}"
                better: Better = "less" if statistic == "std" else each.better
                words = f"{whose.replace('_', '-')} {statistic.replace('_', ' ')}"
                found[name] = Measure(UNITS[each.unit], better, compared=words, name=name)
    return found


def place_of(name: str, measures: Iterable[TaskMeasure]) -> tuple[str, str, str] | None:
    """The part of a summary, the statistic and the measure that such a name is of; None: it is none of these names."""
    for each in measures:
        for whose, (part, _) in WHOSE.items():
            for statistic in STATISTICS:
                if name == f"{whose}_{statistic}_{each.name}":
                    return part, statistic, each.name
    return None


def meanings_of_clients(measures: Iterable[TaskMeasure]) -> dict[str, str]:
    """What these numbers are."""
    return {
        f"{whose}_{statistic}_{each.name}": f"{text}, {of}: {each.meaning}".rstrip(": ")
        for each in measures
        for whose, (_, of) in WHOSE.items()
        for statistic, text in STATISTICS.items()
    }
