"""Metrics over HTTP on the management network: each node's own, and the controller's list of where to find them all.

Prometheus asks the controller for `/targets` (HTTP service discovery), so it needs no rights and no list of its own,
and a crashed node stays listed, visible as down. The server behind it is small and suspicious: a thread a connection, a
bound on their number and on the life of each, no log, nothing that holds the process back when it ends.
"""

import errno
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import ServerHandler, WSGIRequestHandler, WSGIServer
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import msgspec
from prometheus_client import CollectorRegistry, make_wsgi_app

from edgebed.errors import InfrastructureError

CONNECTIONS_MAX = 32  # Prometheus and a few people looking; more is no visitor
CONNECTION_S_MAX = 10.0  # five times the time-out of a scrape
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where a node's metrics are, with the labels that tell it apart."""

    address: str
    """`host:port`"""
    node: str
    role: str
    device_class: str
    run: str
    trial: str


class TargetList:
    """The nodes of a run and where they serve; a node stays on it when it dies and moves when it comes back."""

    def __init__(self) -> None:
        self._targets: dict[str, Target] = {}
        self._lock = threading.Lock()

    def add(self, target: Target) -> None:
        """The node serves there from now on."""
        with self._lock:
            self._targets[target.node] = target

    def clear(self) -> None:
        """Another trial begins, with other nodes."""
        with self._lock:
            self._targets.clear()

    def as_discovery(self) -> list[dict[str, Any]]:
        """The full list in the form of Prometheus' HTTP service discovery."""
        with self._lock:
            targets = list(self._targets.values())
        return [
            {
                "targets": [target.address],
                "labels": {
                    "node": target.node,
                    "role": target.role,
                    "device_class": target.device_class,
                    "run": target.run,
                    "trial": target.trial,
                },
            }
            for target in targets
        ]


class HttpServer(ThreadingMixIn, WSGIServer):
    """Answers each connection in a thread of its own; no other client, and no end of the process, waits for it."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_port = False  # two runs on one port would answer by turns

    def __init__(self, address: str, port: int) -> None:
        if ":" in address:
            self.address_family = socket.AF_INET6
        self._open: dict[socket.socket, float] = {}
        """The connections being answered and when each began."""
        self._lock = threading.Lock()
        super().__init__((address, port), _SilentHandler)

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self.server_address[1])

    def server_bind(self) -> None:
        """Bind without asking the name service what this machine is called, which may take long."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, unless too many are at it already."""
        with self._lock:
            is_full = len(self._open) >= CONNECTIONS_MAX
            if not is_full:
                self._open[request] = time.monotonic()
        if is_full:
            self.shutdown_request(request)
        else:
            super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Cut off, twice a second, who takes too long to ask or to listen."""
        latest = time.monotonic() - CONNECTION_S_MAX
        with self._lock:
            overdue = [request for request, began in self._open.items() if began < latest]
        for request in overdue:
            try:
                request.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # it ended by itself meanwhile

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away or talks nonsense is no event."""
        _LOG.debug("a request from %s failed", client_address, exc_info=True)

    def close(self) -> None:
        """Stop listening; answers under way are not waited for."""
        self.shutdown()
        self.server_close()


class _SilentServerHandler(ServerHandler):
    def log_exception(self, exc_info: Any) -> None:
        _LOG.debug("an answer failed", exc_info=exc_info)


class _SilentHandler(WSGIRequestHandler):
    """Answers one request and writes no access log."""

    server: HttpServer

    def handle(self) -> None:
        self.raw_requestline = self.rfile.readline(65537)
        if len(self.raw_requestline) > 65536:
            self.requestline = self.request_version = self.command = ""
            self.send_error(414)
            return
        if not self.parse_request():
            return
        files = self.rfile, self.wfile, self.get_stderr()
        handler = _SilentServerHandler(*files, self.get_environ(), multithread=True)  # type: ignore[arg-type]
        handler.request_handler = self  # type: ignore[attr-defined]
        handler.run(self.server.application)  # type: ignore[arg-type]

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 # the name is the base's
        pass


def serve_metrics(registry: CollectorRegistry, address: str, port: int = 0) -> tuple[HttpServer, int]:
    """Serve a node's metrics at `/metrics` from a daemon thread; port 0 takes any free one. Returns server and port.

    Raises InfrastructureError where the address cannot be listened on.
    """
    return _serve({"/metrics": make_wsgi_app(registry)}, address, port)


def serve_controller(
    registry: CollectorRegistry, targets: TargetList, status: Callable[[], object], address: str, port: int = 0
) -> tuple[HttpServer, int]:
    """As `serve_metrics`, with `/targets` for Prometheus' service discovery and `/status`, the run's state as JSON.

    `status` is called for each request, from another thread, and returns what msgspec can encode.
    """
    pages = {"/metrics": make_wsgi_app(registry), "/targets": _json(targets.as_discovery), "/status": _json(status)}
    return _serve(pages, address, port)


def _serve(pages: dict[str, WSGIApplication], address: str, port: int) -> tuple[HttpServer, int]:
    try:
        server = HttpServer(address, port)
    except OSError as error:
        raise InfrastructureError(_cannot_listen(address, port, error)) from error
    server.set_app(_by_path(pages))
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server, server.port


def _cannot_listen(address: str, port: int, error: OSError) -> str:
    where = f"metrics cannot be served on {address}:{port}"
    if error.errno == errno.EADDRINUSE:
        return f"{where}: the port is in use. Choose another, or 0 for any free one; `ss -ltnp` shows who holds it."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{where}: this machine has no such address. `ip address` lists those it has."
    if error.errno == errno.EACCES:
        return f"{where}: ports below 1024 need root. Choose a higher one, or 0 for any free one."
    return f"{where}: {error.strerror or error}"


def _by_path(pages: dict[str, WSGIApplication]) -> WSGIApplication:
    """One application for several paths; any other is answered with the list of these."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return _plain(start_response, "405 Method Not Allowed", "Only GET and HEAD are answered.\n")
        page = pages.get(environ.get("PATH_INFO", ""))
        if page is None:
            return _plain(start_response, "404 Not Found", f"Here are {', '.join(pages)}.\n")
        return page(environ, start_response)

    return answer


def _plain(start_response: StartResponse, status: str, text: str) -> Iterable[bytes]:
    start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
    return [text.encode()]


def _json(value: Callable[[], object]) -> WSGIApplication:
    """An application that answers with what `value` returns at that moment."""

    def answer(_: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            body = msgspec.json.encode(value())
        except Exception:  # noqa: BLE001 # whatever fails in there must not fail the page of somebody watching
            _LOG.exception("the status cannot be told")
            return _plain(start_response, "500 Internal Server Error", "The status cannot be told; see the log.\n")
        start_response("200 OK", [("Content-Type", "application/json")])
        return [body]

    return answer
