"""The documents that have commands, and how tests follow them: `scripts/check-docs` runs them as they are written."""

import os
import re
import signal
import subprocess
import tempfile
from pathlib import Path

from repository_files import ROOT
from warm_command import warm_environment

SCRIPT = ROOT / "scripts/check-docs"
TUTORIAL = [
    f"docs/tutorial/{name}"
    for name in re.findall(r"^\d\. \[[^]]+\]\(([^)]+)\)", (ROOT / "docs/tutorial/index.md").read_text(), re.MULTILINE)
]
"""The tutorial's steps, in order: in simulation."""
PAGES = [
    "docs/index.md",
    "docs/choosing-a-method.md",
    "docs/coming-from-flower.md",
    "docs/shaping.md",
    "docs/faults.md",
    "docs/operating.md",
    "docs/studies.md",
]
"""Pages that are followed in an empty folder: some with live runs."""
FINE_TUNING = ["docs/fine-tuning.md"]
"""A page that is followed in an empty folder, and whose figures are compared with what is said then."""
PROGRAMS = ["docs/own-program.md"]
"""A page that is followed in an empty folder, as root."""
CONTAINERS = ["docs/containers.md"]
"""`scripts/check-docs --docker` follows it, after README.md and in the same checkout."""
ELSEWHERE = {
    "docs/comparing.md": "tests/unit/studies",
    "docs/exporting.md": "tests/unit/exporting",
    "docs/hosts.md": "tests/swarm/test_hosts_commands.py",
    "docs/installing.md": "tests/simulation/test_installed_wheel.py",
    "docs/reproducing.md": "tests/simulation/test_reproducing_document.py",
    "docs/runs-on-disk.md": "tests/unit/cli/test_runs_commands.py",
    "docs/sweeping.md": "tests/simulation/test_sweep_command.py",
    "docs/traces.md": "tests/unit/cli/test_traces_command.py",
}
"""Documents whose commands need hours, a network or other machines: the tests that run the like."""


def follow(documents: list[str], limit_s: float) -> str:
    """Run the commands of documents that the suite has time for; return what is said. AssertionError if one fails.

    `edgebed` is warm, as tests/process/test_quickstart.py does not have it.
    """
    with (
        tempfile.TemporaryDirectory(prefix="edgebed-follow-") as folder,
        subprocess.Popen(
            [str(SCRIPT), "--quick", "--venv", str(warm_environment(Path(folder))), *documents],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            said, _ = process.communicate(timeout=limit_s)
        finally:
            if process.poll() is None:  # with all that it has started
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, said
    return said
