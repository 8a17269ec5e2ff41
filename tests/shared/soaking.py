"""How much a test draws at random: a little in the suite, always the same; more, and others, in `scripts/test soak`.

Tests that draw are marked `random`, or are properties; those for which the suite has no time at all are marked `soak`.
"""

import os
import zlib

SEED = int(os.environ.get("EDGEBED_SOAK_SEED", "0"))
"""All draws of a soak follow from it; 0: this is no soak."""
TIMES = int(os.environ.get("EDGEBED_SOAK_TIMES", "1"))
"""A soak draws so many times as much."""
SHARE = int(os.environ.get("EDGEBED_SOAK_SHARE", "1"))
"""A soak runs one in so many of its tests."""
SEEDS_APART = 10_000
"""Between the first seeds of two soaks."""


def count(few: int, many: int) -> int:
    """How many there are to be: `few` in the suite, `many` in a soak."""
    return many * TIMES if SEED else few


def seeds(few: int, many: int) -> range:
    """As many seeds: in the suite those from 1."""
    first = SEED * SEEDS_APART + 1
    return range(first, first + count(few, many))


def is_in_share(name: str) -> bool:
    """Whether a test is among those that this soak runs, which its seed decides."""
    return zlib.crc32(f"{SEED} {name}".encode()) % SHARE == 0
