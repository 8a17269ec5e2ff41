"""Sizes of ResNets' vectors in each encoding: real gradients, compressed and encoded as a push is, bytes counted.

The models have the 7x7 stem of the publication, since their sizes are those of the post's table. That stem and its pool
leave a single pixel of a CIFAR-10 image in the last stage, where eight of the nine weights of a 3x3 filter would then
have no gradient at all; so images are enlarged four times, and the last stage sees 4x4 as in a network for CIFAR-10.
With 1,000 classes the labels are random: a gradient's size depends on its shape, not on what is learnt. Weights are
those of a worker after an epoch of its own, and not of a whole training.

Shapes: n parameters, without buffers.
"""

import functools
import itertools
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.compressor import Pieces, StepContext
from edgebed.algorithms.registry import COMPRESSIONS, buffer_mask, configure
from edgebed.core.plan import ArrayForm, Part, Task
from edgebed.learning.data_sets.examples import Examples
from edgebed.learning.data_sets.registry import load_data
from edgebed.learning.models import registry as models
from edgebed.learning.network import Network
from edgebed.wire.tensors import encode_pieces, payload_bytes

Floats = NDArray[np.float32]
Scope = Literal["tensor", "model"]
"""Entries that share a scale where they become 8-bit integers."""
SEED = 1
SIDE = 32
BATCH = 16
"""Images of a gradient; the posts have 128 for each of 32 workers."""
STEPS = 13
"""Steps of an epoch: 50,000 images, 32 workers, mini-batches of 128."""
LEARNING_RATE = 0.1
WARM_UP = (0.25, 0.0625, 0.015625, 0.004)
"""Shares of the gradient that are sent in the first epochs."""
KEPT = 0.001
"""Share of the gradient that is sent after the first epochs."""
INT32_BYTES = FLOAT32_BYTES = 4


class Net(NamedTuple):
    """A model whose vectors are encoded."""

    model: str
    classes: int
    words: str
    enlarged: int = 4
    """How many times an image's sides are enlarged."""


NETS = {
    f"{name}-{classes}": Net(f"{name}-imagenet", classes, f"{words}, {classes:,} classes")
    for name, words in (("resnet18", "ResNet-18"), ("resnet50", "ResNet-50"))
    for classes in (10, 1000)
}
"""Models of the post's table."""
SMALL = {"resnet8": Net("resnet8", 10, "ResNet of 8 layers", enlarged=1)}
"""The model whose accuracies are measured here."""

TRAINED = ("resnet18-10", "resnet18-1000")
"""Models that the post's totals are of."""


class Parts(NamedTuple):
    """Numbers of a model's parameters by kind of layer."""

    convolutions: int
    normalisation: int
    dense: int

    @property
    def total(self) -> int:
        """Number of all parameters."""
        return sum(self)


class Selection(NamedTuple):
    """What deep gradient compression sends of a vector of which only convolutions are compressed."""

    chosen: int
    """Number of entries sent of convolutions."""
    whole: int
    """Number of entries of all other tensors."""
    ours_bytes: int
    """Bytes in the encoding used here."""
    ours_deflated_bytes: int
    eight_deflated_bytes: int
    """Bytes of the eight-byte encoding after deflate."""

    @property
    def eight_bytes(self) -> int:
        """Bytes with a 32-bit position and a 32-bit value for each chosen entry, and a value for each of the others."""
        return (INT32_BYTES + FLOAT32_BYTES) * self.chosen + FLOAT32_BYTES * self.whole


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """Bytes of one vector in each encoding."""

    float32: int
    int8: int
    """Bytes with a scale for each tensor."""
    deflated: Mapping[Scope, int]
    """Bytes as 8-bit integers after deflate, by what shares a scale."""
    int8_entropy: float
    """Bytes by a perfect code of single integers: the entropy of each tensor's, added up; with a scale for each."""
    selections: Mapping[float, Selection]
    """Selections by the share of the convolutions that is sent."""

    @property
    def dgc(self) -> Selection:
        """The selection after the warm-up."""
        return self.selections[KEPT]


def task_of(net: Net) -> Task:
    """A task with the model and its layout."""
    usual, shape = (3, SIDE, SIDE), (3, SIDE * net.enlarged, SIDE * net.enlarged)
    layout = models.layout(net.model, (ArrayForm("", usual, "uint8"),), net.classes)
    return Task(
        model=net.model, inputs=(ArrayForm("", shape, "uint8"),), outputs=net.classes, layout=layout, batch_size=BATCH,
        scaling="standardized", gradient_time_s=0.0,
    )  # fmt: skip


@functools.cache
def parts_of(name: str) -> Parts:
    """Numbers of parameters of a model of `NETS`, as it is built."""
    layout = [tensor for tensor in task_of(NETS[name]).layout if not tensor.is_buffer]
    dense_modules = {tensor.name.rpartition(".")[0] for tensor in layout if len(tensor.shape) == 2}
    convolutions = sum(tensor.size for tensor in layout if len(tensor.shape) == 4)
    dense = sum(tensor.size for tensor in layout if tensor.name.rpartition(".")[0] in dense_modules)
    return Parts(convolutions, sum(tensor.size for tensor in layout) - convolutions - dense, dense)


