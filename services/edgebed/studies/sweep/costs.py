"""Costs of a gradient and its compression on this machine: CPU time of one thread, measured before a sweep is run.

A dozen real gradients of the task's model and batch size, made along a short training, are timed once for all methods
with the same task; each method's compression of these same gradients is timed after that, with the encoding of what is
sent, and so is what the server does to have the update back. So methods differ by their compression alone. A core is
slower after waiting than after working, so each is timed after a pause, as it happens in a
device: pause, gradient, compression. Medians count, with three significant digits. Compressions that begin gently are
timed as they are after that.

Measurements are stored in a file, and read from there when the sweep is resumed: the plan of a run contains these
times, and with others it would be another run.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.compressor import Compressor, StepContext
from edgebed.algorithms.registry import compression_alone, configure
from edgebed.core.errors import EdgebedError
from edgebed.core.host import machine
from edgebed.core.plan import Method, Part, Task
from edgebed.core.units import format_duration
from edgebed.journal.run_folder import write_atomically
from edgebed.learning.objectives.registry import objective_of
from edgebed.planning.planning import PlannedTraining
from edgebed.wire.tensors import decode_pieces, encode_pieces

if TYPE_CHECKING:
    from edgebed.learning.network import Network

FILE = "costs.json"
ROUNDS, WARM_UP = 12, 3
PAUSE_S = 0.02
DIGITS = 3
LEARNING_RATE = 0.05
"""Learning rate of the short training that the gradients are from."""
LATER_EPOCHS = 1000.0
"""Epoch at which compressions are timed: those that send more in the first epochs no longer do."""

Floats = NDArray[np.float32]


class GradientCost(msgspec.Struct, frozen=True, kw_only=True):
    """Cost of one gradient of a mini-batch."""

    data: str
    model: str
    sizes: tuple[tuple[str, int], ...] = ()
    batch_size: int
    inputs: str
    objective: Part
    seconds: float


class CompressionCost(msgspec.Struct, frozen=True, kw_only=True):
    """Cost of one push."""

    model: str
    sizes: tuple[tuple[str, int], ...] = ()
    parameters: int
    """Number of the model's parameters, which depends on the data."""
    compression: Part
    seconds: float
    """Seconds at the worker: to compress and to encode."""
    restore_s: float
    """Seconds at the server: to decode and to restore."""


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """All that was measured on one machine."""

    cpu: str = ""
    """Name of the machine's processor."""
    gradients: tuple[GradientCost, ...] = ()
    compressions: tuple[CompressionCost, ...] = ()

    def gradient(self, data: str, task: Task) -> GradientCost | None:
        """The cost of a task's gradient; None if it was not measured."""
        return next((each for each in self.gradients if _is_of(each, data, task)), None)

    def compression(self, task: Task, method: Method) -> CompressionCost | None:
        """The cost of a method's compression with a task; None if it was not measured."""
        wanted, part = (task.model, task.sizes, _parameters(task)), method.parts["compression"]
        found = (
            each
            for each in self.compressions
            if (each.model, each.sizes, each.parameters) == wanted and _is_same(each.compression, part)
        )
        return next(found, None)

    def has(self, data: str, task: Task, method: Method) -> bool:
        """Whether gradient and compression have been measured."""
        return self.gradient(data, task) is not None and self.compression(task, method) is not None


def with_costs(trial: PlannedTraining, costs: Costs, say: Callable[[str], None]) -> Costs:
    """The costs with those that this trial needs, measured now unless they are there.

    EdgebedError where the rest was measured on another processor.
    """
    task, method, data = _of(trial)
    if costs.has(data, task, method):
        return costs
    here = machine()["cpu"]
    if costs.cpu not in ("", here):
        raise EdgebedError(
            f"{FILE}: the times in it are of another processor, {costs.cpu}, and {trial.plan.trial} has none yet; "
            f"remove the file to measure all on this one, {here}"
        )
    import torch  # takes seconds; a sweep with a mistake is refused without

    say(f"measuring what {trial.plan.trial} takes on one thread …")
    torch.set_num_threads(1)
    return _with(msgspec.structs.replace(costs, cpu=here), trial)


