"""What compressions cost: CPU time for each million parameters, and bytes for each entry; exact top-k against torch's.

A vector of a million numbers, distributed as gradients of real networks are: most of them small. Times are medians of
CPU time of one thread, in turns; memory is as it is in the middle of training.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from edgebed.algorithms.compression.top_k import largest
from edgebed.algorithms.compressor import Compressor, StepContext
from edgebed.algorithms.registry import COMPRESSIONS, configure
from edgebed.core.plan import Part
from edgebed.wire.tensors import encode_piece, payload_bytes

SHAPES = [(512, 1024), (512,), (64, 64, 3, 3), (64,), (1024, 429), (448,)]
MILLION = 1_000_000
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "none": ("none", {}),
    "none, float16": ("none", {"values": "float16"}),
    "top-k, 1 %": ("top-k", {"fraction": 0.01}),
    "top-k, 1 %, residual": ("top-k", {"fraction": 0.01, "residual": True}),
    "random-k, 1 %": ("random-k", {"fraction": 0.01}),
    "threshold": ("threshold", {"threshold": 1.0}),
    "esgd, 50 %": ("esgd", {"fraction": 0.5}),
    "dgc, 0.1 %": ("dgc", {"warm_up": []}),
    "dgc, 0.1 %, sampled": ("dgc", {"warm_up": [], "selection": "sampled"}),
    "int8": ("int8", {}),
    "int8, DEFLATE": ("int8", {"deflate": True}),
    "qsgd, 4 levels": ("qsgd", {}),
    "sign": ("sign", {}),
    "powersgd-local, rank 2": ("powersgd-local", {}),
}
FRACTIONS = (0.1, 0.01, 0.001)
WARM_UP = 2


def measure(*, quick: bool) -> dict[str, Any]:
    """Rows of compressions, and of shares for top-k."""
    torch.set_num_threads(1)
    rounds = 3 if quick else 15
    rng = np.random.default_rng(0)
    size = sum(int(np.prod(shape)) for shape in SHAPES)
    vectors = [rng.laplace(size=size).astype(np.float32) for _ in range(WARM_UP + rounds)]
    return {
        "kinds": [_row(what, name, settings, vectors) for what, (name, settings) in KINDS.items()],
        "top_k": [_top_k(fraction, np.abs(vectors[0]), rounds) for fraction in FRACTIONS],
    }


def _row(what: str, name: str, settings: dict[str, Any], vectors: list[Any]) -> dict[str, Any]:
    config = configure("compression", Part(name=name, settings=settings))
    compressor: Compressor = COMPRESSIONS[name].Compression(config, SHAPES)
    memory, taken = None, []
    for step, vector in enumerate(vectors):
        begun_s = time.thread_time()
        pieces, memory = compressor.compress(vector, memory, StepContext(step, step))
        encoded = [encode_piece(piece) for piece in pieces]
        sent_s = time.thread_time()
        update = compressor.restore(pieces)
        taken.append((sent_s - begun_s, time.thread_time() - sent_s))
    send_s, restore_s = np.median(taken[WARM_UP:], axis=0).tolist()
    num_bytes = sum(payload_bytes(tensor) for tensor, _ in encoded)
    return {
        "what": what,
        "send_us": 1e6 * send_s * MILLION / compressor.size,
        "restore_us": 1e6 * restore_s * MILLION / compressor.size,
        "bytes_an_entry": num_bytes / update.entries,
        "share_of_dense": num_bytes / (4 * compressor.size),
    }


def _top_k(fraction: float, magnitude: Any, rounds: int) -> dict[str, Any]:
    """In turns."""
    count, tensor = int(fraction * len(magnitude)), torch.from_numpy(magnitude)
    subjects: dict[str, Callable[[], Any]] = {
        "own": lambda: largest(magnitude, count),
        "torch": lambda: torch.topk(tensor, count, sorted=False),
    }
    taken: dict[str, list[float]] = {name: [] for name in subjects}
    for _ in range(WARM_UP + rounds):
        for name, work in subjects.items():
            begun_s = time.thread_time()
            work()
            taken[name].append(time.thread_time() - begun_s)
    own_s, torch_s = (float(np.median(taken[name][WARM_UP:])) for name in ("own", "torch"))
    return {"fraction": fraction, "own_us": 1e6 * own_s, "torch_us": 1e6 * torch_s, "ratio": own_s / torch_s}
