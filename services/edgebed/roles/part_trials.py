"""Parts of one's own, tried before anything starts, as workers and the server use them, with the task's own model."""

from typing import Any

import numpy as np

from edgebed.algorithms.aggregator import Aggregator, PushInfo
from edgebed.algorithms.compressor import StepContext
from edgebed.algorithms.local_work import trial
from edgebed.algorithms.registry import BESIDE, aggregation_of, compression_alone, small_local_work_of
from edgebed.algorithms.update import Applied
from edgebed.core.errors import OwnCodeError, ScenarioError
from edgebed.core.imports import is_import_path
from edgebed.core.plan import Method, Task
from edgebed.roles.server.snapshot import dump_lasting, load_lasting
from edgebed.wire.errors import LocalWireError
from edgebed.wire.tensors import decode_pieces, encode_pieces


def try_parts(method: Method, task: Task) -> None:
    """ScenarioError where a part of one's own fails with a vector as long as the task's model.

    Two pushes are compressed, each twice, encoded, decoded, restored and applied; local work is done twice.
    """
    if "local_work" in method.parts and is_import_path(method.parts["local_work"].name):
        _tried("local work", method.parts["local_work"].name, lambda: _try_local_work(method, task))
    for kind in ("compression", "downlink", *BESIDE.values()):
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
    compression, memory = compression_alone(method, task, kind), None
    vector = _read_only(_vector(task))
    sent: list[tuple[Any, StepContext, list[bytes]]] = []
    for step in range(1 if kind.endswith("downlink") else 2):
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
    found, memory = "", None
    for step in range(2):
        before = trial.attributes_of(work)
        done = trial.ran(work, task.batch_size, memory, step)
        kept = trial.plain(done)
        _read_only(done.memory)
        if trial.plain(trial.ran(work, task.batch_size, memory, step)) != kept:
            found = "with the same ones it made something else"
        if changed := [name for name, value in trial.attributes_of(work).items() if before.get(name) != value]:
            found = f"it changed {', '.join(changed)}"
        memory = done.memory
    if found:
        raise ScenarioError(
            f"local work {method.parts['local_work'].name}: run is no function of its arguments: {found}, so runs "
            "could not be repeated, and would depend on which process computes for which worker; return what is to be "
            "remembered as memory, rather than keep it in an attribute, and draw from at.draws() alone"
        )


def _try_aggregation(method: Method, task: Task) -> None:
    """Push once, then go on from a checkpoint with another worker, beside one that was there from the beginning."""
    aggregation, config = aggregation_of(method)
    name, vector = method.parts["aggregation"].name, _vector(task)
    compression = compression_alone(method, task, "compression")
    pieces, _ = compression.compress(vector, None, StepContext(key=0, loss=1.0))

    def push(made: Aggregator, worker: str) -> Applied | None:
        made.expected(worker)
        made.joined(worker)
        made.pulled(worker)
        update = compression.restore(pieces)
        info = PushInfo(beside=(update,) * (len(made.vectors) - 1))
        return None if made.late(made.version) else made.push(worker, update, made.version, info)

    first = aggregation(config, np.zeros_like(vector))
    push(first, "a")
    fresh, anew = (aggregation(config, first.theta.copy(), first.version) for _ in range(2))
    try:
        load_lasting(anew, dump_lasting(first))
    except (ValueError, OwnCodeError) as error:
        raise ScenarioError(
            f"aggregation {name} cannot be stored, so no server could go on from a log or a checkpoint: {error}; have "
            "every attribute from __init__ on, as plain values, arrays, or lists, tuples, sets and dicts of such"
        ) from error
    if anew.expire() or (push(fresh, "b") and not push(anew, "b")):
        raise ScenarioError(
            f"aggregation {name}: a server that goes on from a checkpoint, where all workers join again, waits for one "
            "of before, or still has its push; `session` is to name the attributes of who takes part and what is held"
        )
    first.left("a")
