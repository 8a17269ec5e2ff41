"""docs/example-tasks.md works: its tasks meet what they expect, and leave the same bits in every runtime."""

import ast
import functools
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from quick_runs import run

from edgebed.core import records
from edgebed.core.imports import forgetting
from edgebed.running.results import Run

pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/example-tasks.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"File\s`([^`]+)`[^`]*?:\n\n```\w+\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL))
TASKS = [Path(name).stem for name in FILES if name.endswith(".yaml")]
LINES_MAX = 15
CASES = [
    *(pytest.param(name, "process", marks=pytest.mark.process) for name in TASKS),
    pytest.param(TASKS[0], "docker", marks=pytest.mark.docker),
    *(pytest.param(name, "docker", marks=[pytest.mark.docker, pytest.mark.soak]) for name in TASKS[1:]),
]
"""Containers hold the same nodes as processes do: of one task in the suite."""
FOLDER = tempfile.TemporaryDirectory(prefix="edgebed-examples-")  # gone when the tests are over


@functools.cache
def folder() -> Path:
    """The files of the document, with a text and a table of the kind that it speaks of."""
    folder = Path(FOLDER.name)
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "plays.txt").write_text((ROOT / "LICENSE").read_text(encoding="utf-8"), encoding="utf-8")
    rng = np.random.default_rng(1)
    person, x = rng.integers(0, 16, 1_200), rng.normal(3.0, 2.0, (1_200, 4))
    y = x @ [1.0, -0.5, 0.0, 0.2] + 0.1 * (person % 5) + rng.normal(0.0, 0.2, 1_200)
    table = np.column_stack([person, x, y])
    np.savetxt(folder / "voices.csv", table, delimiter=",", header="person,a,b,c,d,score", comments="")
    return folder


@functools.cache
def trained(name: str, runtime: str, *sets: str) -> Run:
    """A run of a task of the document, with some options; each once for all tests."""
    with forgetting(folder()):
        return run(folder() / f"{name}.yaml", runtime=runtime, runs_dir=folder() / "runs", set=sets)


def test_each_task_is_short() -> None:
    """Statements of Python, without imports and docstrings."""
    for name in TASKS:
        tree = ast.parse(FILES[f"{name}.py"])
        lines = {
            node.lineno
            for node in ast.walk(tree)
            if isinstance(node, ast.stmt)
            and not isinstance(node, ast.Import | ast.ImportFrom)
            and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        }
        assert len(lines) <= LINES_MAX, name


@pytest.mark.simulation
@pytest.mark.parametrize("name", TASKS)
def test_each_task_meets_what_it_expects(name: str) -> None:
    """As it is written."""
    found = trained(name, "simulation")
    assert found.exit_code == 0, [each.summary.expectations for each in found.trials.values()]


@pytest.mark.parametrize(("name", "runtime"), CASES)
def test_one_worker_leaves_the_same_bits_in_every_runtime(name: str, runtime: str) -> None:
    """Weights, and what was measured of each version."""
    fleet = "edge" if "edge:" in FILES[f"{name}.yaml"] else "phone"
    sets = (f"fleet.{fleet}.count=1", "stop.updates=20", "evaluation.every=10 updates", "expect=null")
    (expected,) = trained(name, "simulation", *sets).trials.values()
    (found,) = trained(name, runtime, *sets).trials.values()

    np.testing.assert_array_equal(found.checkpoint(), expected.checkpoint())
    measured = [
        [(each.version, each.measured) for _, _, each in trial.events() if isinstance(each, records.Evaluated)]
        for trial in (expected, found)
    ]
    assert measured[0] == measured[1]
