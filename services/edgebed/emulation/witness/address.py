"""The HTTP address of a node's program, on the loopback of its namespace: nothing of it is on the link.

    POST /measures         {"loss": 0.5, "step": 3}     numbers that `program.measures` names
    POST /barriers/NAME    {"nodes": 2}                 answered once so many nodes have come to it; all without a body

Both are answered by 204, and by a sentence where they are refused. The witness serves it from threads of its own, hands
on what it is told, and hears when a barrier opens: who has come is counted by the controller
(runtimes/programs/barriers.py).
"""

import json
import re
import socket
import sys
import threading
from collections.abc import Callable, Collection
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from edgebed.emulation.orders import Call

BODY_BYTES_MAX = 1 << 16
CONNECTIONS_MAX = 64
"""Connections at a time; of each node there are few."""
IDLE_S = 60.0
"""Time after which a connection that asks nothing is closed."""
BARRIER = re.compile(r"/barriers/([A-Za-z0-9_.-]{1,64})")


class RefusedCallError(Exception):
    """A call that is not as it must be."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class Address(ThreadingHTTPServer):
    """Serves a node's program."""

    daemon_threads = True

    def __init__(
        self, listener: socket.socket, told: Callable[[Call], None], measures: Collection[str], nodes: int
    ) -> None:
        """`listener` was made in the node's namespace; `told` is called from any thread.

        `measures` are those that may be told; `nodes` is how many there are.
        """
        self.told, self.measures, self.nodes = told, measures, nodes
        self._waiting: dict[str, threading.Event] = {}
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(CONNECTIONS_MAX)
        super().__init__(listener.getsockname(), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener

    def open(self, barrier: str) -> None:
        """Let those go on that wait at a barrier."""
        with self._lock:
            if waiting := self._waiting.pop(barrier, None):
                waiting.set()

    def wait(self, barrier: str, nodes: int) -> None:
        """Wait until a barrier opens."""
        with self._lock:
            waiting = self._waiting.setdefault(barrier, threading.Event())
        self.told(Call(barrier=barrier, nodes=nodes))
        waiting.wait()

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection, unless there are too many: then it is closed."""
        if self._room.acquire(blocking=False):
            try:
                super().process_request_thread(request, client_address)
            finally:
                self._room.release()
        else:
            self.shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Forget a connection that broke: the program has gone."""


class _Handler(BaseHTTPRequestHandler):
    server: Address
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    disable_nagle_algorithm = True

    def do_POST(self) -> None:  # the name that http.server calls
        """Take in what is told, or wait."""
        try:
            self._obey(self._body())
        except RefusedCallError as refusal:
            text = f"{refusal}\n".encode()
            self.close_connection = True  # a body may be left in it
            self.send_response(refusal.status)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
        else:
            text = b""
            self.send_response(HTTPStatus.NO_CONTENT)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _body(self) -> Any:
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > BODY_BYTES_MAX:
            raise RefusedCallError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has {BODY_BYTES_MAX:,} bytes at most")
        body = self.rfile.read(int(length)) or b"{}"
        try:
            found = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise RefusedCallError(HTTPStatus.BAD_REQUEST, f"not JSON: {error}") from None
        if not isinstance(found, dict):
            raise RefusedCallError(HTTPStatus.BAD_REQUEST, 'not a JSON object, e.g. {"loss": 0.5}')
        return found

    def _obey(self, body: dict[str, Any]) -> None:
        if found := BARRIER.fullmatch(self.path):
            nodes = body.get("nodes", self.server.nodes)
            if not isinstance(nodes, int) or not 1 <= nodes <= self.server.nodes:
                raise RefusedCallError(
                    HTTPStatus.BAD_REQUEST, f"nodes: a number from 1 to {self.server.nodes}, of all nodes"
                )
            self.server.wait(found[1], nodes)
        elif self.path == "/measures":
            known = ", ".join(self.server.measures) or "none"
            for name, value in body.items():
                if name not in self.server.measures:
                    raise RefusedCallError(
                        HTTPStatus.BAD_REQUEST, f"no measure {name!r}; program.measures has: {known}"
                    )
                is_number = isinstance(value, int | float) and not isinstance(value, bool)
                if not is_number or not abs(value) <= sys.float_info.max:
                    raise RefusedCallError(HTTPStatus.BAD_REQUEST, f"{name}: not a finite number")
            self.server.told(Call(measured={name: float(value) for name, value in body.items()}))
        else:
            raise RefusedCallError(HTTPStatus.NOT_FOUND, "POST /measures or /barriers/NAME (letters, digits, _ . -)")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 # as its base calls it
        """Say nothing of each call."""
