"""The tutorial's commands work in the order in which they stand, and so do the examples in Python."""

import re
from pathlib import Path

import pytest
from documented_commands import TUTORIAL, follow
from repository_files import ROOT
from warm_command import run_script

LIMIT_S = 400.0

pytestmark = [pytest.mark.simulation, pytest.mark.slow]


@pytest.mark.timeout(LIMIT_S + 30)
def test_the_commands_of_the_tutorial_work_in_their_order() -> None:
    """In one shell, in an empty folder, with the files that the reader writes; none fails."""
    said = follow(TUTORIAL, LIMIT_S)

    assert len(TUTORIAL) == 5
    assert "did you mean 'cpus'?" in said
    assert "exit code 2\n" in said
    assert "launch of server" in said
    assert "600 applied, 1 lost with a worker; all accounted for" in said
    assert "\n$ edgebed compare fading/1 fading/2 fading/3" in said
    assert said.count("not run (") == 2


@pytest.mark.parametrize("document", ["README.md", "docs/python.md"])
def test_the_examples_in_python_work(document: str, tmp_path: Path) -> None:
    """The first block of each document, in an empty folder; it prints two arrays."""
    (example, *_) = re.findall(r"^```python\n(.*?)^```$", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL)

    done = run_script(example, tmp_path)

    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"\[[\d\s]+\] \[[\d.\s]+\]\n", done.stdout), done.stdout
