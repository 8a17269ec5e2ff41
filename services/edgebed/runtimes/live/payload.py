"""What each node of a live trial is given when it has said hello: its model, its part of the data, its backup."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgebed.core.measures.task import TRAIN
from edgebed.core.plan import TrainingNode, WorkerPlan
from edgebed.journal.checkpoints import CheckpointStore, ModelCheckpoint
from edgebed.learning.beginning import Beginning
from edgebed.learning.data_sets.examples import Examples
from edgebed.planning.planning import PlannedTraining
from edgebed.roles.control.admission import NodeInputs
from edgebed.wire.tensors import encode_dense


def payload_of(
    planned: PlannedTraining, checkpoints: CheckpointStore, beginning: Beginning
) -> Callable[[TrainingNode], NodeInputs]:
    """Return a function for what each node is given: the server the latest model, others their part of the data.

    Nodes that compute with a model that has constants are given these, too.
    """

    def payload(node: TrainingNode) -> NodeInputs:
        arrays: dict[str, NDArray[Any]]
        version = 0
        latest, backup = checkpoints.latest, None
        if node.shard:
            latest, backup = ModelCheckpoint(0, checkpoints.initial), checkpoints.backup
        if node.role == "server":
            version, theta, state = latest
            arrays = {"theta": theta}
            if backup:
                arrays["state"] = backup.joined()
            elif state is not None:
                arrays["state"] = state
        else:
            parts = _evaluators(planned) if node.role == "evaluator" else _workers(planned, node)
            arrays = {name: each for which, part in parts.items() for name, each in part.named(which).items()}
        if (constants := beginning.constants(node)).size:
            arrays["constants"] = constants
        encoded = [encode_dense(name, np.ascontiguousarray(array)) for name, array in arrays.items()]
        frames = [frame for _, frames in encoded for frame in frames]
        tensors = tuple(tensor for tensor, _ in encoded)
        if node.role != "server" or backup is None:
            return NodeInputs(tensors, frames, version)
        return NodeInputs(tensors, frames, version, backup.step, backup.parts)

    return payload


def _evaluators(planned: PlannedTraining) -> dict[str, Examples]:
    """The parts of the data that the evaluator has: what is held out, and what it fine-tunes on."""
    own = planned.clients.own if planned.clients and planned.plan.evaluator.by_client else None
    return planned.measured if own is None else planned.measured | {TRAIN: own}


def _workers(planned: PlannedTraining, node: TrainingNode) -> dict[str, Examples]:
    """The parts that any other node has: what it trains on, and what it measures a model of its own on."""
    parts = {TRAIN: planned.examples(node)}
    if isinstance(node, WorkerPlan) and node.by_client:
        parts[node.by_client.part] = planned.examples_of(node.by_client)
    return parts


def backups_of(checkpoints: CheckpointStore) -> Callable[[int], NodeInputs | None]:
    """Return a function for the newest backup of all shards that is not beyond a step."""

    def backup_at(step: int) -> NodeInputs | None:
        backup = checkpoints.backup_at(step)
        if backup is None:
            return None
        tensor, frames = encode_dense("state", backup.joined())
        return NodeInputs((tensor,), frames, backup_step=backup.step, backup_parts=backup.parts)

    return backup_at
