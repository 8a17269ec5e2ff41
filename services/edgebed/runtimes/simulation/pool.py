"""Processes that do nodes' work ahead of virtual time, on all cores.

    submit(job) ---> [ by due time ] --batches--> this process, child 0, … ---> result(ticket), unless cancelled

Models never travel: a job names the arena's slot that holds its model, and a dense update comes back in another. A job
is a pure function, so where and when it is done changes nothing.

What a core does takes much longer where neither code nor data are in its cache. So a job is done soon after it was
asked for, while its model is there: few jobs wait, and few models are in use, however many workers there are. And jobs
are done in batches, step by step. This process is one of those that compute, so that each core has one and none waits;
an evaluation, which takes long, is cut so that all have a share.

A job may take minutes. So a signal's handler may give all work up: what this process computes is broken off where it
is, which harms nothing, since a job is a pure function; results that are there can still be asked for.
"""

import bisect
import contextlib
import multiprocessing
import select
import signal
import time
import weakref
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgebed.core.errors import InfrastructureError
from edgebed.roles.layerwise.shard_work import ShardJob
from edgebed.roles.work import (
    ClientsJob,
    EvaluationJob,
    GradientJob,
    GradientResult,
    Job,
    Result,
    ScoreJob,
    Scores,
    Steps,
    evaluated,
    in_step,
    run_through,
    shares,
)
from edgebed.runtimes.signals import ENDING
from edgebed.runtimes.simulation.arena import Arena
from edgebed.wire.tensors import cut_by

BATCH = 5  # jobs done together: more save little, and their models would need more cache
IN_FLIGHT = 2  # batches a child has at hand, so that it never waits for the parent
SMALL_BYTES = 4 * 1024  # all that are in flight fit the pipe's buffer, so that sending them never blocks
SHARES = 8  # of an evaluation, for each process: small, so that the last one delays little
CLOSE_S = 2.0  # for all children together: each ends between two batches

Run = Callable[[str, Job], Steps]
"""A function that does a node's job, step by step: (node, job) -> result."""


class GivenUp(BaseException):
    """Work was given up before its result was there; no Exception, so that no part of a method takes it for its own."""


