"""Which heart a node has, and who does its work, by its plan."""

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import zmq
from numpy.typing import NDArray

from edgebed.algorithms.registry import exchange_of, rule_of
from edgebed.roles.activation_store import ActivationStore
from edgebed.roles.batch_shard import shard_of
from edgebed.roles.evaluator import Evaluator
from edgebed.roles.events import Heart
from edgebed.roles.module_host import ModuleHost
from edgebed.roles.parameter_server import ParameterServer
from edgebed.roles.shard_server import ShardServer, split_parts
from edgebed.roles.shard_work import ModuleWork, ShardWork
from edgebed.roles.work import EvaluatorWork, Work, Worked
from edgebed.roles.worker import Worker
from edgebed.scenario.plan import NodePlan, Task
from edgebed.wire.messages import Configure
from edgebed.wire.tensors import as_numbers, cut


def cast(configure: Configure, arrays: Mapping[str, NDArray[Any]], task: Task) -> tuple[Heart, Worked | None]:
    """The node's heart, and its work where it has any; `task` with the modules where this node finds them."""
    plan = msgspec.structs.replace(configure.plan, task=task)
    if plan.role == "server" and plan.shard:
        theta = np.array(arrays["theta"])
        return ShardServer(plan, theta, own_frames, configure.incarnation, _backup(configure, arrays)), None
    if plan.role == "server":
        theta, state = np.array(arrays["theta"]), as_numbers(arrays["state"]) if "state" in arrays else None
        return ParameterServer(plan, theta, configure.peers, own_frames, configure.version, state), None
    if plan.role == "store":
        return ActivationStore(plan), None
    x, y, constants = arrays["x"], arrays["y"], arrays.get("constants")
    if plan.shard:
        work = shard_work(plan, x, y, constants, time.perf_counter)
        if plan.role == "modules":
            return ModuleHost(plan, configure.incarnation), work
        return shard_of(plan, rule_of(plan.method), configure.incarnation), work
    from edgebed.learning.network import Network

    network = Network(task, x, y, constants)
    if plan.role == "evaluator":
        return Evaluator(plan), EvaluatorWork(network)
    return Worker(plan, configure.incarnation), Work(plan, network, time.perf_counter)


def shard_work(
    plan: NodePlan,
    x: NDArray[Any],
    y: NDArray[Any],
    constants: NDArray[Any] | None,
    clock: Callable[[], float] = lambda: 0.0,
) -> ShardWork | ModuleWork:
    """Whoever does the jobs of a shard, or of the node that has all gradient modules; `x`, `y` as it is given them."""
    from edgebed.learning.shard_building import module_networks, shard_network  # torch, which a server is without

    exchange = exchange_of(plan.method)
    if plan.role == "modules":
        return ModuleWork(module_networks(plan), y, clock, exchange)
    return ShardWork(
        shard_network(plan, constants),
        rule_of(plan.method),
        x,
        y,
        clock,
        exchange,
        functools.partial(_given, plan.task),
    )


def _given(task: Task, x: NDArray[Any]) -> NDArray[np.float32]:
    """What the model is given of these examples."""
    import torch

    from edgebed.learning.inputs import prepared

    return prepared(torch.from_numpy(x), task).numpy()


def _backup(
    configure: Configure, arrays: Mapping[str, NDArray[Any]]
) -> tuple[int, dict[str, NDArray[np.float32]]] | None:
    """What the shards go on from; None where there is nothing."""
    if not configure.backup_parts:
        return None
    return configure.backup_step, split_parts(configure.backup_parts, arrays["state"])


def own_frames(theta: NDArray[np.float32]) -> Sequence[Any]:
    """A copy of (n,) `theta` in memory of ZeroMQ's own, which it sends without copying or tracking it once more."""
    return [zmq.Frame(part, copy=True) for part in cut(theta.data)]
