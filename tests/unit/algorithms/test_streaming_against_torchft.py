"""Streaming DiLoCo against the values that torchft's own tests hold: exactly, in float32.

torchft/streaming.json has the figures of `test_diloco_mocked_updates_0` to `_5` of
https://github.com/meta-pytorch/torchft (BSD 3-Clause; Copyright (c) Meta Platforms, Inc. and affiliates): the weights
of two layers before each step of either worker, and those that the server would have, by the step that they came at.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from edgebed.algorithms.aggregation import synchronous
from edgebed.algorithms.compressor import StepContext
from edgebed.algorithms.local_work import streaming
from edgebed.algorithms.local_work.base import MODEL
from edgebed.algorithms.update import ModelUpdate

FIGURES = json.loads((Path(__file__).parent / "torchft" / "streaming.json").read_text())
WORKERS, STEPS, FRAGMENTS, ROUNDS = ("a", "b"), 6, 2, 5
BATCH = np.zeros(1, np.int64)


@pytest.mark.parametrize("number", range(6))
def test_weights_are_those_of_torchft_bit_for_bit(number: int) -> None:
    """A gradient of 2, an inner learning rate of 1 and an outer one of 2, for each overlap and mixing."""
    overlap, mixing = divmod(number, 3)
    config = streaming.Config(learning_rate=1.0, steps=STEPS, fragments=FRAGMENTS, overlap=overlap, mixing=mixing / 2)
    work = streaming.LocalWork(config)
    server = synchronous.Aggregation(synchronous.Config(learning_rate=2.0), np.ones(2, np.float32))
    seen: dict[str, list[list[float]]] = {worker: [] for worker in WORKERS}
    memory: dict[str, streaming.Own | None] = dict.fromkeys(WORKERS)
    models = {"0": server.theta.tolist()}
    main = work.batches(1, 1) - work.ahead
    for worker in WORKERS:
        server.expected(worker)

    for turn in range(ROUNDS + 1):
        at = StepContext(0, turn, rounds=turn)
        theta = server.theta.copy()
        for worker in WORKERS:

            def gradient(here: np.ndarray, batch: np.ndarray, name: str = worker) -> tuple[np.ndarray, float]:
                seen[name].append(here.tolist())
                return np.full_like(here, 2.0), 0.0

            done = work.run(gradient, {MODEL: theta}, [BATCH] * main, memory[worker], at)
            memory[worker] = work.go_on(gradient, [BATCH] * work.ahead, done.memory, at) if work.ahead else done.memory
            span = work.spans(2)[done.memory.turn]
            indices = np.arange(span.start, span.stop)
            server.push(worker, ModelUpdate(2, indices, done.vectors[MODEL][indices]), server.version)
        models[str((turn + 1) * work.batches(1, 1))] = server.theta.tolist()

    expected = FIGURES[str(number)]
    for worker in WORKERS:
        assert seen[worker][: len(expected["history"])] == expected["history"]
    assert {step: models[step] for step in expected["server"]} == expected["server"]


def test_a_refused_push_loses_its_fragments_work_and_a_fourth_of_the_own_is_kept() -> None:
    """The server's model is as it was: of fragment 0, which was pushed, a fourth of the way is kept; of 1 all of it."""
    config = streaming.Config(learning_rate=1.0, steps=2, fragments=2, mixing=0.25)
    work, theta = streaming.LocalWork(config), np.ones(2, np.float32)
    done = work.run(lambda here, _: (np.full_like(here, 2.0), 0.0), {MODEL: theta}, [BATCH], None, StepContext(0))
    again = work.run(
        lambda here, _: (np.zeros_like(here), 0.0), {MODEL: theta}, [BATCH], done.memory, StepContext(0, 1)
    )
    assert again.memory.own.tolist() == [0.5, -1.0]


def test_a_model_that_is_not_finite_is_not_gone_on_with() -> None:
    """After a push that was refused as not finite the worker begins with the server's model."""
    work, theta = streaming.LocalWork(streaming.Config(steps=2, learning_rate=1.0)), np.ones(2, np.float32)
    lost = streaming.Own(np.full(2, np.nan, np.float32), theta, 0, None)
    done = work.run(lambda here, _: (np.full_like(here, 2.0), 0.0), {MODEL: theta}, [BATCH], lost, StepContext(0))
    assert done.vectors[MODEL].tolist() == [2.0, 2.0]