@functools.cache
def first_gradient(name: str) -> Encoded:
    """The encoded first gradient of training; for nets with totals, at each share of the warm-up."""
    trainer = _Trainer((NETS | SMALL)[name])
    return encoded(trainer.task, trainer.gradient(0), (*WARM_UP, KEPT) if name in TRAINED else (KEPT,))


class Epoch(NamedTuple):
    """What an epoch of a worker's own leaves, encoded."""

    change: Encoded
    """How far its weights went."""
    gradient: Encoded
    """Its gradient at the last step."""
    weights: Encoded
    """Its weights after that step."""


@functools.cache
def epoch(name: str) -> Epoch:
    """The encoded vectors of a worker after an epoch of its own."""
    trainer = _Trainer((NETS | SMALL)[name])
    gone = np.zeros_like(trainer.theta)
    for step in range(STEPS):
        gradient = trainer.gradient(step)
        moved = np.where(trainer.is_buffer, gradient, np.float32(LEARNING_RATE) * gradient)
        trainer.theta -= moved
        gone += moved
    return Epoch(*(encoded(trainer.task, vector, ()) for vector in (gone, gradient, trainer.theta)))


class _Trainer:
    """A worker with its first images."""

    def __init__(self, net: Net) -> None:
        self.task = task_of(net)
        data = load_data("cifar10", seed=SEED)
        images = data.train.inputs[""][: BATCH * STEPS].repeat(net.enlarged, axis=2).repeat(net.enlarged, axis=3)
        labels = data.train.targets[""][: len(images)]
        if net.classes > (data.outputs or 0):
            labels = np.random.default_rng(SEED).integers(0, net.classes, len(images))
        self.network = Network(self.task, Examples({"": images}, {"": labels}))
        self.theta = models.initial_parameters(self.task, SEED)
        is_buffer = buffer_mask(self.task)
        assert is_buffer is not None  # batch normalisation keeps running means
        self.is_buffer = is_buffer

    def gradient(self, step: int) -> Floats:
        """The gradient of a step's mini-batch; in the place of buffers, their change."""
        return self.network.gradient(self.theta, np.arange(BATCH * step, BATCH * (step + 1)))[0]


def encoded(task: Task, vector: Floats, shares: tuple[float, ...] = (KEPT,)) -> Encoded:
    """Bytes of a model's parameters in each encoding, from its whole vector."""
    shapes = [tensor.shape for tensor in task.layout if not tensor.is_buffer]
    is_buffer = buffer_mask(task)
    parameters = vector if is_buffer is None else vector[~is_buffer]
    return Encoded(
        float32=parameters.nbytes,
        int8=_bytes(_pieces("int8", {}, shapes, parameters)),
        deflated={
            scope: _bytes(_pieces("int8", {"scope": scope, "deflate": True}, shapes, parameters))
            for scope in get_args(Scope)
        },
        int8_entropy=_entropy_bytes(shapes, parameters),
        selections={share: selection(shapes, parameters, share) for share in shares},
    )


def selection(shapes: list[tuple[int, ...]], parameters: Floats, share: float) -> Selection:
    """What is sent of an (n,) gradient at this share of convolutions, and its bytes."""
    settings = {"warm_up": [], "fraction": share, "whole": "all-but-convolutions"}
    pieces = _pieces("dgc", settings, shapes, parameters)
    (update,) = (piece.update for piece in pieces)
    assert update.indices is not None
    sizes = [int(np.prod(shape)) for shape in shapes]
    is_convolution = np.repeat([len(shape) == 4 for shape in shapes], sizes)[update.indices]
    parts = (
        update.indices[is_convolution].astype("<i4"), update.values[is_convolution], update.values[~is_convolution]
    )  # fmt: skip
    return Selection(
        chosen=int(is_convolution.sum()),
        whole=int((~is_convolution).sum()),
        ours_bytes=_bytes(pieces),
        ours_deflated_bytes=_bytes(tuple(piece._replace(deflate=True) for piece in pieces)),
        eight_deflated_bytes=len(zlib.compress(b"".join(part.tobytes() for part in parts))),
    )


def total_bytes(each_epoch: int, epochs: int, warm_up: tuple[int, ...] = ()) -> int:
    """Bytes that a device uploads in so many epochs of `STEPS` pushes; the first epochs' may have other sizes."""
    sizes = itertools.chain(warm_up, itertools.repeat(each_epoch))
    return STEPS * sum(itertools.islice(sizes, epochs))


def _pieces(name: str, settings: dict[str, Any], shapes: list[tuple[int, ...]], parameters: Floats) -> Pieces:
    compressor = COMPRESSIONS[name].Compression(configure("compression", Part(name=name, settings=settings)), shapes)
    pieces: Pieces = compressor.compress(parameters, None, StepContext(key=SEED))[0]
    return pieces


def _bytes(pieces: Pieces) -> int:
    """Bytes of the pieces' payload on the wire."""
    return sum(payload_bytes(tensor) for tensor in encode_pieces(pieces)[0])


def _entropy_bytes(shapes: list[tuple[int, ...]], parameters: Floats) -> float:
    """Bytes of the integers of all tensors by a code that is perfect for the frequencies of each tensor's."""
    levels = next(piece.update.values for piece in _pieces("int8", {}, shapes, parameters) if piece.name == "levels")
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    found = 0.0
    for tensor in np.split(levels, ends[:-1]):
        counts = np.unique(tensor, return_counts=True)[1]
        found -= float((counts * np.log2(counts / counts.sum())).sum()) / 8
    return found
