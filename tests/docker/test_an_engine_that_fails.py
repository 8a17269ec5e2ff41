"""An engine that fails at a start, as a busy one does: something between it and the runs answers in its place."""

import contextlib
import os
import re
import socket
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from quick_runs import run

from edgebed.core.errors import InfrastructureError
from edgebed.runtimes.containers.engine import SOCKET

START = rb"POST \S+/containers/\w+/start "
HELPER = rb"POST \S+/containers/create\?name=\S+-link-"
BODY = b'{"message": "OCI runtime create failed: timed out"}'
FAILED = b"HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
SCENARIO = {
    "name": f"again-{os.getpid()}",
    "question": "Does a node start where the engine failed at it?",
    "task": {"data": "digits", "model": "small", "batch_size": 10},
    "method": "asgd",
    "fleet": {"edge": {"count": 2, "uplink": "20mbit"}},
    "evaluation": {"every": "20 updates"},
    "stop": {"updates": 40},
}


class FailingEngine(socketserver.ThreadingUnixStreamServer):
    """Passes on to this machine's engine what comes, but for the first `failures` requests like `what`."""

    daemon_threads = True

    def __init__(self, path: Path, what: bytes, failures: int) -> None:
        super().__init__(str(path), Relay)
        self.what, self.failures = re.compile(what), failures
        self.lock = threading.Lock()

    def fails(self, request: bytes) -> bool:
        """Whether this request is one that fails."""
        if not self.what.match(request):
            return False
        with self.lock:
            self.failures -= 1
            return self.failures >= 0


class Relay(socketserver.BaseRequestHandler):
    """One connection, and the one to the engine that belongs to it."""

    server: FailingEngine

    def handle(self) -> None:
        """Pass on both ways until both ends have ended theirs."""
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as engine:
            engine.connect(str(SOCKET))
            back = threading.Thread(target=passed, args=(engine, self.request), daemon=True)
            back.start()
            while part := self.request.recv(65536):
                if self.server.fails(part):
                    self.request.sendall(FAILED % (len(BODY), BODY))
                else:
                    engine.sendall(part)
            engine.shutdown(socket.SHUT_WR)
            back.join()


def passed(source: socket.socket, sink: socket.socket) -> None:
    """Pass on what comes, and that it has ended."""
    with contextlib.suppress(OSError):
        while part := source.recv(65536):
            sink.sendall(part)
        sink.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def failing(path: Path, what: bytes, failures: int, monkeypatch) -> Iterator[None]:
    """An engine that fails at first, as the one that runs use."""
    with FailingEngine(path, what, failures) as engine:
        threading.Thread(target=engine.serve_forever, daemon=True).start()
        monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
        yield
        engine.shutdown()


@pytest.mark.parametrize(("what", "failures"), [(START, 2), (HELPER, 1)], ids=["nodes", "helpers"])
def test_what_the_engine_did_not_start_is_tried_again(engine, tmp_path, monkeypatch, what, failures) -> None:
    """All take part; what was made in vain is gone."""
    with failing(tmp_path / "engine.sock", what, failures, monkeypatch):
        trial = run(SCENARIO, runtime="docker", runs_dir=tmp_path).trials["asgd"]

    assert trial.summary.updates == 40, trial.summary.reason
    assert set(trial.series.workers) == {"edge-0", "edge-1"}
    assert engine.removable() == []


def test_an_engine_that_goes_on_failing_ends_the_run_with_its_words(engine, tmp_path, monkeypatch) -> None:
    """Three times for a node are enough."""
    with (
        failing(tmp_path / "engine.sock", START, 100, monkeypatch),
        pytest.raises(InfrastructureError, match="OCI runtime"),
    ):
        run(SCENARIO, runtime="docker", runs_dir=tmp_path)

    assert engine.removable() == []