class Pool:
    """This process and others, forked here, which do jobs; `run` must be ready to be called in each."""

    def __init__(self, run: Run, count: int, arena: Arena) -> None:
        """`count` is the number of all processes, from 1."""
        self.run = run
        self.arena = arena
        self.waiting: list[tuple[float, int]] = []
        """Jobs that no process has begun, as (due time, ticket), in order."""
        self.waiting_max = BATCH if count == 1 else 3 * BATCH
        """Number of waiting jobs at which this process does a batch; then there is one for a child, and one to do while
        it waits."""
        self.jobs: dict[int, tuple[str, Job]] = {}
        """Jobs without a result: they hold their model's slot."""
        self.own: set[int] = set()
        """Jobs of shards, which depend on those before: they are done here, when their result is asked for."""
        self.shared: dict[int, tuple[EvaluationJob, list[int]]] = {}
        """Evaluations by ticket, with the tickets of their shares."""
        self.cancelled: set[int] = set()
        """Jobs that a child has, and whose results nobody waits for: a child still reads and writes their slots."""
        self.outputs: dict[int, NDArray[np.float32]] = {}
        self.results: dict[int, Result | Exception] = {}
        """Results of jobs, until they are asked for."""
        self.is_given_up = False
        self.is_at_work = False
        """Whether this process computes, or waits for others that do."""
        self.count = 0
        self.children: list[BaseProcess] = []
        self.load: dict[Connection, int] = {}
        """Number of batches that each child has."""
        self.connections: dict[int, Connection] = {}
        """Connections by file descriptor, as `poll` names them."""
        self.poll = select.poll()
        context = multiprocessing.get_context("fork")
        for _ in range(count - 1):
            here, there = context.Pipe()
            child = context.Process(target=_serve, args=(there, run, arena, [*self.load, here]), daemon=True)
            child.start()
            there.close()
            self.children.append(child)
            self.load[here] = 0
            self.connections[here.fileno()] = here
            self.poll.register(here, select.POLLIN)
        self.let_go = weakref.finalize(self, _close, list(self.load))
        """Has the children end; also called where nobody closes the pool, and they would be waited for."""

    def submit(self, node: str, job: Job, due_s: float) -> int:
        """A ticket for the job's result, which is needed at virtual time `due_s`."""
        if isinstance(job, EvaluationJob):
            tickets = [self._queue(node, share, due_s) for share in shares(job, SHARES * (1 + len(self.children)))]
            self.count += 1
            self.shared[self.count] = job, tickets
            return self.count
        if isinstance(job, ShardJob):
            ticket = self._note(node, job)
            self.own.add(ticket)
            return ticket
        ticket = self._queue(node, job, due_s)
        if self.is_given_up:
            return ticket
        self._collect_all()
        self._feed()
        if len(self.waiting) >= self.waiting_max:
            with contextlib.suppress(GivenUp):
                self._do_batch()
        return ticket

    def _queue(self, node: str, job: Job, due_s: float) -> int:
        ticket = self._note(node, job)
        bisect.insort(self.waiting, (due_s, ticket))
        return ticket

    def _note(self, node: str, job: Job) -> int:
        self.count += 1
        self.jobs[self.count] = (node, job)
        return self.count

    def result(self, ticket: int) -> Result:
        """The result of a job, once it is there. Raises what the job raised; GivenUp where there will be none."""
        if ticket in self.own:
            with self._at_work():
                done = run_through(self.run(*self.jobs[ticket]))
            self.own.remove(ticket)
            del self.jobs[ticket]
            return done
        if ticket in self.shared:
            job, tickets = self.shared[ticket]
            scores = cast(list[Scores], [self.result(share) for share in tickets])
            del self.shared[ticket]
            return evaluated(job, scores)
        while ticket not in self.results:
            if self.is_given_up:
                raise GivenUp
            self._collect_all()
            self._feed()
            if ticket in self.results:
                break
            if self.waiting:
                self._do_batch()
            else:
                with self._at_work():
                    self.poll.poll()
        result = self.results.pop(ticket)
        if isinstance(result, Exception):
            raise result
        return result

    def _do_batch(self) -> None:
        """Do the jobs that are needed first, in this process."""
        tickets = self._take_batch(0)
        with self._at_work():
            results = in_step([self.run(*self.jobs[ticket]) for ticket in tickets])
        for ticket, result in zip(tickets, results, strict=True):
            del self.jobs[ticket]
            self.results[ticket] = result

    def give_up(self) -> None:
        """Do no more work, and break off what is in hand with GivenUp; for the handler of a signal."""
        self.is_given_up = True
        if self.is_at_work:
            self.is_at_work = False
            raise GivenUp

    @contextlib.contextmanager
    def _at_work(self) -> Iterator[None]:
        """What may be broken off at any place."""
        self.is_at_work = True
        try:
            if self.is_given_up:
                raise GivenUp
            yield
        finally:
            self.is_at_work = False

    def _take_batch(self, end: int) -> list[int]:
        """Take the jobs that are needed first (0) or last (-1); what measures a model makes a batch by itself."""
        tickets = [self.waiting.pop(end)[1]]
        while self.waiting and len(tickets) < BATCH and not self._is_score(tickets[0]):
            if self._is_score(self.waiting[end][1]):
                break
            tickets.append(self.waiting.pop(end)[1])
        return tickets

    def _is_score(self, ticket: int) -> bool:
        return isinstance(self.jobs[ticket][1], ScoreJob | ClientsJob)

    def cancel(self, ticket: int) -> None:
        """Drop a job that is not needed after all: neither its result nor its error is ever returned."""
        if ticket in self.shared:
            for share in self.shared.pop(ticket)[1]:
                self.cancel(share)
        elif ticket in self.own:
            self.own.remove(ticket)
            del self.jobs[ticket]
        elif self.results.pop(ticket, None) is None:
            waiting = [entry for entry in self.waiting if entry[1] != ticket]
            if len(waiting) == len(self.waiting):
                self.cancelled.add(ticket)
                return
            self.waiting = waiting
            del self.jobs[ticket]

    def _feed(self) -> None:
        """Give children the jobs needed last, so that nobody waits for them: to a busy one only what is worth it."""
        while self.waiting and self.load:
            connection = min(self.load, key=self.load.__getitem__)
            if self.load[connection] > 0 and (self.load[connection] >= IN_FLIGHT or not self._has_more()):
                return
            batch = [self._entry(ticket) for ticket in self._take_batch(-1)]
            connection.send(batch)
            self.load[connection] += 1

    def _has_more(self) -> bool:
        """Whether there is a batch that can be sent to a child that is busy, and may itself be sending; one is left."""
        return len(self.waiting) >= 2 * BATCH and not any(is_large(self.jobs[ticket][1]) for _, ticket in self.waiting)

    def _entry(self, ticket: int) -> tuple[int, str, Job, int | None, int | None]:
        """A job as it is sent to a child: with the slots of its model, unless it has that itself, and of its result."""
        node, job = self.jobs[ticket]
        assert isinstance(job, GradientJob | ScoreJob | ClientsJob)
        slot = self.arena.slot_of(job.theta)
        if slot is None:
            assert isinstance(job, ClientsJob), "a job's model lies in the arena"
            return ticket, node, job, None, None
        output = None
        if isinstance(job, GradientJob):
            array = self.outputs[ticket] = self.arena.empty()
            output = self.arena.slot_of(array)
        return ticket, node, msgspec.structs.replace(job, theta=len(job.theta)), slot, output

    def _collect_all(self) -> None:
        """Take the results of children that are there."""
        for descriptor, _ in self.poll.poll(0):
            connection = self.connections[descriptor]
            try:
                done = connection.recv()
            except (EOFError, ConnectionError) as error:
                raise InfrastructureError(
                    "a process of the simulation's pool died: it was killed, or the model's own code ended it"
                ) from error
            self.load[connection] -= 1
            for ticket, result, payload in done:
                self._keep(ticket, result, payload)

    def _keep(self, ticket: int, result: Result | Exception, payload: bytes | None) -> None:
        del self.jobs[ticket]
        output = self.outputs.pop(ticket, None)
        if ticket in self.cancelled:
            self.cancelled.remove(ticket)
            return
        if isinstance(result, GradientResult):
            whole = memoryview(output).cast("B") if payload is None else memoryview(payload)  # type: ignore[arg-type]
            result = msgspec.structs.replace(result, frames=cut_by(result.tensors, whole))
        self.results[ticket] = result

    def close(self) -> None:
        """End the children; those at work are killed, at once where it was given up."""
        self.let_go()
        until_s = time.monotonic() + (0.0 if self.is_given_up else CLOSE_S)
        for child in self.children:
            child.join(timeout=max(0.0, until_s - time.monotonic()))
            if child.is_alive():
                child.kill()
                child.join()


