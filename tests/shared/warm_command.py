"""The command `edgebed` in a process of its own, forked from one that has imported torch and all else already.

A process that is started anew spends three seconds of CPU time on its imports, which is more than most tests that begin
one. What is forked is a child of the one that forks, so its end is told over a pipe. The fork server of a command's run
is forked in its turn, from the command (`warm_fork_server`). Scripts in Python and the processes in which a command has
a study's jobs run can be forked so, too, and a shell has the command by `warm_environment`.
"""

import atexit
import contextlib
import functools
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import pytest
from warm_fork_server import FORK_SERVER, be_fork_server, become, fork_servers_from_here, piped, started_by

from edgebed.runtimes.processes import forking
from edgebed.runtimes.processes.forking import PROGRAM
from edgebed.studies.cells import job_host

REQUEST_BYTES = 1 << 18
"""The longest request: words and environment of a command."""
PYTHON = "python"
"""The name of a process that is a script in Python."""
JOBS = "jobs"
"""The name of a process in which a study's jobs are run."""
SHELLS = Path(__file__).with_name("warm_shell.py")
"""What asks for a command from a shell."""


class Warm:
    """A process that has been forked, with what tests need of `subprocess.Popen`."""

    def __init__(self, args: tuple[str, ...], cwd: Path, env: Mapping[str, str], *standard: int) -> None:
        """Begin a program in a process group of its own; `standard`: its input, output and error."""
        self.args = args
        self.returncode: int | None = None
        self.end, told = os.pipe2(os.O_CLOEXEC)
        request = {"words": args, "cwd": str(cwd), "env": dict(env)}
        self.pid = fork(msgspec.json.encode(request), *standard, told)
        os.close(told)

    def poll(self) -> int | None:
        """Return its exit code, negative for a signal; None: it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return its exit code; subprocess.TimeoutExpired where it takes longer."""
        if self.returncode is None:
            if not select.select([self.end], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            self.returncode = msgspec.json.decode(os.read(self.end, 64), type=int)
            os.close(self.end)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it, unless it has ended."""
        self.send_signal(signal.SIGKILL)


class WarmCommand(Warm):
    """A command that runs."""

    def __init__(
        self, *words: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, program: str = "edgebed"
    ) -> None:
        """Begin `edgebed` with these words, or PYTHON with a script and its words."""
        self.files = os.memfd_create("stdout"), os.memfd_create("stderr")
        with Path(os.devnull).open("rb") as null:
            environment = os.environ if env is None else env
            super().__init__((program, *words), cwd or Path.cwd(), environment, null.fileno(), *self.files)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return its exit code; subprocess.TimeoutExpired where it takes longer."""
        is_new = self.returncode is None
        code = super().wait(timeout)
        if is_new:
            self.output = tuple(os.pread(file, os.fstat(file).st_size, 0).decode() for file in self.files)
            for file in self.files:
                os.close(file)
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, ...]:
        """Wait for its end and return all of its standard output and of its standard error."""
        self.wait(timeout)
        return self.output


class WarmServer(Warm):
    """What answers on its standard output, as `subprocess.Popen` would begin it."""

    def __init__(self, args: tuple[str, ...], cwd: Path, env: Mapping[str, str], stderr: int) -> None:
        """Begin it, with pipes for its input and output."""
        theirs, self.stdin, self.stdout = piped()
        super().__init__(args, cwd, env, *theirs, stderr)
        for each in theirs:
            os.close(each)


class WarmForkServer(WarmServer):
    """A fork server, for a run in this process."""

    def __init__(self, words: Sequence[str], *, stderr: BinaryIO, env: Mapping[str, str], **_: Any) -> None:
        super().__init__((FORK_SERVER, *words), Path.cwd(), env, stderr.fileno())


class WarmJobs(WarmServer):
    """A process for jobs of a study of this process; `job_host` says with which module path."""

    def __init__(self, words: Sequence[str], *, cwd: str, env: Mapping[str, str], **_: Any) -> None:
        super().__init__((JOBS, words[-1]), Path(cwd), env, 2)


