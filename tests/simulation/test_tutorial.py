"""The tutorial's commands work in the order in which they stand, as `scripts/check-docs` runs them."""

import os
import re
import signal
import subprocess
import sys

import pytest
from repository_files import ROOT

LIMIT_S = 400.0
INDEX = ROOT / "docs/tutorial/index.md"
STEPS = [f"docs/tutorial/{name}" for name in re.findall(r"^\d\. \[[^]]+\]\(([^)]+)\)", INDEX.read_text(), re.MULTILINE)]

pytestmark = [pytest.mark.simulation, pytest.mark.slow]


@pytest.mark.timeout(LIMIT_S + 30)
def test_the_commands_of_the_tutorial_work_in_their_order() -> None:
    """In one shell, in an empty folder, with the files that the reader writes; none fails."""
    command = [str(ROOT / "scripts/check-docs"), "--quick", "--venv", sys.prefix, *STEPS]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        try:
            said, _ = process.communicate(timeout=LIMIT_S)
        finally:
            if process.poll() is None:  # with all that it has started
                os.killpg(process.pid, signal.SIGKILL)

    assert process.returncode == 0, said
    assert len(STEPS) == 5
    assert "did you mean 'cpus'?" in said
    assert "exit code 2\n" in said
    assert "restart of server" in said or "launch of server" in said
    assert "\n$ edgebed compare fading/1 fading/2 fading/3" in said
    assert said.count("not run (") == 1