def _close(connections: list[Connection]) -> None:
    for connection in connections:
        connection.close()


def is_large(job: Job) -> bool:
    """Whether the job itself might fill a pipe; a model lies in the arena and does not count."""
    if isinstance(job, GradientJob):
        return job.memory is not None or sum(each.nbytes for each in job.batches) > SMALL_BYTES
    return isinstance(job, ClientsJob)  # with a worker's own model


def _serve(connection: Connection, run: Run, arena: Arena, others: list[Connection]) -> None:
    """Run a child: do jobs until the parent closes the pipe."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)  # they are meant for the run: the parent ends it, and then its children
    for other in others:
        other.close()  # the parent's ends: held open here, they would hide that the parent is gone
    with contextlib.suppress(EOFError, ConnectionError):  # the parent needs no more results
        _work(connection, run, arena)


def _work(connection: Connection, run: Run, arena: Arena) -> None:
    while True:
        batch = connection.recv()
        results = in_step(
            [
                run(node, job if slot is None else msgspec.structs.replace(job, theta=arena.view(slot)[: job.theta]))
                for _, node, job, slot, _ in batch
            ]
        )
        connection.send(
            [
                (ticket, *_packed(result, arena, output))
                for (ticket, *_, output), result in zip(batch, results, strict=True)
            ]
        )


def _packed(result: Result | Exception, arena: Arena, output: int | None) -> tuple[Result | Exception, bytes | None]:
    """A result without its frames, and the frames in one piece; one that is as large as a model is left in its slot."""
    if not isinstance(result, GradientResult):
        return result, None
    payload = b"".join(result.frames)
    result = msgspec.structs.replace(result, frames=())
    if len(payload) != arena.size * 4 or output is None:
        return result, payload
    np.copyto(arena.view(output), np.frombuffer(payload, np.float32))
    return result, None
