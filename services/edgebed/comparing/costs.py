"""What a gradient and its compression take on this machine: CPU time of one thread, measured before a sweep is run.

A dozen real gradients of the task's model and batch size, made along a short training, are timed once for all methods
with the same task; each method's compression of these same gradients is timed after that, with the encoding of what is
sent, and so is what the server does to have the update back. So methods differ by their compression alone. A worker
that has waited finds its core slower than one that has worked, so each is timed after a pause, as it happens in a
device: pause, gradient, compression. Medians count, with three significant digits. Compressions that begin gently are
timed as they are after that.

What is measured is kept in a file, and read from there when the sweep goes on: the plan of a run has these times in it,
and with others it would be another run.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray

from edgebed.algorithms.compressor import Compressor, Moment
from edgebed.algorithms.registry import compression_of
from edgebed.errors import EdgebedError
from edgebed.learning import models
from edgebed.learning.network import Network
from edgebed.observe.host import machine
from edgebed.observe.run_folder import write_atomically
from edgebed.scenario.plan import Method, Part, Task
from edgebed.scenario.planning import PlannedTrial
from edgebed.scenario.units import format_duration
from edgebed.wire.tensors import decode_pieces, encode_pieces

FILE = "costs.json"
ROUNDS, WARM_UP = 12, 3
PAUSE_S = 0.02
DIGITS = 3
LEARNING_RATE = 0.05
"""Of the short training that the gradients are from."""
LATER_EPOCHS = 1000.0
"""A compression that sends more in the first epochs does so no longer."""

Floats = NDArray[np.float32]


class GradientCost(msgspec.Struct, frozen=True, kw_only=True):
    """Of one gradient of a mini-batch."""

    data: str
    model: str
    sizes: tuple[tuple[str, int], ...] = ()
    batch_size: int
    inputs: str
    loss: str
    seconds: float


class CompressionCost(msgspec.Struct, frozen=True, kw_only=True):
    """Of one push."""

    model: str
    sizes: tuple[tuple[str, int], ...] = ()
    parameters: int
    """Of the model, which other data give another number."""
    compression: Part
    seconds: float
    """At the worker: to compress and to encode."""
    restore_s: float
    """At the server: to decode and to restore."""


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """All that was measured on one machine."""

    cpu: str = ""
    """Name of its processor."""
    gradients: tuple[GradientCost, ...] = ()
    compressions: tuple[CompressionCost, ...] = ()

    def gradient(self, data: str, task: Task) -> GradientCost | None:
        """That of a task."""
        return next((each for each in self.gradients if _is_of(each, data, task)), None)

    def compression(self, task: Task, method: Method) -> CompressionCost | None:
        """That of a method with a task."""
        wanted = (task.model, task.sizes, _parameters(task), method.parts["compression"])
        found = (
            each for each in self.compressions if (each.model, each.sizes, each.parameters, each.compression) == wanted
        )
        return next(found, None)

    def has(self, data: str, task: Task, method: Method) -> bool:
        """Whether both have been measured."""
        return self.gradient(data, task) is not None and self.compression(task, method) is not None


def with_costs(trial: PlannedTrial, costs: Costs, say: Callable[[str], None]) -> Costs:
    """And with what this trial needs, measured now unless it is there.

    EdgebedError where the rest was measured on another processor.
    """
    task, method, data = _of(trial)
    if costs.has(data, task, method):
        return costs
    here = machine()["cpu"]
    if costs.cpu not in ("", here):
        raise EdgebedError(
            f"{FILE}: the times in it are of another processor, {costs.cpu}, and {trial.plan.trial} has none yet; "
            f"take the file away to measure all on this one, {here}"
        )
    say(f"measuring what {trial.plan.trial} takes on one thread …")
    torch.set_num_threads(1)
    return _with(msgspec.structs.replace(costs, cpu=here), trial)


def times_of(trial: PlannedTrial, costs: Costs) -> dict[str, str]:
    """The settings of the task that were measured for this trial, as a scenario writes them."""
    task, method, data = _of(trial)
    found = {"gradient_time": costs.gradient(data, task), "compression_time": costs.compression(task, method)}
    return {key: format_duration(cost.seconds) for key, cost in found.items() if cost}


def read_costs(path: Path) -> Costs:
    """What was measured before; nothing where there is no file. EdgebedError where it is not such a file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Costs)
    except FileNotFoundError:
        return Costs()
    except (OSError, msgspec.DecodeError) as error:
        raise EdgebedError(
            f"{path}: no times that were measured: {error}; take the file away to measure anew"
        ) from error


