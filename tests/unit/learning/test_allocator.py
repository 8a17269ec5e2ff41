"""Memory that is freed stays in the process."""

import subprocess
import sys

import pytest

CODE = """
import ctypes, resource, sys
import numpy as np
if not hasattr(ctypes.CDLL(None), "mallopt"):
    print("none"); sys.exit()
from edgebed.learning.allocator import keep_freed_memory
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(2**19, np.float32)  # 2 MiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
keep_freed_memory()
faults()
print(faults())
"""


def test_large_blocks_are_reused_without_page_faults() -> None:
    """Twenty blocks of 2 MiB, of 512 pages each, cost a handful of page faults once the first have been had."""
    result = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    if result.stdout.strip() == "none":
        pytest.skip("this C library has no mallopt")
    assert int(result.stdout) < 100
