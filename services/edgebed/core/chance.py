"""Every random draw has its key: (seed, purpose, node, k-th draw).

So the same scenario and seed give the same draws in every runtime, whatever else was drawn before, and a single draw
can be repeated without replaying a run. Keys are hashed with BLAKE2b, which is the same everywhere.
"""

import hashlib
import math

import numpy as np

from edgebed.core.plan import Waiting


def draw_name(node: str, incarnation: int) -> str:
    """Return the name that a node's draws have in one incarnation, so that none repeats the draws of the one before."""
    return node if incarnation == 1 else f"{node}#{incarnation}"


def key(seed: int, purpose: str, node: str = "", k: int = 0) -> int:
    """Return a 128-bit number that the arguments alone determine."""
    text = f"{seed}/{purpose}/{node}/{k}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "little")


def uniform(seed: int, purpose: str, node: str = "", k: int = 0) -> float:
    """Return a draw from [0, 1)."""
    return (key(seed, purpose, node, k) >> 75) * 2.0**-53


def generator(seed: int, purpose: str, node: str = "", k: int = 0) -> np.random.Generator:
    """Return a numpy generator for draws of many numbers."""
    return np.random.Generator(np.random.Philox(key=key(seed, purpose, node, k)))


def waiting_time(waiting: Waiting, seed: int, node: str, k: int) -> float:
    """Return the k-th pause of `node`, in seconds."""
    if waiting.distribution == "constant":
        return waiting.low_s
    draw = uniform(seed, "waiting", node, k)
    if waiting.distribution == "uniform":
        return waiting.low_s + draw * (waiting.high_s - waiting.low_s)
    return -waiting.mean_s * math.log1p(-draw)
