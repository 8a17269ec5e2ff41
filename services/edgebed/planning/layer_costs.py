"""What layers cost, piece by piece: counted (learning/models/anatomy.py), or measured (scenario/profiles.py).

Counted, going back costs twice as much as going forward, once for the inputs and once for the weights; the optimizer's
step and the messages cost nothing. So it is the same on every machine. A profile has all of these as a machine took
them. Times are seconds on a device of speed 1, of a whole mini-batch.
"""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edgebed.algorithms.layerwise.rule import Rule
from edgebed.algorithms.registry import exchange_of, rule_of
from edgebed.core.errors import ScenarioError
from edgebed.core.plan import Method, Task
from edgebed.learning.allocator import MMAP_THRESHOLD_BYTES
from edgebed.planning.shard_memory import CONSTANT_COPIES
from edgebed.planning.stages import LayerCost
from edgebed.scenario.profiles import Beside, LayerRow, MessageCosts, ProfileFile
from edgebed.wire import frames as codec
from edgebed.wire.messages import Activation
from edgebed.wire.tensors import encode_exchanged

if TYPE_CHECKING:
    from edgebed.learning.models.anatomy import Anatomy

FLOAT_BYTES = 4
PROBE_VALUES = 1 << 16
"""Number of values that are encoded to learn their size; larger arrays are taken to grow in proportion."""
MIB = 2**20
WEIGHT_COPIES = 26
"""Copies of a layer's weights: parameters, moments, gradients, what the optimizer makes on its way, and a backup.
Chosen to come near what profiles of the four- and the eight-layer model found: while arrays are small what is freed
stays with the process (learning/allocator.py)."""
LARGE_WEIGHT_COPIES = 13
"""Copies of weights in arrays so large that they go back to the kernel when freed; half of `WEIGHT_COPIES`, an
assumption, not measured."""
ACTIVATION_COPIES = 6
"""Copies of activations, with the gradients that flow back through them; chosen as `WEIGHT_COPIES`."""


class LayerTimes(NamedTuple):
    """Seconds that the jobs of one layer take, for a mini-batch on a device of speed 1."""

    forward: float
    backward: float
    """Backward pass from the gradient of the outputs to the gradients of inputs and weights."""
    step: float = 0.0
    """Step of the optimizer."""
    again: float = 0.0
    """Backward pass of a second gradient through the same graph, to the gradient of the inputs alone."""
    predict: float = 0.0
    """Prediction by the gradient module for the layer's outputs."""
    teach: float = 0.0
    head: float = 0.0
    """Forward and backward pass of the head on the layer's outputs, with its step."""
    guess: float = 0.0
    """Prediction by the module that predicts the layer's inputs."""
    teach_guess: float = 0.0
    up_sent: float = 0.0
    """Encoding and sending the layer's outputs."""
    up_taken: float = 0.0
    """Receiving and decoding the layer's outputs."""
    down_sent: float = 0.0
    """Encoding and sending the gradient of the layer's outputs, by the shard above."""
    down_taken: float = 0.0


class LayerMemory(NamedTuple):
    """Bytes of memory that one layer takes."""

    trained: int
    """Bytes while the layer is trained, one mini-batch at a time."""
    kept: int
    """Share of `trained` that a mini-batch holds until its gradient is there, in bytes."""
    parameters: int
    outputs: int
    """Bytes of an array of the layer's outputs."""
    inputs: int
    module: int = 0
    """Additional bytes with a gradient module for the layer's outputs."""
    head: int = 0
    guess: int = 0
    """Additional bytes with a module that predicts the layer's inputs."""
    constants: int = 0
    """Additional bytes of the layer's tensors that training does not change."""


class LayerMeasurements(NamedTuple):
    """Times, memory and messages of all layers, in order."""

    times: list[LayerTimes]
    memory: list[LayerMemory]
    message_bytes: list[int]
    """Bytes of each layer's outputs as a message to another shard."""
    own_s: float = 0.0
    """Seconds of each step that a shard needs whatever layers it has."""


def counted(task: Task, method: Method, anatomy: "Anatomy") -> LayerMeasurements:
    """Costs of all layers by their operations; those of the whole model add up to the task's time of a gradient.

    A layer of which nothing is trained has no gradient of weights to compute.
    """
    back = [(2 if weights else 1) * flops for weights, flops in zip(anatomy.weights, anatomy.flops, strict=True)]
    unit_s = task.gradient_time_s / (sum(anatomy.flops) + sum(back))
    times = [
        LayerTimes(
            forward=unit_s * flops,
            backward=unit_s * backward,
            again=unit_s * flops,
            predict=unit_s * module,
            teach=unit_s * 3 * module,
            head=unit_s * 3 * head,
            guess=unit_s * guess,
            teach_guess=unit_s * 3 * guess,
        )
        for flops, backward, module, head, guess in zip(
            anatomy.flops, back, anatomy.modules, anatomy.heads, anatomy.inputs, strict=True
        )
    ]
    return LayerMeasurements(times, _counted_memory(task, anatomy), _message_bytes(task, method, anatomy))


