"""Every part of `scripts/bench` runs in its quick form, and what it measures is done.

Parts that need minutes, containers or Prometheus are left to `scripts/campaign --only bench`.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks import PARTS
from benchmarks.__main__ import table

from edgebed.emulation import means

ROOT = Path(__file__).parents[2]
LONG = ("faults", "shards", "containers", "watching")
IN_CONTAINERS = ("faults", "containers")
BY_KERNEL = ("links", "namespaces", "faults", "shards")
"""Parts that need namespaces and cgroups."""


def why_not(part: str) -> str | None:
    """What is missing here for a part; None if nothing is."""
    if part in BY_KERNEL and (reason := means.why_no_namespaces() or means.why_no_cgroups()):
        return reason
    if part == "watching" and not shutil.which("prometheus"):
        return "no Prometheus: install it (Debian: apt-get install prometheus, and stop the service)"
    return None


def measured(*parts: str) -> tuple[dict[str, Any], list[str]]:
    """What these parts find in little time, by part, and the lines of the table of it."""
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", *parts, "--quick", "--json"],
        cwd=ROOT, env=os.environ | one_thread | {"PYTHONPATH": "services"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return found, list(table(found))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_part_that_takes_no_minutes_runs() -> None:
    """A part that nothing runs is broken by the next change of what it calls. One process measures all in turn."""
    parts = [part for part in PARTS if part not in LONG and not why_not(part)]

    found, lines = measured(*parts)

    assert list(found) == parts
    assert len(lines) > len(parts)
    _updates_have_parts(found["update"]["us"])
    assert list(found["direct"]) == ["none", "constant", "differentiated"]  # as a paper's page names them
    assert min(found["direct"].values()) > 0.0
    assert [row["failed"] for row in found.get("namespaces", ())] in ([], [""])


def _updates_have_parts(spent_us: dict[str, float]) -> None:
    """A push that is refused, or a part under another name, would leave nothing to be timed."""
    assert min(spent_us.values()) > 0.0
    assert sum(spent_us.values()) == pytest.approx(2 * spent_us["all"])


@pytest.mark.campaign
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=pytest.mark.docker if part in IN_CONTAINERS else ()) for part in LONG]
)
def test_a_part_that_takes_minutes_runs(part: str) -> None:
    """Parts that need more than the suite has run, too: time, containers, Prometheus."""
    if reason := why_not(part):
        pytest.skip(reason)

    found, lines = measured(part)

    assert found[part]
    assert len(lines) > 1
