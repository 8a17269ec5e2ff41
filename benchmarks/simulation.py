"""Simulated updates a second against bare PyTorch loops over the same gradients, in one run.

The simulation's time is all it does: gradient, selection, encoding, decoding, aggregation, snapshots, journal. The test
set is cut to a handful of images, so that evaluation, whose price is the user's choice, is as good as left out; its
cost for the whole test set is stated apart.
"""

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from benchmarks.subjects import BATCH_SIZE, images, method, network, task, theta
from edgebed.core.plan import EvaluatorPlan, ServerPlan, TrainingNode, TrainingPlan, Waiting, WorkerPlan
from edgebed.core.records import Record, Update
from edgebed.journal.run_folder import RunFolder
from edgebed.learning.data_sets.split import split
from edgebed.learning.models import registry as models
from edgebed.learning.network import Network
from edgebed.learning.objectives.classification import Classification
from edgebed.planning.planning import PlannedTraining
from edgebed.running.run import run_trials
from edgebed.runtimes.hosting import TrialHost, runtime_of

WORKERS = 200
CORES = len(os.sched_getaffinity(0))


def measure(*, quick: bool) -> dict[str, Any]:
    """Updates and gradients a second, medians over rounds that take every subject in turn."""
    updates, steps, rounds = (100, 100, 1) if quick else (3_000, 600, 3)
    rates: dict[str, list[float]] = {}
    memory: list[int] = []
    subjects: dict[str, Callable[[], float]] = {
        "bare, the same model": lambda: _bare_same_model(steps),
        "bare, plain layers": lambda: _bare(plain_layers(), steps),
        "bare, the same model, a process a core": lambda: _bare_on_all_cores(steps),
        "simulation, one process": lambda: _simulate(1, updates, memory),
        "simulation, a process a core": lambda: _simulate(CORES, updates, memory),
    }
    for _ in range(rounds):
        for name, rate in subjects.items():
            rates.setdefault(name, []).append(rate())
    median = {name: float(np.median(values)) for name, values in rates.items()}

    def ratio(above: str, below: str) -> float:
        return float(np.median([a / b for a, b in zip(rates[above], rates[below], strict=True)]))

    started = time.perf_counter()
    Network(task(), images().test).evaluate(theta())
    return {
        "per_s": median,
        "one process / bare, the same model": ratio("simulation, one process", "bare, the same model"),
        "one process / bare, plain layers": ratio("simulation, one process", "bare, plain layers"),
        "a process a core / bare, likewise": ratio(
            "simulation, a process a core", "bare, the same model, a process a core"
        ),
        "workers": WORKERS,
        "memory_bytes": max(memory),
        "evaluation_s": time.perf_counter() - started,
    }


def _bare(model: nn.Module, steps: int) -> float:
    """Gradients a second of a loop as anybody writes it: forward, loss, backward."""
    network()  # sets one thread and the allocator as nodes do
    first = images().train.take(slice(0, steps * BATCH_SIZE))
    inputs = torch.from_numpy(first.inputs[""].copy()).float().div_(255)
    labels = torch.from_numpy(first.targets[""].astype(np.int64))
    parameters = list(model.parameters())
    started = time.perf_counter()
    for step in range(steps):
        if step == steps // 10:
            started = time.perf_counter()
        for parameter in parameters:
            parameter.grad = None
        batch = slice(step * BATCH_SIZE, (step + 1) * BATCH_SIZE)
        F.cross_entropy(model(inputs[batch]), labels[batch]).backward()  # type: ignore[no-untyped-call]
    return (steps - steps // 10) / (time.perf_counter() - started)


def _bare_on_all_cores(steps: int) -> float:
    """Gradients a second of as many such loops at a time as there are cores."""
    with multiprocessing.get_context("fork").Pool(CORES) as pool:
        return sum(pool.map(_bare_same_model, [steps] * CORES, chunksize=1))


def _bare_same_model(steps: int) -> float:
    return _bare(models.build("cnn", (1, 28, 28), 10), steps)


def plain_layers() -> nn.Module:
    """The published order of the same layers in PyTorch's usual layout."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 32, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(1568, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip


def _simulate(processes: int, updates: int, memory: list[int]) -> float:
    """Updates a second of AdaComp with 200 workers, from the first fifth of the updates on.

    What all processes use in the end, pages that they share counted once, is added to `memory`, in bytes.
    """
    marks: dict[int, float] = {}
    warm = updates // 5

    def observe(record: Record, node: str = "") -> None:  # as metrics do
        if isinstance(record, Update) and record.version in (warm, updates):
            marks[record.version] = time.perf_counter()
            if record.version == updates:
                memory.append(_memory_bytes())

    host = TrialHost(runtime_of("simulation", processes=processes), port=0)
    host.metrics.observe = observe  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as folder, host:
        run_trials([_plan(updates)], RunFolder.create(Path(folder), "bench"), host, None)
    return (updates - warm) / (marks[updates] - marks[warm])


def _memory_bytes() -> int:
    this = psutil.Process()
    return sum(process.memory_full_info().pss for process in (this, *this.children(recursive=True)))


def _plan(updates: int) -> PlannedTraining:
    data = images()
    few = data.replaced(test=data.test.take(slice(0, 20)))
    parts = split(data.train.targets[""], WORKERS, "iid", None, 1)
    common: dict[str, Any] = {"seed": 1, "task": task(), "method": method("adacomp")}
    nodes: list[TrainingNode] = [
        ServerPlan(node="server", device_class="server", stop_updates=updates, **common),
        EvaluatorPlan(
            node="evaluator", device_class="evaluator", num_examples=20,
            evaluate_every_updates=updates, **common,
        ),
    ]  # fmt: skip
    waiting = Waiting(distribution="exponential", mean_s=1.0)
    nodes += [
        WorkerPlan(node=f"edge-{i}", device_class="edge", waiting=waiting, num_examples=len(part), **common)
        for i, part in enumerate(parts)
    ]
    plan = TrainingPlan(
        scenario="bench",
        trial="adacomp",
        question="",
        seed=1,
        measures=Classification.measures,
        nodes=tuple(nodes),
        stop_updates=updates,
    )
    return PlannedTraining(plan=plan, data=few, parts={f"edge-{i}": part for i, part in enumerate(parts)})