def measured(task: Task, method: Method, anatomy: "Anatomy", file: ProfileFile) -> LayerMeasurements:
    """Costs of all layers from a profile. ScenarioError if it is of another model, or lacks what the method needs."""
    rule, profile = rule_of(method), file.content
    _check(task, anatomy, file)
    messages = profile.messages_of(method.parts["exchange"])
    if messages is None:
        exchange = method.parts["exchange"].name
        raise ScenarioError(_other(file, f"it has no times of messages with exchange '{exchange}' and these settings"))
    beside: Sequence[Beside] = [Beside()] * len(profile.layers)
    if not rule.is_alone:
        found = profile.beside_of(method.parts["learning"])
        if found is None:
            raise ScenarioError(_other(file, f"it has nothing of what '{method.name}' puts beside layers"))
        beside = found
    times = [
        _times(row, other, messages, _array_bytes(task, outputs))
        for row, other, outputs in zip(profile.layers, beside, anatomy.outputs, strict=True)
    ]
    memory = [
        known._replace(
            trained=row.memory, kept=row.kept, module=other.memory, head=other.memory, guess=other.guess_memory
        )
        for known, row, other in zip(_counted_memory(task, anatomy), profile.layers, beside, strict=True)
    ]
    return LayerMeasurements(times, memory, _message_bytes(task, method, anatomy), profile.own)


def _times(row: LayerRow, beside: Beside, messages: MessageCosts, array_bytes: int) -> LayerTimes:
    carried_s = (messages.each + messages.carry * array_bytes / MIB) / 2
    sent_s = messages.encode * array_bytes / MIB + carried_s
    return LayerTimes(
        forward=row.forward,
        backward=row.backward,
        step=row.step,
        again=row.again,
        predict=beside.predict,
        teach=beside.teach,
        head=beside.head,
        guess=beside.guess,
        teach_guess=beside.teach_guess,
        up_sent=sent_s,
        up_taken=carried_s,
        down_sent=sent_s,
        down_taken=carried_s,
    )


def _check(task: Task, anatomy: "Anatomy", file: ProfileFile) -> None:
    profile = file.content
    if profile.batch_size != task.batch_size:
        what = f"it was measured with mini-batches of {profile.batch_size}, and the task has {task.batch_size}"
        raise ScenarioError(_other(file, what))
    here = list(zip(anatomy.weights, anatomy.outputs, strict=True))
    there = [(row.weights, row.outputs) for row in profile.layers]
    if len(here) != len(there):
        raise ScenarioError(_other(file, f"it has {len(there)} layers, and the model has {len(here)}"))
    for k, (own, its) in enumerate(zip(here, there, strict=True)):
        if own != its:
            what = f"layer {k} has {its[0]:,} weights and {its[1]:,} outputs there, {own[0]:,} and {own[1]:,} here"
            raise ScenarioError(_other(file, what))


def _other(file: ProfileFile, what: str) -> str:
    return f"{file.path} does not fit: {what}; measure anew, with edgebed profile"


def _array_bytes(task: Task, values: int) -> int:
    return FLOAT_BYTES * task.batch_size * values


def _counted_memory(task: Task, anatomy: "Anatomy") -> list[LayerMemory]:
    inputs = [sum(math.prod(form.shape) for form in task.inputs), *anatomy.outputs[:-1]]
    return [
        LayerMemory(
            trained=_trained_bytes(weights, task.batch_size * kept),
            kept=task.batch_size * kept,
            parameters=FLOAT_BYTES * weights,
            outputs=_array_bytes(task, outputs),
            inputs=_array_bytes(task, before),
            module=_trained_bytes(module, _array_bytes(task, outputs)),
            head=_trained_bytes(head, _array_bytes(task, outputs)),
            guess=_trained_bytes(guess, _array_bytes(task, before)),
            constants=CONSTANT_COPIES * constants,
        )
        for weights, constants, outputs, before, kept, module, head, guess in zip(
            anatomy.weights,
            anatomy.constants,
            anatomy.outputs,
            inputs,
            anatomy.kept,
            anatomy.module_weights,
            anatomy.head_weights,
            anatomy.input_weights,
            strict=True,
        )
    ]


def _trained_bytes(weights: int, kept: int) -> int:
    """Bytes of a module with so many weights that learns, and stores `kept` bytes of a mini-batch."""
    size = FLOAT_BYTES * weights
    of_weights = max(WEIGHT_COPIES * min(size, MMAP_THRESHOLD_BYTES), LARGE_WEIGHT_COPIES * size)
    return of_weights + ACTIVATION_COPIES * kept


