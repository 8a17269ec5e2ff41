"""Filling a node's memory until the kernel ends it: what a leak does, at once."""

from edgebed.emulation.resources import cgroup_usage

STEP_BYTES = 8 << 20
NO_CAP = "its memory cannot be filled: the kernel holds no cap of it"
SHARE_MAX = 4
"""Memory to take at most, as a multiple of the cap: a kernel that grants so much does not hold the cap."""


def fill_memory() -> str:
    """Take memory until this process is killed; return why not. The cgroup that it is in must be its own."""
    limit = cgroup_usage().memory_limit_bytes
    if limit is None:
        return NO_CAP
    taken: list[bytes] = []
    while len(taken) * STEP_BYTES < SHARE_MAX * limit:
        taken.append(b"\1" * STEP_BYTES)  # written, else the kernel would only promise it
    return f"its memory was filled with {SHARE_MAX} times its cap, and the kernel let it"
