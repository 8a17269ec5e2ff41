"""Builds a node by its plan: its heart, and what does its work."""

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import zmq
from numpy.typing import NDArray

from edgebed.algorithms.registry import exchange_of, rule_of
from edgebed.core.imports import search
from edgebed.core.measures.task import TEST, TRAIN, VALIDATION
from edgebed.core.plan import EvaluatorPlan, ModulesPlan, ServerPlan, StorePlan, Task, TrainingNode, WorkerPlan
from edgebed.learning.data_sets.examples import Examples
from edgebed.roles.evaluator import Evaluator
from edgebed.roles.events import Heart
from edgebed.roles.layerwise.activation_store import ActivationStore
from edgebed.roles.layerwise.batch_shard import shard_of
from edgebed.roles.layerwise.module_host import ModuleHost
from edgebed.roles.layerwise.shard_server import ShardServer, split_parts
from edgebed.roles.layerwise.shard_work import ModuleWork, ShardWork
from edgebed.roles.server.parameter_server import ParameterServer
from edgebed.roles.work import EvaluatorWork, JobRunner, Work
from edgebed.roles.worker import Worker
from edgebed.wire.messages import Configure, Tensor
from edgebed.wire.tensors import CopyFrames, cut_by


class ServerStart(NamedTuple):
    """What a server begins with."""

    theta: NDArray[np.float32]
    """(n,) the model, which is the server's to write from now on."""
    state: Any = None
    """What the aggregation remembers besides; None: nothing."""
    backup: Any = None
    """Where shards go on, as `ShardServer` takes it; None: they begin."""


def heart_of(
    configure: Configure,
    plan: TrainingNode,
    server_start: Callable[[], ServerStart],
    frames: CopyFrames,
    copy: Callable[[NDArray[np.float32]], NDArray[np.float32]] = np.copy,
) -> Heart:
    """The heart of a node by its role; `plan` is that of `configure`, as this node sees it.

    A server asks for what was `kept`, and for the `frames` of a model that it sends, which it may write afterwards;
    `copy` makes a model that a worker keeps.
    """
    match plan:
        case ServerPlan(shard=None):
            begins = server_start()
            return ParameterServer(plan, begins.theta, configure.peers, frames, configure.version, begins.state)
        case ServerPlan():
            begins = server_start()
            return ShardServer(plan, begins.theta, frames, configure.incarnation, begins.backup)
        case StorePlan():
            return ActivationStore(plan)
        case ModulesPlan():
            return ModuleHost(plan, configure.incarnation)
        case WorkerPlan(shard=None):
            return Worker(plan, configure.incarnation, copy)
        case WorkerPlan():
            return shard_of(plan, rule_of(plan.method), configure.incarnation)
        case EvaluatorPlan():
            return Evaluator(plan)


def work_of(
    plan: TrainingNode,
    examples: Callable[[], Examples],
    constants: NDArray[Any] | None,
    network: Callable[[], Any],
    clients: Callable[[Any], Any] = lambda _: None,
    clock: Callable[[], float] = lambda: 0.0,
    device: str = "cpu",
) -> JobRunner | None:
    """Who does a node's jobs by its role, None where it has none.

    `examples` are those of a shard, `network` is the model bound to a worker's or evaluator's data, `clients` that
    network bound to those of clients;
    torch computes what shards have to compute on `device`.
    """
    match plan:
        case EvaluatorPlan():
            bound = network()
            return EvaluatorWork(bound, clients(bound) if plan.by_client else None)
        case WorkerPlan(shard=None):
            bound = network()
            return Work(plan, bound, clock, clients(bound) if plan.by_client else None)
        case WorkerPlan() | ModulesPlan():
            return shard_work(plan, examples(), constants, clock, device)
    return None


def live_node(configure: Configure, arrays: Mapping[str, NDArray[Any]], task: Task) -> tuple[Heart, JobRunner | None]:
    """The heart and the work of a live node, from what it was given; `task` with modules where this node has them."""
    plan = msgspec.structs.replace(configure.plan, task=task)
    search(task.python_path)

    def server_start() -> ServerStart:
        theta = np.array(arrays["theta"])
        if plan.shard:
            return ServerStart(theta, backup=_backup(configure, arrays))
        return ServerStart(theta, arrays.get("state"))

    def network() -> Any:
        from edgebed.learning.network import Network  # torch, which a server is without

        parts = {which: Examples.of_named(arrays, which) for which in _parts_of(plan)}
        return Network(task, parts, arrays.get("constants"))

    def clients(bound: Any) -> Any:
        from edgebed.learning.client_network import ClientNetwork

        assert isinstance(plan, EvaluatorPlan | WorkerPlan)
        assert plan.by_client
        own = Examples.of_named(arrays, TRAIN) if plan.by_client.fine_tune else None
        return ClientNetwork(bound, plan.by_client, plan.seed, Examples.of_named(arrays, plan.by_client.part), own)

    own = functools.partial(Examples.of_named, arrays, TRAIN)
    work = work_of(plan, own, arrays.get("constants"), network, clients, time.perf_counter)
    return heart_of(configure, plan, server_start, own_frames), work


def _parts_of(plan: TrainingNode) -> tuple[str, ...]:
    """The parts of the data that a node has."""
    if not isinstance(plan, EvaluatorPlan):
        return (TRAIN,)
    return (TEST, VALIDATION) if plan.num_validation else (TEST,)


def shard_work(
    plan: WorkerPlan | ModulesPlan,
    examples: Examples,
    constants: NDArray[Any] | None,
    clock: Callable[[], float] = lambda: 0.0,
    device: str = "cpu",
) -> ShardWork | ModuleWork:
    """The work of a shard, or of the node that has all gradient modules; `examples` as the node receives them."""
    from edgebed.learning.shards.building import module_networks, shard_network  # torch, which a server is without

    exchange = exchange_of(plan.method)
    if isinstance(plan, ModulesPlan):
        return ModuleWork(module_networks(plan, device), examples.targets, clock, exchange)
    return ShardWork(
        shard_network(plan, constants, device),
        rule_of(plan.method),
        examples.inputs.get(""),
        examples.targets,
        clock,
        exchange,
        functools.partial(_given, plan.task),
    )


def _given(task: Task, x: NDArray[Any]) -> NDArray[Any]:
    """The examples as the model takes them."""
    import torch

    from edgebed.learning.inputs import prepared

    given: NDArray[Any] = prepared(torch.from_numpy(x), task).numpy()
    return given


def _backup(
    configure: Configure, arrays: Mapping[str, NDArray[Any]]
) -> tuple[int, dict[str, NDArray[np.float32]]] | None:
    """The backup that the shards resume from; None where there is none."""
    if not configure.backup_parts:
        return None
    return configure.backup_step, split_parts(configure.backup_parts, arrays["state"])


def own_frames(row: NDArray[np.float32], tensors: Sequence[Tensor]) -> Sequence[Any]:
    """A copy of (v n,) vectors in memory of ZeroMQ's own, which it sends without copying or tracking it once more."""
    return [zmq.Frame(part, copy=True) for part in cut_by(tensors, row.data.cast("B"))]
