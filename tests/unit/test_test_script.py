"""`scripts/test` ends with 0 exactly where all that was asked for has passed; `fast` and `soak` set nothing up."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PASSES = "tests/unit/test_repository.py::test_scripts_can_be_run_and_read_by_bash"
NEEDS_DATA = "tests/unit/wire/test_tensors.py::test_a_real_gradient_of_the_cnn_at_one_percent_costs_few_bytes_an_entry"
SLOW = "tests/unit/test_test_script.py::test_all_that_could_run_has_passed"
HAS_EXAMPLES = "tests/unit/core/test_chance.py"


@pytest.fixture
def environment_of_the_project():
    """The script brings it up to date, which is for an environment that was made for this checkout, and no other."""
    stamp = Path(sys.prefix) / ".edgebed-dev"
    if not (stamp.exists() and stamp.read_text().rstrip("\n").endswith(f" {ROOT}")):
        pytest.skip("no environment that scripts/test may bring up to date: scripts/setup --dev makes one")


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The script on a machine without data sets, on these tests alone."""
    own = ("PYTEST_", "EDGEBED_", "COV_", "HYPOTHESIS_")  # what this run of the suite has set for itself
    environment = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    environment |= {"EDGEBED_VENV": sys.prefix} | variables
    return subprocess.run(
        [ROOT / "scripts/test", *arguments], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.usefixtures("environment_of_the_project")
def test_all_that_could_run_has_passed():
    """It ends with 0 and says what it left out."""
    done = run(PASSES, NEEDS_DATA)

    assert "left out: no MNIST" in done.stdout
    assert "failed:" not in done.stdout
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("environment_of_the_project")
def test_a_test_that_is_left_out_fails_where_nothing_may_be():
    """It ends with 1 and names the group."""
    done = run(PASSES, NEEDS_DATA, EDGEBED_TEST_STRICT="1")

    assert "failed: tests side by side" in done.stdout
    assert done.returncode == 1, done.stderr


@pytest.mark.slow
def test_fast_runs_quick_tests_and_says_what_it_left_out():
    """It ends with 0; what is slow is not among them, and a property is tried with the profile's twenty examples."""
    done = run("fast", PASSES, NEEDS_DATA, SLOW, HAS_EXAMPLES, "--hypothesis-show-statistics")

    assert "settings.max_examples=20" in done.stdout
    assert "left out: style, format, types, what is slow" in done.stdout
    assert "left out: no MNIST" in done.stdout
    assert "failed:" not in done.stdout
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_fast_leaves_what_is_slow_to_the_whole_suite():
    """Where nothing else was asked for, no test is selected, and that is said."""
    done = run("fast", SLOW)

    assert "failed: no test was selected" in done.stdout
    assert done.returncode == 1, done.stderr


@pytest.mark.slow
def test_a_soak_draws_by_its_seed_which_it_says():
    """More examples than the suite has; what does not draw is not among them; a share of the tests is chosen by it."""
    several = ("tests/unit/core/test_chance.py", "tests/unit/core/test_units.py", PASSES)
    done = run("soak", "--seed", "17", "--times", "2", "--share", "2", *several, "--hypothesis-show-statistics")

    assert "settings.max_examples=400" in done.stdout
    assert "test_repository" not in done.stdout.partition("again:")[0]
    assert "the same draws again: scripts/test soak --seed 17 --share 2 --times 2" in done.stdout
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_soak_takes_whole_numbers():
    """What is wrong is said before anything runs."""
    done = run("soak", "--share", "half")

    assert done.stderr == "scripts/test soak --share half: not a whole number from 1\n"
    assert done.returncode == 2


def test_fast_sets_up_nothing_where_an_environment_is(tmp_path):
    """In a copy of the script beside a setup that would be noticed: it is not called, and this checkout is tested."""
    python = tmp_path / "environment/bin/python"
    python.parent.mkdir(parents=True)
    (tmp_path / "scripts").mkdir()
    write_program(python, 'echo "$PYTHONPATH: $*"')
    write_program(tmp_path / "scripts/setup", "echo set up")
    write_program(tmp_path / "scripts/test", (ROOT / "scripts/test").read_text(encoding="utf-8"))
    environment = {**os.environ, "EDGEBED_VENV": str(python.parents[1])}
    arguments = [tmp_path / "scripts/test", "fast", "-k", "wire"]

    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=True)
    python.unlink()
    without = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)

    assert f"{tmp_path}/services: -m pytest" in done.stdout
    assert "tests/unit -k wire" in done.stdout
    assert "set up" not in done.stdout
    assert "set up" in without.stdout


def write_program(path: Path, text: str) -> None:
    """A shell script that can be run."""
    path.write_text(text if text.startswith("#!") else f"#!/usr/bin/env bash\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
