"""Whose examples are trained on, whose are held out, and who is left out: what a plan says of clients."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from edgebed.core.plan import TrainingPlan
from edgebed.core.quantities import count_text, first_text
from edgebed.core.units import format_duration
from edgebed.journal.columns.clients import without_examples
from edgebed.planning.planning import PlannedTraining

SHOWN = 10
"""Clients that are named."""


@dataclass(frozen=True, kw_only=True)
class Clients:
    """The clients of a trial's data."""

    trained: int
    """Number of those that are on workers, where the data is split by client; else 0. So are the next two."""
    by_worker: tuple[int, int]
    """Fewest and most of them on a worker."""
    examples: tuple[int, float, int]
    """Training examples of one of them: least, median, most."""
    left_out: tuple[str, ...]
    """Names of clients that have too few examples."""
    held_out: tuple[str, ...]
    """Names of clients that nobody trains on."""
    held_out_examples: int
    """Examples of these, which are in the test set."""


def clients_of(planned: PlannedTraining) -> Clients | None:
    """The clients of a trial's data; None where no node is told of any."""
    plan, data = planned.plan, planned.data
    counts, on = [0], [0]
    if trains := [node for node in plan.workers() if node.clients]:
        assert data.train.clients is not None
        used = np.concatenate([planned.parts[node.node] for node in trains])
        counts = np.unique(data.train.clients[used], return_counts=True)[1].tolist()
        on = [len(node.clients) for node in trains]
    elif not plan.evaluator.held_out:
        return None
    tested = data.test.clients
    return Clients(
        trained=len(counts) if trains else 0,
        by_worker=(min(on), max(on)),
        examples=(min(counts), float(np.median(counts)), max(counts)),
        left_out=_names(plan, planned.clients_left_out),
        held_out=_names(plan, plan.evaluator.held_out),
        held_out_examples=0 if tested is None else int(np.isin(tested, plan.evaluator.held_out).sum()),
    )


def clients_text(clients: Clients, test_examples: int) -> Iterator[str]:
    """A sentence for each thing that is to be known."""
    if clients.trained:
        fewest, most = clients.by_worker
        each = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
        least, median, largest = clients.examples
        examples = f"{least:,}" if least == largest else f"{least:,} to {largest:,}, median {median:,g}"
        yield f"Clients: {clients.trained:,}, {each} on a worker; examples of each: {examples}"
    if clients.left_out:
        yield f"Left out by task.min_examples: {_listed(clients.left_out)}"
    if clients.held_out:
        yield (
            f"Held out of training: {_listed(clients.held_out)}; {clients.held_out_examples:,} of the "
            f"{count_text(test_examples, 'example')} of the test set are theirs"
        )


def by_client_text(plan: TrainingPlan) -> str:
    """What is measured client by client, on which examples and when; empty: nothing."""
    by = plan.by_client
    if by is None:
        return ""
    whose = "" if plan.evaluator.by_client else ", each with its worker's own model"
    often = f"every {by.every_updates:,} updates" if by.every_updates else ""
    often = f"every {format_duration(by.every_s)}" if by.every_s else often
    when = f"{often} and of the last model" if often else "of the last model alone"
    tune = by.fine_tune
    tuned = f", then after {tune.steps} own steps at {tune.learning_rate:g}" if tune else ""
    unseen = f"; training never sees {len(by.unseen):,} of them" if by.unseen else ""
    missing = f"; without such examples: {_listed(names)}" if (names := tuple(without_examples(plan))) else ""
    clients = count_text(len(by.clients), "client")
    return f"{clients} on their own {by.part} examples{whose}, {when}{tuned}{unseen}{missing}"


def _names(plan: TrainingPlan, numbers: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(plan.client_names[number] for number in numbers)


def _listed(names: tuple[str, ...]) -> str:
    return f"{count_text(len(names), 'client')} ({first_text(names, SHOWN)})"
