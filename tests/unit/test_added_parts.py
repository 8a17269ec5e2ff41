"""Parts that are added, as the documents say and as anybody might, leave the suite green: a file and a line each.

Nothing else is touched but the documents that scripts/generate-docs writes.
"""

import shutil
from pathlib import Path

import pytest
from followed_document import ROOT, Document, copied, run_in

PART = '''"""{what}

Made up for a test of the suite; there is no paper, and nobody called Smith 2024.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from edgebed.algorithms.{base} import {names}
from edgebed.algorithms.update import {updates}
'''
COMPRESSION = (
    PART.format(
        what="Every other entry is sent, these and those by turns.",
        base="compressor",
        names="Compressor, Floats, StepContext, Piece, Pieces, named",
        updates="ModelUpdate",
    )
    + '''

@dataclass(frozen=True, kw_only=True)
class Config:
    """Every other entry is sent."""

    name: Literal["every-other"] = "every-other"
    alternate: bool = True
    """Whether the others are sent the next time."""


class Compression(Compressor):
    """Counts steps."""

    travels = {"parity": "0 or 1, int8", "entries": "every other one, float32"}
    copies = 1.0

    def compress(self, vector: Floats, memory: int | None, context: StepContext) -> tuple[Pieces, int]:
        """(n,) -> (n / 2,)."""
        begin = (memory or 0) % 2 if self.config.alternate else 0
        entries = vector[begin::2].copy()
        parity = ModelUpdate(1, None, np.array([begin], np.int8))
        return (Piece("parity", parity), Piece("entries", ModelUpdate(len(entries), None, entries))), begin + 1

    def restore(self, pieces: Pieces) -> ModelUpdate:
        """The others are 0."""
        parity, entries = named(pieces, "parity", "entries")
        values = np.zeros(self.size, np.float32)
        values[int(parity.values[0]) :: 2] = entries.values
        return ModelUpdate(self.size, None, values)
'''
)
AGGREGATION = (
    PART.format(
        what="Every two pushes make a step.",
        base="aggregator",
        names="NO_INFO, Aggregator, PushInfo",
        updates="Applied, ModelUpdate, total",
    ).replace(
        "\nfrom edgebed.algorithms.update",
        "\nfrom edgebed.algorithms.schedule import Scheduled\nfrom edgebed.algorithms.update",
    )
    + '''

@dataclass(frozen=True, kw_only=True)
class Config(Scheduled):
    """The mean of every two pushes."""

    name: Literal["pairs"] = "pairs"


class Aggregation(Aggregator):
    """The one that waits for another."""

    @classmethod
    def together(cls, config: Config, workers: int) -> int:
        """Two."""
        return 2

    @classmethod
    def holds(cls, config: Config, workers: int, share: float | None) -> float:
        """One, as it came, and the sum."""
        return 3.0 if share is None else 8.0 * share + 2.0

    def __init__(self, config, theta, version=0) -> None:
        super().__init__(config, theta, version)
        self.held: list[ModelUpdate] = []

    def push(self, worker: str, update: ModelUpdate, base: int, info: PushInfo = NO_INFO) -> Applied:
        """Hold it, or apply both; its worker goes on."""
        self.held.append(update)
        if len(self.held) < 2:
            return Applied((worker,), np.zeros(0, np.int64), held=True)
        _, indices, values = total(self.held)
        self.move(indices, values, 2)
        self.version += 2
        self.held = []
        return Applied((worker,), indices)
'''
)
FAULT = '''"""`hiccup`: a node stops for a moment, twice."""

from typing import ClassVar

from edgebed.scenario.faults.settings.entry import FaultSection, step
from edgebed.scenario.faults.settings.targets import Target
from edgebed.scenario.faults.settings.triggers import Triggered
from edgebed.core.planned.fault import FaultStep
from edgebed.scenario.section import Duration


class Hiccup(FaultSection, Triggered):
    """A node stops for a moment, twice."""

    kind: ClassVar[str] = "hiccup"
    example: ClassVar[str] = "{ hiccup: edge, before: push, step: 3, pause: 2s }"

    hiccup: Target
    """Whom."""
    pause: Duration = 1.0
    """In between."""

    def steps(self, node: str) -> tuple[FaultStep, ...]:
        """Frozen and thawed, and again."""
        times_s = (0.0, 0.1, 0.1 + self.pause, 0.2 + self.pause)
        return tuple(step(at_s, node, ("freeze", "thaw")[k % 2]) for k, at_s in enumerate(times_s))
'''
MADE_UP = {
    "algorithms/compression/every_other.py": (COMPRESSION, "algorithms/registry.py", '    "compression",\n'),
    "algorithms/aggregation/pairs.py": (AGGREGATION, "algorithms/registry.py", '    "aggregation",\n'),
    "scenario/faults/hiccup.py": (FAULT, "scenario/faults/registry.py", "KINDS = _table(\n"),
}
"""Each file, the file of its table, and the line that its own comes below."""
TESTED = (
    "algorithms/test_registry.py",
    "algorithms/test_subsampling.py",
    "algorithms/test_delay_compensated.py",
    "algorithms/test_compressors.py",
    "algorithms/test_aggregation_state.py",
    "scenario/faults/test_kinds.py",
    "scenario/faults/test_doze.py",
    "planning/test_memory_of_aggregations.py",
    "planning/test_memory_of_compressions.py",
    "planning/test_memory.py",
    "algorithms/test_methods_document.py",
    "test_references.py",
    "scenario/test_reference.py",
    "wire/test_protocol_document.py",
)
"""Tests of what holds for all parts, and of the documents' own."""


def add(services: Path) -> None:
    """The parts that are made up, with a line of a table each."""
    for place, (text, table, marker) in MADE_UP.items():
        (services / "edgebed" / place).write_text(text, encoding="utf-8")
        registry = services / "edgebed" / table
        known = registry.read_text(encoding="utf-8")
        assert known.count(marker) == 1
        line = f'    "{Path(place).stem}",\n'
        registry.write_text(known.replace(marker, f"{marker}{line}"), encoding="utf-8")


@pytest.mark.campaign
@pytest.mark.timeout(600)
def test_whatever_parts_are_added_the_documents_stay_true_and_the_suite_green(tmp_path):
    """First those that are made up, then those of both documents; then the documents of all are generated."""
    root = copied(tmp_path)
    for folder in ("docs", "schema", "scenarios", "tests/shared", *(f"tests/unit/{Path(t).parent}" for t in TESTED)):
        ignored = shutil.ignore_patterns("__pycache__", "results")
        shutil.copytree(ROOT / folder, root / folder, ignore=ignored, dirs_exist_ok=True)
    for name in ("pyproject.toml", "tests/conftest.py", "tests/unit/conftest.py"):
        shutil.copy(ROOT / name, root / name)
    add(root / "services")
    for name in ("creating-a-method.md", "creating-a-fault.md"):
        Document(name).build_in(root)
    done = run_in(root, "-m", "docs.generate", package=root / "services")
    assert done.returncode == 0, done.stderr

    tests = [f"tests/unit/{name}" for name in TESTED]
    arguments = ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests)
    done = run_in(root, *arguments, package=root / "services", timeout_s=300)

    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr
    for name in ("subsampling", "every-other", "delay-compensated", "pairs", "doze", "hiccup"):
        assert f"`{name}`" in (root / "docs/scenario.md").read_text(encoding="utf-8")
