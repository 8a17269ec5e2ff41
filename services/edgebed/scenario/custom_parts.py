"""Parts of one's own, checked as they are declared; roles/part_trials.py tries them with the task's own model.

What works on the parameter server has numpy alone: its image has no torch, and one that imports it would fail there.
"""

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from edgebed.algorithms.registry import BESIDE, code_of, configure
from edgebed.core.errors import ScenarioError
from edgebed.core.imports import sources
from edgebed.core.plan import Part

ON_THE_SERVER = ("aggregation", "compression", "downlink", *BESIDE.values())
"""Kinds of parts that the parameter server has, too."""
HEAVY = "torch"
TRIED = ((1, None), (8, None), (8, 0.5))
"""Workers, and the share that they push."""


def check_part(kind: str, part: Part, python_path: Sequence[str]) -> None:
    """ScenarioError, or OwnCodeError, where a part of one's own could not work, whatever the model."""
    if kind in ON_THE_SERVER:
        for place in _heavy_imports(part.name, python_path):
            raise ScenarioError(
                f"{part.name}: its module imports {HEAVY} ({place}), and the parameter server has numpy alone; "
                f"put what needs {HEAVY} into another module, or import it where it is used"
            )
    config, code = configure(kind, part), code_of(kind, part.name)
    if kind == "aggregation":
        for workers, share in TRIED:
            code.Aggregation.together(config, workers)
            code.Aggregation.holds(config, workers, share)
    elif kind == "learning":
        code.rule(config)


def _heavy_imports(name: str, python_path: Sequence[str]) -> Iterator[str]:
    """Where the part's module, or one of the user's own that it imports, loads what the server has not."""
    texts = dict(sources(python_path))
    waiting, seen = [name.partition(":")[0]], set[str]()
    while waiting:
        module = waiting.pop()
        stem = module.replace(".", "/")
        path = next((each for each in (f"{stem}.py", f"{stem}/__init__.py") if each in texts), None)
        if path is None or path in seen:
            continue
        seen.add(path)
        for line, imported in _imported(texts[path], module, is_package=path.endswith("__init__.py")):
            if imported.partition(".")[0] == HEAVY:
                file = getattr(sys.modules.get(module), "__file__", None)
                yield f"{Path(file).name if file else path}:{line}"
            waiting += [imported, imported.rpartition(".")[0]]


def _imported(text: str, module: str, *, is_package: bool) -> Iterator[tuple[int, str]]:
    """Line and name of what a module imports when it is imported itself; not of what a function does when called."""
    waiting: list[ast.AST] = [ast.parse(text)]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = module.split(".")
            above = parents[: len(parents) - node.level + is_package] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{source}.{alias.name}") for alias in node.names)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)
