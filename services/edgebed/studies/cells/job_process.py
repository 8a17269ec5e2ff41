"""A process in which another one has a study's jobs run: lines of JSON in, lines of JSON out, one after the other.

job_host.py starts it. It ends when its standard input closes, when nothing is asked of it for a while, and with the
thread that started it. What the user's code prints goes to standard error. An interruption (SIGINT) ends the job that
is running in order, and is the answer to it.
"""

import importlib
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import msgspec

from edgebed.core.console import prepare_streams
from edgebed.core.errors import InfrastructureError
from edgebed.core.imports import reason
from edgebed.core.linux import die_with_parent
from edgebed.core.package import fingerprint
from edgebed.running.run import ReportWriter
from edgebed.studies.cells.job_host import write_all
from edgebed.studies.cells.jobs import Job, JobResult, JobRunner
from edgebed.studies.cells.run_index import RunIndex

IDLE_S_MAX = 60.0
"""Time after which an idle process ends, since it holds some 300 MB."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for, in a line."""

    job: Job
    report: str
    """Import path of the function that writes reports."""
    code: str
    """Fingerprint of the code of whoever asks."""
    words: list[str]
    """The command line, for manifests."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it, in a line."""

    result: JobResult | None
    """None: the job was interrupted."""
    told: tuple[str, ...] = ()
    """What there was to say meanwhile, a sentence each."""


def main(parent: int) -> int:
    """Answer until nobody asks any more."""
    answers = os.dup(1)
    os.dup2(2, 1)
    prepare_streams()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not die_with_parent(parent):
        return 1
    code, indices = fingerprint(), dict[str, RunIndex]()
    try:
        for line in _questions():
            question = msgspec.json.decode(line, type=Question)
            write_all(answers, msgspec.json.encode(_answer(question, code, indices)) + b"\n")
    except (KeyboardInterrupt, BrokenPipeError):
        return 128 + signal.SIGINT
    return 0


def _questions() -> Iterator[bytes]:
    """The lines of standard input."""
    pending = b""
    while select.select([0], [], [], IDLE_S_MAX)[0] and (data := os.read(0, 1 << 20)):
        *lines, pending = (pending + data).split(b"\n")
        yield from lines


def _answer(question: Question, code: str, indices: dict[str, RunIndex]) -> Answer:
    told: list[str] = []
    job = question.job
    if code != question.code:
        mistake = (
            f"{socket.gethostname()} has other code of edgebed; install the same there, and start its workers anew"
        )
        return Answer(result=JobResult(failure=mistake, exit_code=InfrastructureError.exit_code))
    index = indices.setdefault(job.runs_dir, RunIndex(Path(job.runs_dir)))
    sys.argv = question.words
    try:
        result = JobRunner(index=index, report=_report(question.report), tell=told.append).run(job)
    except KeyboardInterrupt:
        return Answer(result=None, told=tuple(told))
    except Exception as error:  # noqa: BLE001 # a bug costs this job alone
        traceback.print_exc()
        result = JobResult(failure=reason(error), exit_code=InfrastructureError.exit_code)
    return Answer(result=result, told=tuple(told))


def _report(name: str) -> ReportWriter:
    module, _, function = name.partition(":")
    writer: ReportWriter = getattr(importlib.import_module(module), function)
    return writer
