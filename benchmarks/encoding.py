"""Bytes an entry of a sparse update, header included, on a real gradient of the CNN at 1 % density."""

from typing import Any

from benchmarks.subjects import images, real_gradient, task
from edgebed.algorithms.compression import top_k
from edgebed.wire import frames as codec
from edgebed.wire import messages
from edgebed.wire.tensors import encode_update

AUTHORS_PICKLE_BYTES = 28_241 / 2_117  # a push of the released code of Hardy et al. 2017 at c = 0.01


def measure(*, quick: bool) -> dict[str, Any]:  # it takes no time
    """Bytes an entry with float32 and float16 values, and of the AdaComp authors' format."""
    shapes = [tensor.shape for tensor in task().layout]
    found: dict[str, Any] = {"images": images().name, "authors": AUTHORS_PICKLE_BYTES}
    for values in ("float32", "float16"):
        config = top_k.Config(fraction=0.01, values=values)
        update = top_k.Compression(config, shapes).choose(real_gradient())
        tensor, frames = encode_update("update", update)
        push = messages.Push(sender="edge-0", incarnation=1, step=100, base=19_000, loss=0.5, tensors=(tensor,))
        found[values] = codec.size_bytes(codec.encode(push, frames)) / update.entries
    return found
