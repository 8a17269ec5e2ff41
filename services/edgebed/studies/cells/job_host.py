"""Runs a job in a process of its own: what an executor is given, so that it may be one of threads or of a cluster.

    executor's thread:  run_in_process(question) ---> its process (job_process.py) ---> answer

A process has a main thread, which alone gets signals, and forks others where a job computes with several; no thread of
an executor could do that. It is started anew and not forked, so that no library is met half-way. Each thread keeps its
process from job to job, since torch takes seconds to load, until the study is over.

A file in the folder of all runs, the mark, is there for as long as the study goes on. Where it goes, jobs end in order,
wherever they run. A machine that does not see it has another folder of runs.
"""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import NamedTuple

from edgebed.core.errors import InfrastructureError
from edgebed.core.last_words import describe_status

LOOK_EVERY_S = 0.3
END_S = 20.0
"""Time that a job has to end in order."""
START = (
    "import json, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); sys.path[:] = json.loads(sys.argv[2]); "
    "from edgebed.studies.cells.job_process import main; sys.exit(main(int(sys.argv[1])))"
)
"""The program of a process: it has the module path of whoever starts it, and no word on an end before it is ready."""


class Setting(NamedTuple):
    """What all jobs of a study have in common."""

    mark: str
    """Absolute path of the mark."""
    folder: str
    """The folder in which the study was begun; names of files are relative to it."""
    python_path: tuple[str, ...]
    """Where the study finds modules."""
    environment: dict[str, str]
    """The study's variables of edgebed; those that a worker has of its own come first."""


def run_in_process(question: bytes, setting: Setting) -> bytes:
    """The answer to a question, both as in job_process.py; InfrastructureError where there is none."""
    process = _process(setting)
    answer = process.ask(question)
    if not answer:
        raise InfrastructureError(f"its process on {socket.gethostname()} ended: {process.how_it_ended()}")
    return answer


class _Process:
    """A process in which jobs are run, for one thread."""

    def __init__(self, setting: Setting) -> None:
        """InfrastructureError where it cannot be started."""
        self.setting = setting
        self.mark = Path(setting.mark)
        here = socket.gethostname()
        if not self.mark.exists():
            raise InfrastructureError(
                f"{here} does not see {self.mark.parent} as it is where the study was begun, or the study is over; "
                "its workers need the same folders, e.g. on a network file system"
            )
        path = [*sys.path, *(place for place in setting.python_path if place not in sys.path)]
        try:
            self.process = subprocess.Popen(  # noqa: S603 # this Python, with this package
                [sys.executable, "-c", START, str(os.getpid()), json.dumps(path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=setting.folder,
                env=setting.environment | os.environ,
                bufsize=0,
                process_group=0,  # Ctrl-C is for the study, which ends its jobs
            )
        except OSError as error:
            raise InfrastructureError(f"{here}: a process for jobs cannot be started: {error}") from error
        self.close = weakref.finalize(self, _close, self.process)

    def ask(self, question: bytes) -> bytes:
        """The answer to a question, b"" where the process dies instead."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        answer, ending_since_s = b"", None
        with contextlib.suppress(BrokenPipeError):
            write_all(self.process.stdin.fileno(), question + b"\n")
        while not answer.endswith(b"\n"):
            if select.select([self.process.stdout], [], [], LOOK_EVERY_S)[0]:
                data = os.read(self.process.stdout.fileno(), 1 << 20)
                if not data:
                    return b""
                answer += data
            elif ending_since_s is None and not self.mark.exists():
                ending_since_s = time.monotonic()
                self.process.send_signal(signal.SIGINT)
            elif ending_since_s is not None and time.monotonic() - ending_since_s > END_S:
                self.process.kill()
        return answer

    def how_it_ended(self) -> str:
        """Wait for its end, and describe it."""
        code = self.process.wait()
        return describe_status(-code if code < 0 else code << 8)


_own = threading.local()


def _process(setting: Setting) -> _Process:
    """This thread's process; a new one for each study, which may have other code and modules."""
    process: _Process | None = getattr(_own, "process", None)
    if process is None or process.setting != setting or process.process.poll() is not None:
        if process:
            process.close()
        process = _own.process = _Process(setting)
    return process


def _close(process: subprocess.Popen[bytes]) -> None:
    """End an idle process: nothing is lost."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()


def write_all(descriptor: int, data: bytes) -> None:
    """Write to a pipe, which may take a part at a time."""
    while data:
        data = data[os.write(descriptor, data) :]