def run_script(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A script in Python of these lines, in a folder and a process of its own, to its end."""
    script = folder / "script.py"
    script.write_text(text, encoding="utf-8")
    process = WarmCommand(str(script), cwd=folder, program=PYTHON)
    said = process.communicate()
    return subprocess.CompletedProcess(process.args, process.wait(), *said)


def warm_environment(folder: Path) -> Path:
    """Lay out a Python environment in `folder`, whose `edgebed` is warm; it is there for as long as this process."""
    programs = {
        "edgebed": f'exec {sys.executable} -SE {SHELLS} {_forker().address} "$@"',
        "python": f'exec {sys.executable} "$@"',
        "activate": f"export PATH={folder}/bin:$PATH",
    }
    (folder / "bin").mkdir(parents=True)
    for name, text in programs.items():
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (folder / "bin" / name).chmod(0o755)
    return folder


def start_fork_server(words: Sequence[str], **options: Any) -> Any:
    """A warm one, unless it is another program that is asked for."""
    return (WarmForkServer if words[-1] == PROGRAM else subprocess.Popen)(words, **options)


@pytest.fixture(scope="session", autouse=True)
def warm_fork_servers() -> Iterator[None]:
    """Runs in this process have warm fork servers, where a `conftest.py` imports this."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forking, "subprocess", started_by(start_fork_server))
        yield


@pytest.fixture(scope="session", autouse=True)
def warm_jobs() -> Iterator[None]:
    """Studies in this process have their jobs run in warm processes, where a `conftest.py` imports this."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job_host, "subprocess", started_by(WarmJobs))
        yield


class Forker:
    """What forks commands for this process, for as long as this process lives."""

    def __init__(self) -> None:
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.folder = tempfile.TemporaryDirectory(prefix="edgebed-warm-")
        self.address = f"{self.folder.name}/socket"
        others = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        others.bind(self.address)
        others.listen()
        with theirs, others:
            given = [theirs.fileno(), others.fileno()]
            self.process = subprocess.Popen([sys.executable, __file__, *map(str, given)], pass_fds=given)
        atexit.register(self.close)

    def close(self) -> None:
        """Kill what still runs, and end."""
        self.socket.close()
        self.process.wait()
        self.folder.cleanup()


_forker = functools.cache(Forker)
_asking = threading.Lock()
_address = ""
"""Where the process that forked this one forks others; "": none has forked this one."""


def fork(request: bytes, *descriptors: int) -> int:
    """Have a program forked with these descriptors, and return its process."""
    with _asking, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as forker:
        forker.connect(_address or _forker().address)
        socket.send_fds(forker, [request], descriptors)
        return msgspec.json.decode(forker.recv(64), type=int)


def serve(alive: socket.socket, requests: socket.socket) -> None:
    """Fork a program for each who connects with a request, until the process that is to be `alive` has closed this."""
    global _address  # noqa: PLW0603 # of all that are forked from here
    _address = requests.getsockname()
    _import_all()
    children: dict[int, int] = {}
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select([alive, requests, wake_read], [], [])
        if wake_read in ready:
            os.read(wake_read, 4096)
            while children and (ended := os.waitpid(-1, os.WNOHANG))[0]:
                told = children.pop(ended[0])
                os.write(told, str(os.waitstatus_to_exitcode(ended[1])).encode())
                os.close(told)
        if requests in ready:
            with requests.accept()[0] as asking:
                children |= _fork(asking)
        if alive in ready:
            break
    for pid in children:
        os.kill(pid, signal.SIGKILL)


def _fork(asking: socket.socket) -> dict[int, int]:
    """Fork a program as it is asked for: its process, and where its end is to be told; nobody where none is asked."""
    data, descriptors, _, _ = socket.recv_fds(asking, REQUEST_BYTES, 4)
    if not data:
        return {}
    *standard, told = descriptors
    pid = os.fork()
    if pid == 0:
        _run(msgspec.json.decode(data), *standard)
    for each in standard:
        os.close(each)
    asking.send(str(pid).encode())
    return {pid: told}


def _import_all() -> None:
    """Import what commands import when they run."""
    from edgebed.cli import main  # noqa: F401
    from edgebed.reports import reported  # noqa: F401
    from edgebed.reports.live import progress  # noqa: F401
    from edgebed.reports.run import brief, report  # noqa: F401
    from edgebed.reports.writing import html, terminal  # noqa: F401
    from edgebed.runtimes.processes import fork_server
    from edgebed.studies.cells import job_process  # noqa: F401

    fork_server._load()
    gc.freeze()


def _run(request: dict[str, Any], *standard: int) -> None:
    """Be the program, and end."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv = list(request["words"])
    become(sys.argv[0], *standard)
    sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115 # descriptors, of another kind than before
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace")  # noqa: SIM115
    if sys.argv[0] == FORK_SERVER:
        be_fork_server()
    fork_servers_from_here()
    job_host.subprocess = started_by(WarmJobs)  # type: ignore[attr-defined]
    from edgebed.cli.main import main

    code = 0
    try:
        if sys.argv[0] == JOBS:
            from edgebed.studies.cells import job_process

            sys.path[:] = json.loads(sys.argv[1])
            sys.exit(job_process.main(os.getppid()))
        if sys.argv[0] == PYTHON:
            del sys.argv[0]
            sys.path.insert(0, str(Path(sys.argv[0]).parent))
            runpy.run_path(sys.argv[0], run_name="__main__")
        else:
            main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
        code = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as asked, socket.socket(fileno=int(sys.argv[2])) as connecting:
        serve(asked, connecting)
