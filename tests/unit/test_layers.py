"""The packages stand in one order, and each imports only those before it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import edgebed

ROOT = Path(edgebed.__file__).parent
DOCUMENTS = Path(__file__).parents[2]
ORDER = (
    "core", "algorithms", "wire", "learning", "scenario", "roles", "emulation", "planning", "journal", "metrics",
    "runtimes", "running", "studies", "reports", "exporting", "cli",
)  # fmt: skip
FILES_MAX = 20
CIRCLES = (
    ("emulation.model.flows", "emulation.model.lane"),  # a lane has the flows that pass it
    ("runtimes.simulation.simulated_connection", "runtimes.simulation.simulated_lanes"),  # a departure, its connection
    (
        "scenario.hosts",
        "scenario.mistakes.shard_problems",
        "scenario.programs.trial",
        "scenario.roster",
        "scenario.schema",
    ),  # checks of what schema joins
)
"""Modules of a package that name each other, each for annotations alone in one of the two directions."""


def imports() -> Iterator[tuple[Path, str]]:
    """(file, module that it imports), wherever in the file it does."""
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            yield from ((path.relative_to(ROOT), module) for module in modules)


def test_a_package_imports_only_those_before_it():
    """In the order of ARCHITECTURE.md; so no two import each other, and nothing imports the package's own face.

    But for what `edgebed init` writes, which is a user's own.
    """
    own = [(path, f"{module}.".split(".")[1]) for path, module in imports() if module.partition(".")[0] == "edgebed"]
    upward = [
        f"{path} -> {name}"
        for path, name in own
        if path.parent.parts and path.parent.name != "scaffold" and name not in ORDER[: ORDER.index(path.parts[0]) + 1]
    ]
    assert upward == []


def test_the_package_needs_nothing_that_lies_beside_it():
    """What validates, measures and documents edgebed is not in the wheel."""
    beside = {path.parent.name for path in DOCUMENTS.glob("*/*.py")} | {"docs"}

    assert {"validation", "benchmarks", "dashboards"} <= beside
    assert [(path, module) for path, module in imports() if module.partition(".")[0] in beside] == []


def test_every_module_has_a_room_and_no_room_is_crowded():
    """Beside the packages there is only what Python itself asks for."""
    assert sorted(path.parent.name for path in ROOT.glob("*/__init__.py")) == sorted(ORDER)
    assert {path.name for path in ROOT.glob("*.py")} == {"__init__.py", "__main__.py"}
    for folder in {path.parent for path in ROOT.rglob("*.py")}:
        assert len([path for path in folder.glob("*.py") if path.name != "__init__.py"]) <= FILES_MAX, folder


def test_the_map_and_the_decisions_have_the_packages_in_their_order():
    """Each row of ARCHITECTURE.md's map names all floors of its package."""
    rows = re.findall(r"^\| `(\w+)/` \|(.*)$", (DOCUMENTS / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    headings = re.findall(r"^## `(\w+)/`$", (DOCUMENTS / "docs/decisions.md").read_text(), re.MULTILINE)
    floors = [(name, path.parent.name) for name in ORDER for path in sorted((ROOT / name).glob("*/__init__.py"))]

    assert tuple(name for name, _ in rows) == ORDER
    assert tuple(headings) == ORDER
    assert [(name, floor) for name, floor in floors if f"`{floor}/`" not in dict(rows)[name]] == []


def imported_modules(path: Path, *, at_run_time: bool) -> Iterator[str]:
    """Modules of edgebed that a file imports, wherever; `at_run_time` without what stands there for annotations."""
    tree = ast.parse(path.read_text())
    annotations = [
        node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
    ]
    left_out = {each for node in annotations for each in ast.walk(node)} if at_run_time else set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node not in left_out:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
            yield str(node.module)


def circles(*, at_run_time: bool) -> list[tuple[str, ...]]:
    """Modules that import each other, directly or through others."""
    modules = {".".join(path.relative_to(ROOT.parent).with_suffix("").parts): path for path in ROOT.glob("*/**/*.py")}
    arrows = {
        name: set(imported_modules(path, at_run_time=at_run_time)) & modules.keys() - {name}
        for name, path in modules.items()
    }
    reached = dict(arrows)
    while (
        further := {name: ends.union(*(reached[each] for each in ends)) for name, ends in reached.items()}
    ) != reached:
        reached = further
    found = {tuple(sorted(end for end in ends if name in reached[end])) for name, ends in reached.items()}
    return sorted(tuple(each.removeprefix("edgebed.") for each in circle) for circle in found if circle)


def test_no_modules_import_each_other_but_for_annotations():
    """The few that do for annotations are named, with why."""
    assert circles(at_run_time=True) == []
    assert circles(at_run_time=False) == sorted(CIRCLES)
