"""What nodes get from the process that they are forked from."""

import subprocess
import sys

import pytest

LOADED = """
from edgebed.runtimes.processes import fork_server
fork_server._load()
from pathlib import Path
Path.read_bytes = None
from edgebed.core.package import fingerprint
print(fingerprint())
"""


@pytest.mark.slow
def test_a_node_is_of_the_code_that_was_loaded_whatever_the_files_are_by_then():
    """So one that is launched anew is not refused for what somebody has edited since."""
    run = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=False)

    assert (run.returncode, len(run.stdout.strip())) == (0, 16), run.stderr
