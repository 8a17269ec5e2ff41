"""Runs the jobs of a study on an executor: threads of this process, dask's workers, or whatever has that interface.

    jobs ---> executor ---> a process each (job_host.py) ---> results, in the order in which they come

A job whose worker or process dies is run once more: anew, or from where it broke off if the study is one that resumes.
If that dies, too, the job has failed, and the others go on. Whatever ends a study early ends its jobs in order.
"""

import contextlib
import os
import queue
import secrets
import socket
import sys
from collections.abc import Generator, Hashable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from edgebed.core.disk import make_folder
from edgebed.core.errors import InfrastructureError, ScenarioError, unwritten
from edgebed.core.package import fingerprint
from edgebed.core.quantities import count_text
from edgebed.core.runtimes import is_virtual
from edgebed.journal.run_folder import RUNS_DIR_OPTION
from edgebed.running.run import ProgressLike, ReportWriter
from edgebed.studies.cells.job_host import END_S, LOOK_EVERY_S, Setting, run_in_process
from edgebed.studies.cells.job_process import Answer, Question
from edgebed.studies.cells.jobs import Job, JobResult, Tell

Key = TypeVar("Key", bound=Hashable)
PREFIX = "EDGEBED_"
"""How edgebed's variables of the environment begin."""
PATIENCE_S = 5.0
"""Time in which a run whose worker was killed is seen to have broken off."""
TRIES = 2


@contextlib.contextmanager
def executing(jobs: int = 1, executor: Executor | None = None) -> Iterator[Executor | None]:
    """Yield what runs `jobs` at a time, None for one after the other in this process; an `executor` is used as it is.

    ScenarioError where both are asked for.
    """
    if jobs < 1:
        raise ScenarioError(f"jobs: {jobs} is below 1")
    if executor is not None and jobs > 1:
        raise ScenarioError(f"jobs={jobs}: the executor decides how many run at a time; give one of the two")
    if executor is not None or jobs == 1:
        yield executor
        return
    with ThreadPoolExecutor(jobs) as threads:
        yield threads


def by_time(jobs: Mapping[Key, Job], tell: Tell) -> tuple[dict[Key, Job], dict[Key, Job]]:
    """Return the jobs in virtual time, which may run at the same time, and those in real time, which may not."""
    virtual = {key: job for key, job in jobs.items() if is_virtual(job.runtime)}
    live = {key: job for key, job in jobs.items() if key not in virtual}
    if virtual:
        tell(f"{count_text(len(virtual), 'run')} in virtual time: several at once")
    if live:
        tell(
            f"{count_text(len(live), 'run')} in real time: one after the other on this machine, at the end, since "
            "whatever runs beside one falsifies its conditions"
        )
    return virtual, live


def show_ended(result: JobResult, progress: ProgressLike | None) -> None:
    """Show the end of the trials of a run that nobody could watch."""
    for summary in result.summaries if progress else ():
        assert progress is not None
        progress.trial_ended(summary)


def spread(
    executor: Executor, jobs: Mapping[Key, Job], report: ReportWriter, tell: Tell
) -> Generator[tuple[Key, JobResult], None, None]:
    """Yield each job's result as it comes. Jobs that are left when this is closed, or interrupted, end in order.

    All have the same folder of runs. `report` has to be found by its name in its module, and the arguments of jobs have
    to be plain values.
    """
    if not jobs:
        return
    mark = _mark(Path(next(iter(jobs.values())).runs_dir))
    setting = Setting(
        mark=str(mark),
        folder=str(Path.cwd()),
        python_path=tuple(str(Path(place).absolute()) for place in sys.path),
        environment={name: value for name, value in os.environ.items() if name.startswith(PREFIX)},
    )
    at_work = _AtWork(executor, jobs, setting, report, tell)
    try:
        for _ in jobs:
            yield at_work.next()
    finally:
        mark.unlink(missing_ok=True)
        at_work.end()


class _AtWork(Generic[Key]):
    """The jobs that an executor has."""

    def __init__(
        self, executor: Executor, jobs: Mapping[Key, Job], setting: Setting, report: ReportWriter, tell: Tell
    ) -> None:
        self.executor = executor
        self.jobs = jobs
        self.questions = {key: _question(job, report) for key, job in jobs.items()}
        self.setting = setting
        self.tell = tell
        self.tries: dict[Key, int] = {}
        self.futures: dict[Future[bytes], Key] = {}
        self.ended: queue.SimpleQueue[Future[bytes]] = queue.SimpleQueue()
        for key in jobs:
            self._submit(key)

    def next(self) -> tuple[Key, JobResult]:
        """The next job that has come to its end, and its result."""
        while True:
            future = self.ended.get()
            key = self.futures.pop(future)
            try:
                answer = msgspec.json.decode(future.result(), type=Answer)
            except Exception as error:  # noqa: BLE001 # each executor has errors of its own for a worker that died
                why = str(error) or f"its executor gave it up ({type(error).__name__})"
                if self.tries[key] < TRIES:
                    self.tell(f"{self.jobs[key].name}: {why}; it is run once more")
                    self._submit(key)
                    continue
                failure = f"{why}; it was tried {TRIES} times"
                return key, JobResult(failure=failure, exit_code=InfrastructureError.exit_code)
            for each in answer.told:
                self.tell(each)
            interrupted = JobResult(failure="it was interrupted", exit_code=InfrastructureError.exit_code)
            return key, answer.result or interrupted

    def end(self) -> None:
        """Let those that wait never begin, and wait for the end of those that have begun."""
        wait([future for future in self.futures if not future.cancel()], timeout=END_S + LOOK_EVERY_S)

    def _submit(self, key: Key) -> None:
        self.tries[key] = self.tries.get(key, 0) + 1
        try:
            future = self.executor.submit(run_in_process, self.questions[key], self.setting)
        except Exception as error:  # noqa: BLE001 # it has broken down, or was shut down
            future = Future()
            future.set_exception(error)
        self.futures[future] = key
        future.add_done_callback(self.ended.put)


def _question(job: Job, report: ReportWriter) -> bytes:
    """A job as its process is asked to run it: with one process to compute with, unless the user says otherwise."""
    job = msgspec.structs.replace(job, processes=job.processes or 1, patience_s=PATIENCE_S)
    name = f"{report.__module__}:{report.__qualname__}"
    return msgspec.json.encode(Question(job=job, report=name, code=fingerprint(), words=sys.argv))


def _mark(root: Path) -> Path:
    """Make a file in the folder of all runs that is there until the study is over; its absolute path."""
    mark = root.absolute() / f".study-{secrets.token_hex(6)}"
    try:
        make_folder(root)
        mark.write_text(f"A study of process {os.getpid()} on {socket.gethostname()} goes on until this is removed.\n")
    except OSError as error:
        raise InfrastructureError(f"{root}: {unwritten(error, RUNS_DIR_OPTION)}") from error
    return mark
