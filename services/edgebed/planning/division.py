"""The training examples, cut into the parts of the workers; and the clients that are held out of training.

    held out    whole clients, by name or drawn: nobody trains on their examples, which are all in the test set
    used        `task.fraction` of the others; where the data has clients, of each client's
    cut         by `task.split`
    left out    with `by-client` a client, else a worker, that has fewer than `task.min_examples`; such a worker is
                no node of the trial

Every draw hangs on the seed and the client that it is about: if more are held out, they are the same and others.

Shapes: N training examples; a part is an increasing int64 vector of positions in 0..N-1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgebed.core import chance
from edgebed.core.errors import ScenarioError
from edgebed.core.quantities import count_text, first_text
from edgebed.learning.data_sets.data_set import DataSet
from edgebed.learning.data_sets.examples import Examples
from edgebed.learning.data_sets.split import by_client, dealt, split
from edgebed.scenario.choices import HeldOut
from edgebed.scenario.mistakes.problems import choose
from edgebed.scenario.schema import TaskSection

NO_CLIENTS = "the data does not say whose its examples are; give a third array of each part, e.g. train=(x, y, people)"

SHOWN = 20
"""Clients whose names a message has."""
Positions = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Division:
    """Who trains on what."""

    parts: dict[str, Positions]
    """Positions of each worker's examples, by worker in the fleet's order; all shards have all. Empty where everybody
    is left out."""
    workers_left_out: tuple[str, ...] = ()
    """Workers that have too few examples."""
    clients_left_out: tuple[int, ...] = ()
    """With a split by client, the numbers of clients that have too few."""
    most: int = 0
    """Examples of the one that has most, of workers or else clients."""


def hold_out(data: DataSet, choice: HeldOut, seed: int) -> tuple[DataSet, tuple[int, ...]]:
    """Return the data as training and testing see it, and the numbers of the clients that are held out.

    Their examples of all parts are in the test set, behind those that it had, and what follows from the training
    examples, such as a standardisation, is made without theirs. ScenarioError if there are no such clients, or nobody
    is left.
    """
    if not choice:
        return data, ()
    if data.train.clients is None:
        raise ScenarioError(f"{data.name}: {NO_CLIENTS}")
    training = by_client(data.train.clients)
    numbers = _named(choice.names, data) if choice.names else _drawn(choice.count, data, training, seed)
    if not training.keys() - {*numbers}:
        raise ScenarioError(f"{count_text(len(training), 'client')} to train on, and all are held out; hold out fewer")
    train, *moved = _parted(data.train, numbers)
    changed: dict[str, Examples | None] = {"train": train}
    if data.validation is not None:
        kept, of_validation = _parted(data.validation, numbers)
        changed["validation"] = kept if len(kept) else None
        moved.append(of_validation)
    return data.replaced(**changed, test=Examples.joined([data.test, *moved])).fitted(), tuple(numbers)


def divide(
    task: TaskSection,
    data: DataSet,
    labels: NDArray[np.integer],
    used: Positions,
    workers: Sequence[str],
    seed: int,
) -> Division:
    """Cut the training examples that are used, with the (N,) labels of all, into the parts of the workers.

    ScenarioError if there is no such cut.
    """
    if task.split.kind == "by-client":
        return _by_client(task, data, used, workers, seed)
    cut = split(labels[used], len(workers), task.split.kind, task.split.parameter, seed)
    parts = {worker: used[part] for worker, part in zip(workers, cut, strict=True)}
    kept = {worker: part for worker, part in parts.items() if len(part) >= task.min_examples}
    left_out = tuple(worker for worker in parts if worker not in kept)
    return Division(parts=kept, workers_left_out=left_out, most=max(map(len, cut)))


def used_of(data: DataSet, fraction: float, seed: int) -> Positions:
    """Return the positions of the share of the training examples that is used, of each client one at least."""
    total, clients = len(data.train), data.train.clients
    if fraction == 1.0:
        return np.arange(total)
    if clients is None:
        used = max(1, int(total * fraction))
        return np.sort(chance.generator(seed, "fraction").choice(total, used, replace=False))
    chosen = []
    for number, places in by_client(clients).items():
        draws = chance.generator(seed, "fraction", data.client_names[number])
        chosen.append(draws.choice(places, max(1, int(len(places) * fraction)), replace=False))
    return np.sort(np.concatenate(chosen))


def _by_client(task: TaskSection, data: DataSet, used: Positions, workers: Sequence[str], seed: int) -> Division:
    if data.train.clients is None:
        raise ScenarioError(f"{data.name}: {NO_CLIENTS}; or use another split")
    examples = by_client(data.train.clients[used])
    sizes = {number: len(places) for number, places in examples.items()}
    taking_part = {number: size for number, size in sizes.items() if size >= task.min_examples}
    left_out = tuple(number for number in sizes if number not in taking_part)
    if not taking_part:
        return Division(parts={}, clients_left_out=left_out, most=max(sizes.values()))
    if len(taking_part) < len(workers):
        others = " (others are held out, or have too few examples)" if len(taking_part) < len(data.client_names) else ""
        raise ScenarioError(
            f"{count_text(len(workers), 'worker')} cannot share {count_text(len(taking_part), 'client')}{others}, "
            f"since each has whole ones; use {count_text(len(taking_part), 'worker')} at most, or another split"
        )
    parts = {
        worker: np.sort(used[np.concatenate([examples[number] for number in numbers])])
        for worker, numbers in zip(workers, dealt(taking_part, len(workers), seed), strict=True)
    }
    return Division(parts=parts, clients_left_out=left_out, most=max(sizes.values()))


def _named(names: Sequence[str], data: DataSet) -> list[int]:
    numbers = {name: number for number, name in enumerate(data.client_names)}
    problems = []
    for name in dict.fromkeys(names):
        if name not in numbers:
            choice = choose(name, data.client_names)
            guess = f"did you mean {choice.meant[0]!r}? " if choice.meant else ""
            known = first_text(data.client_names, SHOWN)
            problems.append(f"{data.name} has no client {name!r}; {guess}allowed: {known}")
    if problems:
        raise ScenarioError(*problems)
    return sorted({numbers[name] for name in names})


def _drawn(count: int, data: DataSet, training: Mapping[int, Positions], seed: int) -> list[int]:
    """Return the clients with the lowest draws, so that one more leaves the others as they are."""
    draws = {number: chance.uniform(seed, "held out", data.client_names[number]) for number in training}
    return sorted(sorted(draws, key=lambda number: (draws[number], number))[:count])


def _parted(examples: Examples, numbers: Sequence[int]) -> tuple[Examples, Examples]:
    """Return the examples of all but these clients, and theirs."""
    if examples.clients is None:
        return examples, examples.take(slice(0))
    of_them = np.isin(examples.clients, numbers)
    return examples.take(np.flatnonzero(~of_them)), examples.take(np.flatnonzero(of_them))
