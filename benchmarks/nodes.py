"""What a worker costs in a real run of the process runtime: CPU a step beyond the gradient, and memory of its own.

One worker trains the CNN with AdaComp against a server on the other core, without pauses. Its CPU time (all threads,
user and system: gradient, selection, encoding, sending, receiving, decoding, reporting) is read from the kernel over a
stretch of steady training and divided by the updates journaled in it. The bare gradients are timed in CPU time too.
"""

import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

import edgebed
from benchmarks.simulation import plain_layers
from benchmarks.subjects import BATCH_SIZE, images, network
from edgebed.emulation.resources import private_bytes
from edgebed.journal.series import Series
from edgebed.learning.data_sets.data_set import DataSet
from edgebed.learning.models import registry as models

SETTLE_S = 4.0
"""Until the worker has touched all the memory that it will, and the evaluator is done with the first model."""


def measure(*, quick: bool) -> dict[str, Any]:
    """CPU milliseconds of a step and of bare gradients, and the worker's private memory in bytes."""
    steps, settle_s, seconds = (20, 0.2, 0.5) if quick else (500, SETTLE_S, 8.0)
    bare_ms = {
        "the same model": _bare_cpu_ms(models.build("cnn", (1, 28, 28), 10), steps),
        "plain layers": _bare_cpu_ms(plain_layers(), steps),
    }
    step_ms, private = _worker(settle_s, seconds)
    return {
        "step_ms": step_ms,
        "bare_ms": bare_ms,
        "overhead": {name: step_ms / ms - 1.0 for name, ms in bare_ms.items()},
        "private_bytes": private,
    }


def data() -> DataSet:
    """The benchmark's images as a user's own data set: a worker's part as in a fleet of 200."""
    found = images()
    return found.replaced(train=found.train.take(slice(0, 300)), test=found.test.take(slice(0, 100)))


def _worker(settle_s: float, seconds: float) -> tuple[float, int]:
    scenario = {
        "name": "bench",
        "question": "What does a worker cost?",
        "task": {"data": "benchmarks.nodes:data", "model": "cnn", "batch_size": BATCH_SIZE},
        "method": "adacomp",
        "fleet": {"edge": {"count": 1}},
        "evaluation": {"every": "1h"},
        "stop": {"time": f"{settle_s + seconds + 1:g}s"},
    }
    found: list[tuple[float, int]] = []
    with tempfile.TemporaryDirectory() as folder:
        watcher = threading.Thread(target=lambda: found.append(_watch(Path(folder), settle_s, seconds)))
        watcher.start()
        edgebed.run(scenario, runs_dir=folder)
        watcher.join()
    return found[0]


def _watch(folder: Path, settle_s: float, seconds: float) -> tuple[float, int]:
    journal = folder / "bench/0001/adacomp/events.jsonl"
    while not journal.exists() or not len(Series.from_journal(journal).updates):
        time.sleep(0.1)
    pid = next(node.pid for _, node in Series.from_journal(journal).nodes if node.name == "edge-0" and node.pid)
    time.sleep(settle_s)
    worker = psutil.Process(pid)
    before, steps_before = worker.cpu_times(), len(Series.from_journal(journal).updates)
    time.sleep(seconds)
    after, steps_after = worker.cpu_times(), len(Series.from_journal(journal).updates)
    spent_s = after.user + after.system - before.user - before.system
    return 1e3 * spent_s / (steps_after - steps_before), private_bytes(pid) or 0


def _bare_cpu_ms(model: nn.Module, steps: int) -> float:
    """CPU milliseconds of a gradient in a loop as anybody writes it."""
    network()  # sets one thread and the allocator as nodes do
    first = images().train.take(slice(0, steps * BATCH_SIZE))
    inputs = torch.from_numpy(first.inputs[""].copy()).float().div_(255)
    labels = torch.from_numpy(first.targets[""].astype(np.int64))
    started = 0.0
    for step in range(steps):
        if step == steps // 5:
            started = time.process_time()
        model.zero_grad(set_to_none=True)
        batch = slice(step * BATCH_SIZE, (step + 1) * BATCH_SIZE)
        F.cross_entropy(model(inputs[batch]), labels[batch]).backward()  # type: ignore[no-untyped-call]
    return 1e3 * (time.process_time() - started) / (steps - steps // 5)
