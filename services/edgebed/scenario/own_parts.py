"""Parts of one's own, tried before anything starts: once as they are declared, and once with the task's own model.

What works on the parameter server has numpy alone: its image has no torch, and one that imports it would fail there.
"""

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from edgebed.algorithms.compressor import StepContext
from edgebed.algorithms.local_work import trial
from edgebed.algorithms.registry import aggregation_of, code_of, compression_of, configure, small_local_work_of
from edgebed.core.errors import OwnCodeError, ScenarioError
from edgebed.core.imports import is_import_path, sources
from edgebed.core.plan import Method, Part, Task
from edgebed.wire.errors import LocalWireError
from edgebed.wire.tensors import decode_pieces, encode_pieces

ON_THE_SERVER = ("aggregation", "compression", "downlink")
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


def try_parts(method: Method, task: Task) -> None:
    """ScenarioError where a part of one's own fails with a vector as long as the task's model.

    Two pushes are compressed, each twice, encoded, decoded, restored and applied; local work is done twice.
    """
    if "local_work" in method.parts and is_import_path(method.parts["local_work"].name):
        _tried("local work", method.parts["local_work"].name, lambda: _try_local_work(method, task))
    for kind in ("compression", "downlink"):
        if kind in method.parts and is_import_path(method.parts[kind].name):
            _tried(kind, method.parts[kind].name, lambda kind=kind: _try_compression(method, task, kind))
    if "aggregation" in method.parts and is_import_path(method.parts["aggregation"].name):
        _tried("aggregation", method.parts["aggregation"].name, lambda: _try_aggregation(method, task))


def _tried(kind: str, name: str, work: Any) -> None:
    try:
        with np.errstate(all="ignore"):
            work()
    except OwnCodeError as error:
        raise ScenarioError(str(error)) from error
    except LocalWireError as error:
        raise ScenarioError(f"{kind} {name} makes what cannot be sent: {error}") from error


def _vector(task: Task) -> np.ndarray[Any, np.dtype[np.float32]]:
    size = sum(tensor.size for tensor in task.layout)
    return np.random.default_rng(0).standard_normal(size, dtype=np.float32)


def _read_only(value: Any) -> Any:
    """What a compression is handed and may not write to: arrays, and those in tuples, lists and dicts."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, tuple | list):
        for each in value:
            _read_only(each)
    elif isinstance(value, dict):
        _read_only(list(value.values()))
    return value


def _try_compression(method: Method, task: Task, kind: str) -> None:
    compression, vector, memory = compression_of(method, task, kind), _read_only(_vector(task)), None
    sent: list[tuple[Any, StepContext, list[bytes]]] = []
    for step in range(1 if kind == "downlink" else 2):
        at = StepContext(key=step, step=step, loss=1.0)
        pieces, rest = compression.compress(vector, memory, at)
        tensors, frames = encode_pieces(pieces)
        compression.restore(decode_pieces(tensors, frames))
        sent.append((memory, at, [bytes(frame) for frame in frames]))
        memory = _read_only(rest)
    for memory, at, frames in reversed(sent):
        _, again = encode_pieces(compression.compress(vector, memory, at)[0])
        if [bytes(frame) for frame in again] != frames:
            raise ScenarioError(
                f"{kind} {method.parts[kind].name}: compress is no function of its arguments: with the same ones it "
                "made something else, so runs could not be repeated; return what is to be remembered as memory, rather "
                "than keep it in an attribute, and draw from context.draws() alone"
            )


def _try_local_work(method: Method, task: Task) -> None:
    work = small_local_work_of(method, task, trial.SMALL)
    before = trial.memory_of(work)
    (first, loss), after = trial.ran(work, task.batch_size), trial.memory_of(work)
    again, other_loss = trial.ran(work, task.batch_size)
    found = ""
    if first.tobytes() != again.tobytes() or repr(loss) != repr(other_loss):
        found = "with the same ones it made something else"
    if changed := [name for name, value in after.items() if before.get(name) != value]:
        found = f"it changed {', '.join(changed)}"
    if found:
        raise ScenarioError(
            f"local work {method.parts['local_work'].name}: run is no function of its arguments: {found}, so runs "
            "could not be repeated, and would depend on which process computes for which worker; keep nothing in an "
            "attribute, and draw nothing: each push begins anew, and what outlasts it is the memory of a compression "
            "or the state of an aggregation"
        )


def _try_aggregation(method: Method, task: Task) -> None:
    aggregation, config = aggregation_of(method)
    vector = _vector(task)
    compression = compression_of(method, task)
    pieces, _ = compression.compress(vector, None, StepContext(key=0, loss=1.0))
    made = aggregation(config, np.zeros_like(vector))
    made.expected("a")
    made.joined("a")
    made.pulled("a")
    before = made.version
    if not made.late(before):
        made.push("a", compression.restore(pieces), before)
    made.restore(made.state())
    made.left("a")


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
