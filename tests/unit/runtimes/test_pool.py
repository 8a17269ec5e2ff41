"""What the pool forgets when a node has died: results nobody waits for, what went wrong with them, their slots."""

import gc
import os
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest

from edgebed.algorithms.compressor import Piece
from edgebed.algorithms.update import ModelUpdate
from edgebed.roles.work import (
    EvaluationJob,
    EvaluationResult,
    GradientJob,
    GradientResult,
    Job,
    ScoreJob,
    Scores,
    Steps,
)
from edgebed.runtimes.signals import ENDING
from edgebed.runtimes.simulation.arena import Arena
from edgebed.runtimes.simulation.pool import CLOSE_S, SHARES, GivenUp, Pool
from edgebed.wire.tensors import encode_pieces, encode_update

SIZE, SLOTS = 100, 60


def run(node: str, job: Job) -> Steps:
    """A dense update full of the step's number, or a share's own; the broken node's work fails."""
    if isinstance(job, ScoreJob):
        k, n = job.share
        return Scores(tuple(("test", {"loss": (loss, n / 2)}) for loss in (float(job.theta[0]), k / 10)))
    assert isinstance(job, GradientJob)
    yield
    while node == "endless":
        pass
    if node == "broken":
        raise ValueError("this was cancelled")
    if node == "in pieces":
        return in_pieces(job.step)
    tensor, frames = encode_update("update", ModelUpdate(SIZE, None, np.full(SIZE, job.step, np.float32)))
    return GradientResult((tensor,), [bytes(frame) for frame in frames], float(job.step), None, 0.0, 0.0)


def in_pieces(step: int) -> GradientResult:
    """Levels, of which there are more the later it is, and scales; after so many steps as many bytes as a model has.

    In the place of a time stands which process did it.
    """
    pieces = (
        Piece("levels", ModelUpdate(4 * step, None, np.arange(4 * step).astype(np.int8))),
        Piece("scales", ModelUpdate(4, None, np.full(4, step, np.float32))),
    )
    tensors, frames = encode_pieces(pieces)
    return GradientResult(tensors, [bytes(frame) for frame in frames], float(step), None, float(os.getpid()), 0.0)


def submit(pool: Pool, arena: Arena, step: int, node: str = "edge-0") -> int:
    """A job of that step, needed at that time."""
    return pool.submit(node, GradientJob(arena.empty(), (np.arange(3),), step), float(step))


@pytest.fixture(params=[1, 2])
def pool_and_arena(request: pytest.FixtureRequest):
    """A pool of one process or two."""
    arena = Arena(SIZE, SLOTS)
    pool = Pool(run, request.param, arena)
    yield pool, arena
    pool.close()


def test_what_is_cancelled_is_not_told_and_the_rest_is(pool_and_arena: tuple[Pool, Arena]) -> None:
    """Whether its job was waiting, in work or done; a failure among it is nobody's."""
    pool, arena = pool_and_arena
    tickets = {step: submit(pool, arena, step, "broken" if step % 5 == 1 else "edge-0") for step in range(20)}
    assert pool.result(tickets[0]).loss == 0.0
    for step in range(1, 20, 5):
        pool.cancel(tickets[step])
    pool.cancel(tickets[2])

    left = [step for step in range(1, 20) if step % 5 != 1 and step != 2]
    assert [pool.result(tickets[step]).loss for step in left] == left


def test_cancelled_jobs_give_their_slots_back(pool_and_arena: tuple[Pool, Arena]) -> None:
    """Many more than there are slots, one after another."""
    pool, arena = pool_and_arena
    for round_ in range(20):
        tickets = [submit(pool, arena, 10 * round_ + step) for step in range(10)]
        for ticket in tickets[:-1]:
            pool.cancel(ticket)
        assert pool.result(tickets[-1]).loss == 10 * round_ + 9
    while pool.cancelled:
        pool.result(submit(pool, arena, 1000))
    gc.collect()

    assert len(arena.free) == SLOTS