def write_costs(costs: Costs, path: Path) -> None:
    """InfrastructureError where that is impossible."""
    write_atomically(path, msgspec.json.format(msgspec.json.encode(costs), indent=2) + b"\n")


def rounded(seconds: float) -> float:
    """To the digits that count."""
    return float(f"{seconds:.{DIGITS}g}")


def _of(trial: PlannedTrial) -> tuple[Task, Method, str]:
    node = trial.plan.nodes[0]
    return node.task, node.method, trial.data.name


def _parameters(task: Task) -> int:
    return sum(tensor.size for tensor in task.layout)


def _is_of(cost: GradientCost, data: str, task: Task) -> bool:
    mine = (cost.data, cost.model, cost.sizes, cost.batch_size, cost.inputs, cost.loss)
    return mine == (data, task.model, task.sizes, task.batch_size, task.inputs, task.loss)


def _with(costs: Costs, trial: PlannedTrial) -> Costs:
    """And with what this trial needs."""
    task, method, data = _of(trial)
    positions = next(iter(trial.parts.values()))
    network = Network(task, trial.data.train_x[positions], trial.data.train_y[positions])
    vectors, gradient_s = _gradients(network, task, len(positions), trial.plan.seed)
    if not costs.gradient(data, task):
        made = GradientCost(
            data=data, model=task.model, sizes=task.sizes, batch_size=task.batch_size, inputs=task.inputs,
            loss=task.loss, seconds=gradient_s,
        )  # fmt: skip
        costs = msgspec.structs.replace(costs, gradients=(*costs.gradients, made))
    if not costs.compression(task, method):

        def work() -> None:
            network.gradient(np.zeros_like(vectors[0]), np.arange(task.batch_size))

        seconds, restore_s = _compressed_s(compression_of(method, task), vectors, work, trial.plan.nodes[0].num_workers)
        cost = CompressionCost(
            model=task.model, sizes=task.sizes, parameters=_parameters(task), compression=method.parts["compression"],
            seconds=seconds, restore_s=restore_s,
        )  # fmt: skip
        costs = msgspec.structs.replace(costs, compressions=(*costs.compressions, cost))
    return costs


def _gradients(network: Network, task: Task, examples: int, seed: int) -> tuple[list[Floats], float]:
    """(n,) each, and the median of the time that one takes."""
    rng, theta = np.random.default_rng(seed), models.initial_parameters(task, seed)
    vectors, taken_s = [], []
    for _ in range(WARM_UP + ROUNDS):
        batch = np.sort(rng.choice(examples, task.batch_size, replace=False))
        time.sleep(PAUSE_S)
        began_s = time.thread_time()
        vector, _ = network.gradient(theta, batch)
        taken_s.append(time.thread_time() - began_s)
        vectors.append(vector)
        theta = theta - np.float32(LEARNING_RATE) * vector
    return vectors, rounded(float(np.median(taken_s[WARM_UP:])))


def _compressed_s(
    compressor: Compressor, vectors: Sequence[Floats], work: Callable[[], None], workers: int
) -> tuple[float, float]:
    """Medians: to compress and encode; to decode and restore."""
    memory: Any = None
    taken_s = []
    for step, vector in enumerate(vectors):
        at = Moment(key=step, step=step, epoch=LATER_EPOCHS, loss=1.0 / (1 + step), workers=workers)
        time.sleep(PAUSE_S)
        work()
        began_s = time.thread_time()
        pieces, memory = compressor.compress(vector, memory, at)
        tensors, frames = encode_pieces(pieces)
        sent_s = time.thread_time()
        compressor.restore(decode_pieces(tensors, frames))
        taken_s.append((sent_s - began_s, time.thread_time() - sent_s))
    send_s, restore_s = np.median(taken_s[WARM_UP:], axis=0).tolist()
    return rounded(send_s), rounded(restore_s)