def _message_bytes(task: Task, method: Method, anatomy: "Anatomy") -> list[int]:
    """Bytes of each layer's outputs as a message: random numbers, encoded as the method exchanges them."""
    exchange, rng = exchange_of(method), np.random.default_rng(0)
    found = []
    for outputs in anatomy.outputs:
        size = task.batch_size * outputs
        tried = min(size, PROBE_VALUES)
        tensor, frames = encode_exchanged("h", exchange(rng.standard_normal(tried, np.float32)))
        message = Activation(sender="x", history=0, step=0, tensors=(tensor,))
        header = codec.size_bytes(codec.encode(message, frames)) - codec.size_bytes(frames)
        found.append(header + codec.size_bytes(frames) * size // tried)
    return found


def layer_costs(found: LayerMeasurements, rule: Rule, queue: int, *, apart: bool) -> list[LayerCost]:
    """Costs of each layer, as a stage needs them. `apart`: gradient modules lie on a node of their own."""
    before = [LayerTimes(0.0, 0.0), *found.times[:-1]]
    return [
        LayerCost(
            compute_s=times.forward + times.backward + times.step,
            output_bytes=size,
            memory_bytes=memory.trained
            + memory.constants
            + (queue * (memory.kept + memory.parameters) if _piles_up(rule) else 0),
            end_compute_s=end_s(times, rule, apart=apart),
            end_memory_bytes=_end_memory(memory, rule, queue, apart=apart),
            begin_compute_s=begin_s(times, below, rule),
            begin_memory_bytes=2 * memory.inputs + (_begin_memory(memory, rule, queue)),
            again_s=times.again if rule.down == "true-gradient" else 0.0,
            forward_s=times.forward,
            apart_s=times.predict + times.teach + times.up_taken + times.down_sent + times.down_taken if apart else 0.0,
            array_bytes=memory.outputs,
        )
        for times, below, memory, size in zip(found.times, before, found.memory, found.message_bytes, strict=True)
    ]


def end_s(times: LayerTimes, rule: Rule, *, apart: bool) -> float:
    """Seconds that a shard with another above spends beside its layers, at their end."""
    beside = 0.0
    if rule.has_module and not apart:
        beside = times.teach + (times.predict if rule.source != "direct" else 0.0)
    elif rule.source == "head":
        beside = times.head
    down = times.down_taken if rule.down != "nothing" else 0.0
    return beside + times.up_sent + down + (times.up_sent if apart else 0.0)


def begin_s(times: LayerTimes, below: LayerTimes, rule: Rule) -> float:
    """Seconds that a shard with another below spends beside its layers, at their beginning."""
    guessing = times.guess + times.teach_guess if rule.synthetic_inputs else 0.0
    down = below.down_sent if rule.down != "nothing" else 0.0
    return guessing + below.up_taken + down


def _piles_up(rule: Rule) -> bool:
    """Whether the graphs of several mini-batches are held until the true gradient comes."""
    return rule.down == "true-gradient"


def _end_memory(memory: LayerMemory, rule: Rule, queue: int, *, apart: bool) -> int:
    """Bytes for messages to and from the shard above, and for outputs that a module has yet to learn from."""
    in_flight = 2 if rule.waits else queue + 1
    beside = 0
    if rule.has_module and not apart:
        beside = memory.module
    elif rule.source == "head":
        beside = memory.head
    return beside + (in_flight + 1) * memory.outputs


def _begin_memory(memory: LayerMemory, rule: Rule, queue: int) -> int:
    """Bytes for inputs that wait for computation, and for the module that predicts them."""
    waiting = 0 if rule.waits else queue
    return waiting * memory.inputs + (memory.guess if rule.synthetic_inputs else 0)


def shares(
    times: Iterable[LayerTimes],
    below: LayerTimes | None,
    rule: Rule,
    unit_s: float,
    *,
    is_last: bool,
    apart: bool,
    own_s: float = 0.0,
) -> dict[str, float]:
    """What the jobs of a shard with these layers cost, by kind, in units of a gradient of the whole model.

    `own_s`: seconds of each step besides its layers.
    """
    layers = list(times)
    first, last = layers[0], layers[-1]
    found = dict.fromkeys(
        ("forward", "backward", "step", "again", "predict", "teach", "head", "guess", "teach-guess"), 0.0
    )
    for each in layers:
        for kind, cost in (("forward", each.forward), ("backward", each.backward), ("step", each.step)):
            found[kind] += cost
        found["again"] += each.again
    found["step"] += own_s
    if not is_last:
        sent = 2 if apart else 1
        found["forward"] += sent * last.up_sent
        found |= {"predict": last.predict, "teach": last.teach, "head": last.head}
        answered = "teach" if rule.has_module and not rule.waits and not apart else "backward"
        found[answered] += last.down_taken if rule.down != "nothing" else 0.0
    if below is not None:
        found |= {"guess": first.guess, "teach-guess": first.teach_guess}
        found["teach-guess" if rule.synthetic_inputs else "forward"] += below.up_taken
        found["again" if rule.down == "true-gradient" and not is_last else "backward"] += (
            below.down_sent if rule.down != "nothing" else 0.0
        )
    return {kind: cost / unit_s for kind, cost in found.items() if cost}
