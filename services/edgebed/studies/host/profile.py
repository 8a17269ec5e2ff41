"""Profile a model's layers on this machine, and what lies beside them: CPU time of one thread, and memory.

The layers are tried as a shard uses them, one after the other with a mini-batch of the data, forward and back; the
median of some rounds counts. CPU time leaves out what other processes take of the core. Memory is that of a process
which trains one layer and nothing else (learning/models/growth.py).

Shapes: B examples of a mini-batch.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
import zmq
from numpy.typing import NDArray
from torch import nn

from edgebed.algorithms.layerwise.rule import BatchPart
from edgebed.algorithms.registry import exchange_of, rule_of
from edgebed.core.errors import ScenarioError
from edgebed.core.plan import Method, Task
from edgebed.core.units import format_duration, format_memory
from edgebed.learning.allocator import keep_freed_memory
from edgebed.learning.inputs import batch_of, targets_of
from edgebed.learning.models.footprint import kept_bytes
from edgebed.learning.models.growth import grown_bytes
from edgebed.learning.objectives.registry import supervised
from edgebed.learning.optimizers import Optimizer
from edgebed.learning.shards.building import local_head, optimizer_of, shapes_of, sole_input, task_layers
from edgebed.learning.shards.gradient_modules import GradientModule, InputModule, of_modules
from edgebed.learning.shards.network import ShardNetwork
from edgebed.learning.trained import Trained, gradients
from edgebed.planning.planning import PlannedTraining
from edgebed.scenario.profiles import Beside, BesideRows, LayerRow, MessageCosts, Profile
from edgebed.wire import frames as codec
from edgebed.wire.messages import Activation
from edgebed.wire.tensors import decode_exchanged, encode_exchanged

Given = NDArray[Any]
"""(B, ...) inputs as the model is given them: floats, or whole numbers such as tokens."""
Targets = Mapping[str, NDArray[Any]]
ROUNDS, WARM_UP = 15, 3
PAUSE_S = 0.02
"""Seconds of pause before work is timed: a shard works after it has waited, on a core that is slower then than after
long work."""
MEMORY_ROUNDS = 3
MIB = 2**20
SMALL_VALUES, LARGE_VALUES = 256, MIB
"""Numbers of float32 values in two messages that are sent to and fro."""
DIGITS = 4
"""Significant digits of a time that are written."""


class _Taken:
    """CPU times by purpose."""

    def __init__(self) -> None:
        self.seconds: dict[Any, list[float]] = {}

    def of(self, what: object, work: Callable[[], Any]) -> Any:
        """Do some work and note how long it took."""
        began_s = time.thread_time()
        result = work()
        self.seconds.setdefault(what, []).append(time.thread_time() - began_s)
        return result

    def median(self, *what: object) -> str:
        """The median over all rounds but the first, as a profile writes it; 0 for what was not done."""
        seconds = self.seconds.get(what if len(what) > 1 else what[0], [0.0])
        return written(float(np.median(seconds[min(WARM_UP, len(seconds) - 1) :])))


def written(seconds: float) -> str:
    """Seconds as a profile writes them: with a few digits."""
    return format_duration(float(f"{seconds:.{DIGITS}g}"))


def profile_trials(trials: Sequence[PlannedTraining], say: Callable[[str], None] = lambda _: None) -> Profile:
    """The profile of the model that these trials train, with a mini-batch of the training set's first examples."""
    task, methods = trials[0].plan.nodes[0].task, [trial.plan.nodes[0].method for trial in trials]
    first = trials[0].data.train.take(slice(0, task.batch_size))
    inputs = batch_of(task, first, slice(None)).inputs
    if isinstance(inputs, dict):
        raise ScenarioError(f"a model in layers takes one array of inputs, and the data has {', '.join(inputs)}")
    return profile_of(task, methods, inputs.numpy(), first.targets, say)


def profile_of(
    task: Task, methods: Sequence[Method], x: Given, y: Targets, say: Callable[[str], None] = lambda _: None
) -> Profile:
    """The profile of the task's model with (B, ...) inputs and targets, and of what methods put beside layers.

    The optimizer is that of the first method. ScenarioError where the model is no row of layers.
    """
    torch.set_num_threads(1)
    keep_freed_memory()
    with torch.random.fork_rng(devices=[]):
        shapes = shapes_of(task, task_layers(task))
        optimizer = optimizer_of(methods[0])
        say("memory of each layer …")
        memory = _memory_of_layers(task, optimizer, shapes)
        say("times of each layer …")
        rows = [
            row.model_copy(update={"memory": size})
            for row, size in zip(_layer_rows(task, optimizer, x, y, shapes), memory, strict=True)
        ]
        beside = []
        for method in _different(methods, "learning"):
            rule = rule_of(method)
            if rule.has_module or rule.source == "head" or rule.synthetic_inputs:
                say(f"what {method.name} puts beside them …")
                beside.append(_beside(task, method, x, y, shapes, memory))
        say("messages …")
        messages = [_messages(method) for method in _different(methods, "exchange")]
    return Profile(batch_size=task.batch_size, layers=rows, messages=messages, beside=beside)


