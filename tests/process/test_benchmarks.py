"""What a benchmark measures is done: updates are applied, its parts are all that one costs, and gradients are taken."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def measured(part: str) -> dict[str, Any]:
    """What a part finds in little time."""
    command = [sys.executable, "-m", "benchmarks", part, "--quick", "--json"]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": "services"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)[part]


def test_each_part_of_an_update_is_timed() -> None:
    """A push that is refused, or a part under another name, would leave nothing to be timed."""
    spent_us = measured("update")["us"]

    assert min(spent_us.values()) > 0.0
    assert sum(spent_us.values()) == pytest.approx(2 * spent_us["all"])


def test_each_way_to_minimise_the_gradient_loss_is_timed() -> None:
    """The table and the cause on a paper's page name them."""
    spent_s = measured("direct")

    assert list(spent_s) == ["none", "constant", "differentiated"]
    assert min(spent_s.values()) > 0.0
