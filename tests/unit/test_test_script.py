"""`scripts/test` ends with 0 exactly where all that was asked for has passed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PASSES = "tests/unit/test_repository.py::test_scripts_can_be_run_and_read_by_bash"
NEEDS_DATA = "tests/unit/wire/test_tensors.py::test_a_real_gradient_of_the_cnn_at_one_percent_costs_few_bytes_an_entry"


@pytest.fixture(autouse=True)
def environment_of_the_project():
    """The script brings it up to date, which only one that it has made may expect."""
    if not (Path(sys.prefix) / ".edgebed-dev").exists():
        pytest.skip("no environment that scripts/test may bring up to date: scripts/setup --dev makes one")


def run(*arguments: str, strict: bool = False) -> subprocess.CompletedProcess[str]:
    """The script on a machine without data sets, on these tests alone."""
    own = ("PYTEST_", "EDGEBED_", "COV_")  # what this run of the suite has set for itself
    environment = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    environment |= {"EDGEBED_VENV": sys.prefix} | ({"EDGEBED_TEST_STRICT": "1"} if strict else {})
    return subprocess.run(
        [ROOT / "scripts/test", *arguments], env=environment, capture_output=True, text=True, check=False
    )


def test_all_that_could_run_has_passed():
    """It ends with 0 and says what it left out."""
    done = run(PASSES, NEEDS_DATA)

    assert "left out: no MNIST" in done.stdout
    assert "failed:" not in done.stdout
    assert done.returncode == 0, done.stderr


def test_a_test_that_is_left_out_fails_where_nothing_may_be():
    """It ends with 1 and names the group."""
    done = run(PASSES, NEEDS_DATA, strict=True)

    assert "failed: tests side by side" in done.stdout
    assert done.returncode == 1, done.stderr