def _different(methods: Iterable[Method], kind: str) -> list[Method]:
    """The methods that differ in that part, one for each choice."""
    found: list[Method] = []
    for method in methods:
        if all(method.parts[kind] != known.parts[kind] for known in found):
            found.append(method)
    return found


def _settings(method: Method, kind: str) -> dict[str, Any]:
    part = method.parts[kind]
    return {"name": part.name, **part.settings}


# --- layers -----------------------------------------------------------------------------------------------------------


def _layer_rows(
    task: Task, optimizer: Optimizer, x: Given, y: Targets, shapes: Sequence[tuple[int, ...]]
) -> Iterator[LayerRow]:
    """Rows of the layers without their memory, from passes through the whole model, as long as it is warm."""
    layers = [Trained(layer, optimizer) for layer in task_layers(task)]
    taken, objective, targets = _Taken(), supervised(task), targets_of(y)
    for _ in range(ROUNDS + WARM_UP):
        inputs, outputs = [], []
        value = torch.from_numpy(x)
        time.sleep(PAUSE_S)
        for k, layer in enumerate(layers):
            inputs.append(value.clone().requires_grad_(value.is_floating_point()))
            outputs.append(taken.of((k, "forward"), partial(layer, inputs[-1])))
            value = outputs[-1].detach()
        scores = value.requires_grad_()
        (delta,) = torch.autograd.grad(objective.loss_of(scores, targets), scores)
        time.sleep(PAUSE_S)
        for k in reversed(range(len(layers))):
            wanted = [inputs[k], *layers[k].parameters]
            back = partial(gradients, outputs[k], delta)
            found = taken.of((k, "backward"), partial(back, wanted, keep=True))
            taken.of((k, "again"), partial(back, [inputs[k]]))
            taken.of((k, "step"), partial(layers[k].step, found[1:]))
            delta = found[0].contiguous()
        del outputs, inputs, found
    for k, (layer, before, shape) in enumerate(zip(layers, shapes, shapes[1:], strict=False)):
        kept = kept_bytes(layer.module, torch.from_numpy(x) if k == 0 else torch.zeros(len(x), *before))
        sizes = {
            "weights": len(layer.weights()),
            "outputs": int(np.prod(shape)),
            "kept": format_memory(kept),
            "memory": "0B",
        }
        times = {kind: taken.median(k, kind) for kind in ("forward", "backward", "again", "step")}
        yield LayerRow.model_validate(sizes | times)


def _memory_of_layers(task: Task, optimizer: Optimizer, shapes: Sequence[tuple[int, ...]]) -> list[int]:
    return [grown_bytes(partial(_training_of, task, optimizer, k, shapes, dict)) for k in range(len(shapes) - 1)]


def _training_of(
    task: Task, optimizer: Optimizer, k: int, shapes: Sequence[tuple[int, ...]], beside: Callable[[], dict[str, Any]]
) -> Callable[[], None]:
    """A function that lets a shard of one layer, with what is beside it, learn and hand over its state."""
    _learn_once()
    layer = task_layers(task)[k]
    b = task.batch_size
    inputs, gradient = _zeros(task, k, shapes), np.zeros((b, *shapes[k + 1]), np.float32)
    examples = _zeros(task, 0, shapes)
    targets = {form.name: np.zeros((b, *form.shape), form.dtype) for form in task.targets}

    def train() -> None:
        network = ShardNetwork(layer, optimizer, objective=supervised(task), **beside())
        network.begin(network.weights())
        for step in range(MEMORY_ROUNDS):
            at = BatchPart(step)
            x = network.synthetic_inputs(examples) if network.input_module else inputs
            network.forward(at, x, targets)
            if network.predictor:
                network.synthetic_gradient(at)
            if network.head:
                network.head_gradient(at)
            network.backward(at, gradient)
            network.step()
            if network.predictor:
                network.teach(at, gradient)
            if network.input_module:
                network.teach_inputs(examples, inputs)
            state = network.state()
            state.tobytes()

    return train


def _zeros(task: Task, k: int, shapes: Sequence[tuple[int, ...]]) -> Given:
    """(B, ...) zeros as layer `k` is given them."""
    dtype = np.float32 if k else sole_input(task).numpy().dtype
    return np.zeros((task.batch_size, *shapes[k]), dtype)


def _learn_once() -> None:
    """Train a little, so that what torch allocates at first use, in every process, is there."""
    first = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2))
    first(torch.zeros(2, 1, 8, 8)).sum().backward()


# --- beside -----------------------------------------------------------------------------------------------------------


