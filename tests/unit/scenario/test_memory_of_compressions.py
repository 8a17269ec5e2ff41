"""What a worker's compression needs of memory is counted: never less than what it was seen to hold."""

import tracemalloc

import msgspec
import numpy as np
import pytest

from edgebed.algorithms.compressor import Moment
from edgebed.algorithms.registry import COMPRESSIONS, configure
from edgebed.scenario.memory import DENSE_WORKER_COPIES, worker_copies
from edgebed.scenario.plan import Method, Part
from edgebed.wire.tensors import encode_pieces

SHAPES = [(700, 1000), (700,), (300, 999), (300,)]
SIZE = sum(int(np.prod(shape)) for shape in SHAPES)
MODEL = 4 * SIZE
SETTINGS = {
    "none": ("none", {}),
    "top-k": ("top-k", {"fraction": 0.1}),
    "top-k with a residual": ("top-k", {"fraction": 0.01, "residual": True}),
    "threshold that sends all": ("threshold", {"threshold": 1e-9}),
    "threshold with a residual": ("threshold", {"threshold": 1.0, "residual": True}),
    "half by esgd": ("esgd", {"fraction": 0.5}),
    "little by esgd": ("esgd", {"fraction": 0.01}),
    "dgc": ("dgc", {"warm_up": []}),
    "dgc in its first epoch": ("dgc", {"warm_up": [0.25]}),
    "int8": ("int8", {}),
    "int8 with a residual": ("int8", {"residual": True, "deflate": True}),
    "qsgd": ("qsgd", {}),
    "sign": ("sign", {}),
    "powersgd-local": ("powersgd-local", {}),
}


def part_of(what: str) -> Part:
    """As a plan has it."""
    name, settings = SETTINGS[what]
    return Part(name=name, settings=settings)


def held(part: Part) -> int:
    """Bytes at most, while it compresses and encodes, what it remembers included."""
    compressor = COMPRESSIONS[part.name].Compression(configure("compression", part), SHAPES)
    vector = np.random.default_rng(0).laplace(size=SIZE).astype(np.float32)
    memory = None
    tracemalloc.start()
    try:
        for step in range(3):
            pieces, memory = compressor.compress(vector, memory, Moment(key=step, step=step, loss=1.0 + step))
            encode_pieces(pieces)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("what", SETTINGS)
def test_a_worker_has_room_for_what_its_compression_holds(what: str) -> None:
    """A dense push needs the model, the gradient and copies of them; compressing comes on top."""
    method = Method(name="m", parts={"compression": part_of(what)})
    assert worker_copies(method, MODEL) >= held(part_of(what)) + (DENSE_WORKER_COPIES.returned - 1) * MODEL


def test_every_compression_is_measured() -> None:
    """One that is added needs a line above, and what it holds a number in the table."""
    assert {name for name, _ in SETTINGS.values()} == set(COMPRESSIONS)
    bare = Method(name="m", parts={"compression": Part(name="none")})
    for what in SETTINGS.keys() - {"none"}:
        method = msgspec.structs.replace(bare, parts={"compression": part_of(what)})
        assert worker_copies(method, MODEL) > worker_copies(bare, MODEL), what
