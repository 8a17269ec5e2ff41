"""The README's commands work in the order in which they stand, as `scripts/check-docs` runs them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIMIT_S = 400.0


@pytest.mark.timeout(LIMIT_S + 30)
def test_the_commands_of_the_readme_work_in_their_order(data_dir: Path) -> None:
    """In one shell, in a fresh copy of the checkout; each is run, and none fails."""
    command = [str(ROOT / "scripts/check-docs"), "--quick", "--venv", sys.prefix]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        try:
            said, _ = process.communicate(timeout=LIMIT_S)
        finally:
            if process.poll() is None:  # with all that it has started
                os.killpg(process.pid, signal.SIGKILL)

    assert process.returncode == 0, said
    assert "\n$ edgebed reproduce hardy2017 --list" in said
