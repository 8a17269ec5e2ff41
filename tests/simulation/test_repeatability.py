"""The simulation promises: the same scenario and seed write the same journal, byte for byte, however computed."""

import functools
import tempfile
from pathlib import Path

import numpy as np
import pytest
from quick_runs import run as run_quickly

from edgebed.algorithms.update import ModelUpdate
from edgebed.journal.journal import journal_hash
from edgebed.roles.work import GradientJob, GradientResult, Steps
from edgebed.runtimes.simulation.arena import Arena
from edgebed.runtimes.simulation.pool import Pool
from edgebed.wire.tensors import encode_update

DIGITS = {
    "name": "repeat",
    "question": "Is it the same again?",
    "task": {"data": "digits", "model": "small", "batch_size": 10},
    "method": "adacomp",
    "fleet": {"fast": {"count": 6, "waiting": {"exponential": "20ms"}}, "slow": {"count": 2, "compute_speed": 0.2}},
    "evaluation": {"every": "50 updates"},
    "stop": {"updates": 200},
}


@functools.cache
def journal(seed: int, processes: int, turn: int = 0, *overrides: str) -> str:
    """The journal's hash of one run; `turn` tells runs apart that ought to be equal."""
    with tempfile.TemporaryDirectory(prefix="edgebed-repeat-") as folder:
        run = run_quickly(
            DIGITS | {"seed": seed}, runtime="simulation", processes=processes, set=overrides, runs_dir=folder
        )
        (trial,) = run.trials.values()

        assert trial.summary.outcome == "completed"
        return journal_hash(trial.folder.journal)


def test_the_same_seed_gives_the_same_journal() -> None:
    """Nothing but the scenario and the seed decides."""
    assert journal(1, 1) == journal(1, 1, 1)


def test_another_seed_gives_another_journal() -> None:
    """The hash is sensitive to what it should be."""
    assert journal(1, 1) != journal(2, 1)


@pytest.mark.parametrize("processes", [2, 3])
def test_any_number_of_processes_gives_the_same_journal(processes: int) -> None:
    """Gradients computed ahead, in any order and anywhere, are the same gradients."""
    assert journal(1, 1) == journal(1, processes)


def test_parts_that_are_measured_in_several_processes_are_those_of_one() -> None:
    """An evaluation of two parts is cut anywhere, also between them."""
    setting = "task.validation=20%"

    assert journal(1, 1, 0, setting) == journal(1, 3, 0, setting)
    assert journal(1, 1, 0, setting) != journal(1, 1)


@pytest.mark.parametrize("method", ["asgd", "comp-asgd"])
def test_dense_and_sparse_updates_come_back_from_the_pool_alike(method: str) -> None:
    """A dense update returns through shared memory, a sparse one through a pipe."""
    assert journal(1, 1, 0, f"method={method}") == journal(1, 2, 0, f"method={method}")


def test_float16_values_are_what_arrives_in_the_pool_as_well() -> None:
    """The rounding is the method's, so it happens wherever the work is done."""
    setting = "method.compression.values=float16"

    assert journal(1, 1, 0, setting) == journal(1, 2, 0, setting)
    assert journal(1, 1, 0, setting) != journal(1, 1)


@pytest.mark.parametrize("method", ["asgd", "adacomp"])
def test_models_put_together_from_changes_are_in_the_pools_reach(method: str) -> None:
    """Each worker keeps a model of its own, where every process sees it."""
    settings = ("pull=changed-since", f"method={method}")

    assert journal(1, 1, 0, *settings) == journal(1, 2, 0, *settings)


def test_a_compression_with_a_large_memory_does_not_block_the_pool() -> None:
    """A megabyte travels with every job and every result, both ways at once."""
    arena = Arena(1000, 32)
    pool = Pool(remember, 2, arena)
    tickets = [
        pool.submit("edge-0", GradientJob(arena.empty(), (np.arange(3),), step, np.full(2**18, step, np.float32)), step)
        for step in range(12)
    ]
    results = [pool.result(ticket) for ticket in tickets]
    pool.close()

    assert [float(result.memory[0]) for result in results] == [step + 1.0 for step in range(12)]


def remember(node: str, job: GradientJob) -> Steps:
    """A job whose memory is as large as a model."""
    yield
    tensor, frames = encode_update("update", ModelUpdate(1000, np.arange(500), np.ones(500, np.float32)))
    return GradientResult((tensor,), frames, 0.0, job.memory + 1, 0.0, 0.0)


def test_the_cnn_on_real_images_repeats_too(data_dir: Path) -> None:
    """Convolutions are the kernels most likely to differ between processes."""
    settings = ("task.data=mnist", "task.model=cnn", "stop.updates=60", "evaluation.every=60 updates")

    assert journal(1, 1, 0, *settings) == journal(1, 2, 0, *settings)
