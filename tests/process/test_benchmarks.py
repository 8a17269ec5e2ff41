"""The benchmark of the server measures updates that are applied, and its parts are all that an update costs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_each_part_of_an_update_is_timed() -> None:
    """A push that is refused, or a part under another name, would leave nothing to be timed."""
    command = [sys.executable, "-m", "benchmarks", "update", "--quick", "--json"]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": "services"}, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    spent_us = json.loads(done.stdout)["update"]["us"]
    assert min(spent_us.values()) > 0.0
    assert sum(spent_us.values()) == pytest.approx(2 * spent_us["all"])
