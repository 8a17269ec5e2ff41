"""What planning asks of a model: its tensors, the operations of its gradient, and what that holds in memory.

Of built-in models on inputs of the built-in data sets all of this is known: `examined.jsonl`, a line for each pair, has
what torch counted, and a test counts again. So such a trial is planned without torch, whose import takes longer than
all the rest. Other models are built and tried. `scripts/generate-docs` writes the file.
"""

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from edgebed.core.plan import ArrayForm, Task, TensorLayout, shape_of

FILE = Path(__file__).with_suffix(".jsonl")
SHAPES = ((1, 8, 8), (1, 28, 28), (3, 32, 32))
"""Shapes of the inputs of the built-in data sets."""
CLASSES = 10


class Footprint(NamedTuple):
    """What a model computes with, beside its weights: bytes for each example of a batch."""

    kept: int
    """Activations that are held until their gradient is there."""
    widest: int
    """What one operation of going forward reads and writes, of all the one that has most."""


class Examination(msgspec.Struct, frozen=True, array_like=True):
    """What is known of a built-in model with its usual sizes, on inputs of a shape, with ten classes."""

    model: str
    input_shape: tuple[int, ...]
    flop: int
    """Operations of a gradient of one example."""
    footprint: Footprint
    constants: int
    """Bytes of tensors that training does not change."""
    tensors: tuple[tuple[str, tuple[int, ...], int], ...]
    """Name and shape of each tensor that training changes, and 1 where it is a buffer."""

    @property
    def layout(self) -> tuple[TensorLayout, ...]:
        """Return the tensors that training changes, in the order of the flat vector."""
        return tuple(TensorLayout(name, shape, bool(kept)) for name, shape, kept in self.tensors)


def layout(
    name: str,
    inputs: tuple[ArrayForm, ...],
    outputs: int,
    python_path: Sequence[str] = (),
    sizes: Sequence[tuple[str, int]] = (),
) -> tuple[TensorLayout, ...]:
    """Return name and shape of each tensor that training changes; ScenarioError where the model cannot be trained."""
    if known := _known(name, inputs, outputs, sizes):
        return known.layout
    from edgebed.learning.models import registry

    return registry.layout(name, inputs, outputs, python_path, sizes)


def gradient_operations(task: Task) -> int:
    """Return the operations of one gradient of a mini-batch; Uncountable where torch has no formula for them."""
    if known := _known_of(task):
        return known.flop * task.batch_size
    from edgebed.learning.models import anatomy

    return anatomy.gradient_operations(task)


def footprint(task: Task) -> Footprint:
    """Return what the model computes with; ScenarioError as `layout`."""
    if known := _known_of(task):
        return known.footprint
    from edgebed.learning.models import footprint

    return Footprint(*footprint.footprint_of(task))


def constant_bytes(task: Task) -> int:
    """Return the bytes of the tensors that training does not change; ScenarioError where the model cannot be built."""
    if known := _known_of(task):
        return known.constants
    from edgebed.learning.models import footprint

    return footprint.constant_bytes(task)


def is_known(task: Task) -> bool:
    """Whether all is known of the task without torch."""
    return _known_of(task) is not None


def _known_of(task: Task) -> Examination | None:
    if task.objective.name != "classification":
        return None
    return _known(task.model, task.inputs, task.outputs, task.sizes)


def _known(
    name: str, inputs: tuple[ArrayForm, ...], outputs: int, sizes: Sequence[tuple[str, int]]
) -> Examination | None:
    shape = shape_of(inputs)
    if outputs != CLASSES or sizes or isinstance(shape, dict) or inputs[0].dtype not in ("uint8", "float32"):
        return None
    return _read().get((name, shape))


@functools.cache
def _read() -> dict[tuple[str, tuple[int, ...]], Examination]:
    """Return what the file has, by model and shape."""
    found = msgspec.json.Decoder(Examination).decode_lines(FILE.read_bytes())
    return {(each.model, each.input_shape): each for each in found}


def examine(name: str, input_shape: tuple[int, ...]) -> Examination:
    """Build a model and count; ScenarioError where it does not take such inputs."""
    from edgebed.learning.models import anatomy, footprint, registry

    inputs = (ArrayForm("", input_shape, "float32"),)
    tensors = registry.layout(name, inputs, CLASSES)
    task = Task(model=name, inputs=inputs, outputs=CLASSES, layout=tensors, batch_size=1, gradient_time_s=1.0)
    return Examination(
        model=name,
        input_shape=input_shape,
        flop=anatomy.gradient_operations(task),
        footprint=Footprint(*footprint.footprint_of(task)),
        constants=footprint.constant_bytes(task),
        tensors=tuple((each.name, each.shape, int(each.is_buffer)) for each in tensors),
    )


def examine_all() -> Iterator[Examination]:
    """Yield what is to be in the file, for all models and shapes that go together."""
    from edgebed.core.errors import ScenarioError
    from edgebed.learning.models.registry import MODELS

    for name in MODELS:
        for shape in SHAPES:
            try:
                yield examine(name, shape)
            except ScenarioError:  # planning says why
                continue


def file_text() -> str:
    """Return what the file is to be."""
    return "".join(f"{msgspec.json.encode(each).decode()}\n" for each in examine_all())