def _networks_beside(task: Task, method: Method, k: int, shapes: Sequence[tuple[int, ...]]) -> dict[str, Any]:
    """The networks that the method puts beside layer `k`: at its end, unless it is the last, and its beginning."""
    rule, settings = rule_of(method), method.parts["learning"].settings
    found: dict[str, Any] = {}
    is_last = k == len(shapes) - 2
    if rule.has_module and not is_last:
        found["gradient_module"] = GradientModule(shapes[k + 1], task.outputs, **of_modules(settings))
    if rule.source == "head" and not is_last:
        found["head"] = local_head(task, shapes[k + 1])
    if rule.synthetic_inputs and k:
        found["input_module"] = InputModule(shapes[0], shapes[k], hidden=settings.get("input_hidden"))
    return found


def _beside(
    task: Task,
    method: Method,
    x: Given,
    y: Targets,
    shapes: Sequence[tuple[int, ...]],
    memory: Sequence[int],
) -> BesideRows:
    rows = [_beside_layer(task, method, k, x, y, shapes, memory[k]) for k in range(len(shapes) - 1)]
    return BesideRows(learning=_settings(method, "learning"), layers=rows)


def _beside_layer(
    task: Task,
    method: Method,
    k: int,
    x: Given,
    y: Targets,
    shapes: Sequence[tuple[int, ...]],
    alone: int,
) -> Beside:
    optimizer, rng = optimizer_of(method), np.random.default_rng(k)
    make = partial(_networks_beside, task, method, k, shapes)
    if not make():
        return Beside()
    at_end = partial(_only, make, ("gradient_module", "head"))
    at_beginning = partial(_only, make, ("input_module",))
    grown = [
        max(0, grown_bytes(partial(_training_of, task, optimizer, k, shapes, some)) - alone) if some() else 0
        for some in (at_end, at_beginning)
    ]
    network = ShardNetwork(task_layers(task)[k], optimizer, objective=supervised(task), **make())
    inputs = np.maximum(rng.standard_normal((len(x), *shapes[k]), np.float32), 0) if k else x
    gradient = 1e-3 * rng.standard_normal((len(x), *shapes[k + 1]), np.float32)
    taken = _Taken()
    for step in range(ROUNDS + WARM_UP):
        at = BatchPart(step)
        time.sleep(PAUSE_S)
        network.forward(at, inputs, y)
        if network.predictor:
            taken.of("predict", partial(network.synthetic_gradient, at))
            taken.of("teach", partial(network.teach, at, gradient))
        if network.head:
            taken.of("head", partial(network.head_gradient, at))
        if network.input_module:
            taken.of("guess", partial(network.synthetic_inputs, x))
            taken.of("teach_guess", partial(network.teach_inputs, x, inputs))
        network.let_go()
    kinds = ("predict", "teach", "head", "guess", "teach_guess")
    sizes = {"memory": format_memory(grown[0]), "guess_memory": format_memory(grown[1])}
    return Beside.model_validate(sizes | {kind: taken.median(kind) for kind in kinds})


def _only(make: Callable[[], dict[str, Any]], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: network for name, network in make().items() if name in names}


# --- messages ---------------------------------------------------------------------------------------------------------


def _messages(method: Method) -> MessageCosts:
    """Costs of messages over loopback, received in this process; CPU time of all its threads, with ZeroMQ's own."""
    context = zmq.Context()
    sender, receiver = context.socket(zmq.DEALER), context.socket(zmq.ROUTER)
    try:
        port = receiver.bind_to_random_port("tcp://127.0.0.1")
        sender.connect(f"tcp://127.0.0.1:{port}")
        small, large = (_carried_s(method, values, sender, receiver) for values in (SMALL_VALUES, LARGE_VALUES))
    finally:
        context.destroy(linger=0)
    mib = 4 * LARGE_VALUES / MIB
    return MessageCosts.model_validate(
        {
            "exchange": _settings(method, "exchange"),
            "each": written(sum(small)),
            "encode": written(max(0.0, large[0] - small[0]) / mib),
            "carry": written(max(0.0, large[1] - small[1]) / mib),
        }
    )


def _carried_s(
    method: Method, values: int, sender: zmq.Socket[bytes], receiver: zmq.Socket[bytes]
) -> tuple[float, float]:
    """Median seconds to decide what is sent; and to send, receive and decode it."""
    exchange, rng = exchange_of(method), np.random.default_rng(0)
    array = rng.standard_normal(values, np.float32)
    times_s = []
    for _ in range(ROUNDS + WARM_UP):
        time.sleep(PAUSE_S)
        began_s = time.process_time()
        tensor, frames = encode_exchanged("h", exchange(array))
        encoded_s = time.process_time()
        message = Activation(sender="edge-0", history=0, step=0, tensors=(tensor,))
        sender.send_multipart(codec.encode(message, frames), copy=False)
        _, *parts = receiver.recv_multipart(copy=False)
        came, came_frames = codec.decode([part.buffer for part in parts], "data")
        assert isinstance(came, Activation)
        torch.from_numpy(np.array(decode_exchanged(came.tensors[0], came_frames))).clone()
        times_s.append((encoded_s - began_s, time.process_time() - encoded_s))
    encode_s, carry_s = np.median(times_s[WARM_UP:], axis=0).tolist()
    return encode_s, carry_s
