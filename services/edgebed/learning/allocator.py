"""Keep freed memory in the process instead of handing it back to the kernel.

A training step allocates and frees the same few megabytes each time. glibc returns blocks above 128 KiB, and the free
end of the heap, to the kernel at once, and getting them back costs a page fault for every 4 KiB: up to half the time
of a gradient. With the thresholds raised the blocks are reused. Children of a fork inherit the setting.
"""

import ctypes

M_TRIM_THRESHOLD = -1  # numbers of glibc's malloc.h
M_MMAP_THRESHOLD = -3
MMAP_THRESHOLD_BYTES = 32 * 2**20  # the most glibc accepts on 64 bits
EVALUATION_CHUNK = 50  # the activations of as many images stay in the cache; 500 take longer, and 10 x the memory
TRIM_THRESHOLD_BYTES = 2**31 - 1  # the largest int, which mallopt takes


def keep_freed_memory() -> None:
    """Raise both thresholds of this process; does nothing where the C library has no such setting."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES)
        mallopt(M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES)