@pytest.mark.parametrize("number", ENDING)
def test_what_ends_the_run_leaves_children_to_their_parent(number: int, pool_and_arena: tuple[Pool, Arena]) -> None:
    """A terminal, or `pkill`, signals all: were a child gone first, the run would have failed and not been ended."""
    pool, arena = pool_and_arena
    pool.result(submit(pool, arena, 0))  # by now they are at work
    for child in pool.children:
        os.kill(child.pid, number)
    tickets = [submit(pool, arena, step) for step in range(40)]

    assert [pool.result(ticket).loss for ticket in tickets] == list(range(40))
    assert all(child.is_alive() for child in pool.children)
    pool.close()
    assert [child.exitcode for child in pool.children] == [0] * len(pool.children)


def test_children_of_a_pool_that_nobody_closed_end_with_the_program() -> None:
    """It would wait for them."""
    code = """if True:
        import os
        from edgebed.roles.work import GradientJob
        from edgebed.runtimes.simulation.arena import Arena
        from edgebed.runtimes.simulation.pool import Pool
        def run(node, job):
            yield
            return os.getpid()
        arena = Arena(4, 4)
        pool = Pool(run, 2, arena)
        print(pool.result(pool.submit("edge-0", GradientJob(arena.empty(), (), 0), 0.0)))
    """
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)

    assert not psutil.pid_exists(int(ended.stdout))
    assert ended.stderr == ""


def test_pieces_come_with_the_frames_that_they_were_encoded_in(pool_and_arena: tuple[Pool, Arena]) -> None:
    """Of any number of bytes, none too, and as many as a dense update has."""
    pool, arena = pool_and_arena
    steps = [0, 1, 40, SIZE - 4, SIZE, 2 * SIZE]
    assert 4 * (SIZE - 4) + 16 == 4 * SIZE
    done_by: set[float] = set()
    for _ in range(1000):
        tickets = [(step, submit(pool, arena, step, "in pieces")) for step in steps]
        for step, ticket in tickets:
            found, made = pool.result(ticket), in_pieces(step)
            assert [bytes(frame) for frame in found.frames] == list(made.frames), step
            if len(made.frames) > 1:
                done_by.add(found.compute_s)
        if len(done_by) == 1 + len(pool.children):
            return
    pytest.fail("a child has done nothing")


def test_an_evaluation_is_shared_and_its_losses_are_added_in_order(pool_and_arena: tuple[Pool, Arena]) -> None:
    """While others of their jobs are waiting, too."""
    pool, arena = pool_and_arena
    theta = arena.copy(np.full(SIZE, 2.0, np.float32))
    gradients = [submit(pool, arena, step) for step in range(6)]
    result = pool.result(pool.submit("evaluator", EvaluationJob(theta, 7, False), 0.0))

    n = SHARES * (1 + len(pool.children))
    loss = 0.0
    for k in range(n):
        loss = loss + 2.0 + k / 10
    assert result == EvaluationResult(7, False, {"test": {"loss": (loss, float(n**2))}})
    assert [pool.result(ticket).loss for ticket in gradients] == [0, 1, 2, 3, 4, 5]


def test_work_that_is_given_up_is_broken_off(pool_and_arena: tuple[Pool, Arena]) -> None:
    """What this process computes, or waits for; what is there can be asked for, and nobody waits for children."""
    pool, arena = pool_and_arena
    done = submit(pool, arena, 3)
    assert pool.result(done).loss == 3.0
    ready = submit(pool, arena, 4)
    while ready not in pool.results:
        pool.result(submit(pool, arena, 5))
    tickets = [submit(pool, arena, step, "endless") for step in range(6, 9)]
    before = signal.signal(signal.SIGALRM, lambda *_: pool.give_up())
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(GivenUp):
            pool.result(tickets[0])
    finally:
        signal.signal(signal.SIGALRM, before)

    tickets += [submit(pool, arena, step) for step in range(20)]
    assert pool.result(ready).loss == 4.0
    evaluation = pool.submit("evaluator", EvaluationJob(arena.empty(), 7, False), 0.0)
    for ticket in (*tickets, evaluation):
        with pytest.raises(GivenUp):
            pool.result(ticket)
        pool.cancel(ticket)
    began_s = time.monotonic()
    pool.close()
    assert time.monotonic() - began_s < CLOSE_S
    assert not any(child.is_alive() for child in pool.children)
