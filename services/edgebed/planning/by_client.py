"""Whose examples a model is measured on client by client, and which training examples each is fine-tuned on."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgebed.core.errors import ScenarioError
from edgebed.core.measures.task import TEST, VALIDATION
from edgebed.core.planned.clients import ByClient, FineTune
from edgebed.learning.data_sets.data_set import DataSet
from edgebed.learning.data_sets.examples import Examples
from edgebed.scenario.by_client import ByClientSection
from edgebed.wire.tensors import MAX_BYTES

NO_CLIENTS = (
    "the data does not say whose its held-out examples are; give a third array of the test part, or of the training "
    "part and task.validation, e.g. test=(x, y, people)"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class ClientParts:
    """The clients that models are measured on, and their examples."""

    plan: ByClient
    measured: Examples
    """The part of the data that they are measured on."""
    own: Examples | None
    """Training examples that they are fine-tuned on; None: there is no fine-tuning."""


def client_parts(
    section: ByClientSection,
    data: DataSet,
    measured: Mapping[str, Examples],
    trained: Collection[NDArray[np.int64]],
    *,
    by_evaluator: bool = True,
) -> ClientParts:
    """Return the clients of a trial: those with examples in the part asked for, else in test, else in validation.

    `trained` are the positions of the training examples that workers have; what fine-tuning uses is among them. Without
    `by_evaluator` each worker measures a model of its own, on clients whose training examples it has. ScenarioError
    where the data knows no clients, or the evaluator would be sent too much.
    """
    wanted = (section.part,) if section.part else (TEST, VALIDATION)
    part = next((each for each in wanted if _knows(measured.get(each))), None)
    if part is None:
        raise ScenarioError(f"{data.name}: {NO_CLIENTS}")
    found, sizes = _counted(measured[part])
    used = np.unique(np.concatenate([*trained]))
    seen = {} if data.train.clients is None else dict(zip(*_counted(data.train.take(used)), strict=True))
    own = None
    if section.fine_tune:
        if data.train.clients is None:
            raise ScenarioError(f"{data.name}: fine_tune: the data does not say whose its training examples are")
        own = data.train.take(used[np.isin(data.train.clients[used], found)])
        if by_evaluator:
            _check_size([*measured.values(), own])
    every = section.every
    return ClientParts(
        plan=ByClient(
            part=part,
            clients=tuple(found),
            sizes=tuple(sizes),
            unseen=tuple(client for client in found if client not in seen),
            own=tuple(seen.get(client, 0) for client in found) if section.fine_tune else (),
            fine_tune=FineTune(**section.fine_tune.model_dump()) if section.fine_tune else None,
            every_updates=every.updates if every else None,
            every_s=every.time_s if every else None,
        ),
        measured=measured[part],
        own=own,
    )


def _knows(examples: Examples | None) -> bool:
    return examples is not None and examples.clients is not None and bool((examples.clients >= 0).any())


def _counted(examples: Examples) -> tuple[list[int], list[int]]:
    """The clients, in order, with how many examples each has."""
    assert examples.clients is not None
    clients, counts = np.unique(examples.clients[examples.clients >= 0], return_counts=True)
    return clients.tolist(), counts.tolist()


def _check_size(parts: Collection[Examples]) -> None:
    size = sum(len(each) * each.input_bytes for each in parts)
    if size > MAX_BYTES:
        raise ScenarioError(
            f"fine_tune: the evaluator needs the training examples of all clients, {size / 2**30:.1f} GiB with those "
            f"that it measures, of {MAX_BYTES >> 30} GiB that a node can be sent; use a smaller task.fraction"
        )