def times_of(trial: PlannedTraining, costs: Costs) -> dict[str, str]:
    """The settings of the task that were measured for this trial, as a scenario writes them.

    A gradient's time is not among them where devices have a speed of their own, from which it follows. A compression's
    is then what it would be on the reference core: the same share of a gradient as here.
    """
    task, method, data = _of(trial)
    gradient, compression = costs.gradient(data, task), costs.compression(task, method)
    if not gradient or not compression:
        return {}
    if any(node.core for node in trial.plan.workers()):
        found = {"compression_time": rounded(compression.seconds / gradient.seconds * task.gradient_time_s)}
    else:
        found = {"gradient_time": gradient.seconds, "compression_time": compression.seconds}
    return {key: format_duration(seconds) for key, seconds in found.items()}


def read_costs(path: Path) -> Costs:
    """Costs measured before; none where there is no file. EdgebedError where it is not such a file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Costs)
    except FileNotFoundError:
        return Costs()
    except (OSError, msgspec.DecodeError) as error:
        raise EdgebedError(f"{path}: no times that were measured: {error}; remove the file to measure anew") from error


def write_costs(costs: Costs, path: Path) -> None:
    """Write the costs; InfrastructureError where that is impossible."""
    write_atomically(path, msgspec.json.format(msgspec.json.encode(costs), indent=2) + b"\n")


def rounded(seconds: float) -> float:
    """Seconds, rounded to the significant digits."""
    return float(f"{seconds:.{DIGITS}g}")


def _of(trial: PlannedTraining) -> tuple[Task, Method, str]:
    node = trial.plan.nodes[0]
    return node.task, node.method, trial.data.name


def _parameters(task: Task) -> int:
    return sum(tensor.size for tensor in task.layout)


def _is_of(cost: GradientCost, data: str, task: Task) -> bool:
    mine = (cost.data, cost.model, cost.sizes, cost.batch_size, cost.inputs, cost.objective.name)
    if mine != (data, task.model, task.sizes, task.batch_size, task.scaling, task.objective.name):
        return False
    one, other = (objective_of(part, task.python_path).config for part in (cost.objective, task.objective))
    return bool(one == other)


def _is_same(measured: Part, part: Part) -> bool:
    """Whether a compression is the one that was measured; settings that it had not then have their defaults."""
    if measured.name != part.name or not measured.settings.items() <= part.settings.items():
        return False
    since = part.settings.keys() - measured.settings.keys()
    return not since or configure("compression", measured) == configure("compression", part)


def _with(costs: Costs, trial: PlannedTraining) -> Costs:
    """The costs with those that this trial needs."""
    from edgebed.learning.network import Network  # loads torch

    task, method, data = _of(trial)
    positions = next(iter(trial.parts.values()))
    network = Network(task, trial.data.train.take(positions))
    vectors, gradient_s = _gradients(network, task, len(positions), trial.plan.seed)
    if not costs.gradient(data, task):
        made = GradientCost(
            data=data, model=task.model, sizes=task.sizes, batch_size=task.batch_size, inputs=task.scaling,
            objective=task.objective, seconds=gradient_s,
        )  # fmt: skip
        costs = msgspec.structs.replace(costs, gradients=(*costs.gradients, made))
    if not costs.compression(task, method):

        def work() -> None:
            network.gradient(np.zeros_like(vectors[0]), np.arange(task.batch_size) % len(positions))

        seconds, restore_s = _compressed_s(
            compression_alone(method, task, "compression"), vectors, work, len(trial.plan.workers())
        )
        cost = CompressionCost(
            model=task.model, sizes=task.sizes, parameters=_parameters(task), compression=method.parts["compression"],
            seconds=seconds, restore_s=restore_s,
        )  # fmt: skip
        costs = msgspec.structs.replace(costs, compressions=(*costs.compressions, cost))
    return costs


def _gradients(network: "Network", task: Task, examples: int, seed: int) -> tuple[list[Floats], float]:
    """Gradients, (n,) each, and the median of the seconds that one takes."""
    from edgebed.learning.models import registry as models

    rng, theta = np.random.default_rng(seed), models.initial_parameters(task, seed)
    vectors, taken_s = [], []
    for _ in range(WARM_UP + ROUNDS):
        batch = np.sort(rng.choice(examples, task.batch_size, replace=examples < task.batch_size))
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
    """Median seconds to compress and encode; and to decode and restore."""
    memory: Any = None
    taken_s = []
    for step, vector in enumerate(vectors):
        at = StepContext(key=step, step=step, epoch=LATER_EPOCHS, loss=1.0 / (1 + step), workers=workers)
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
