"""Metrics over HTTP on the management network: each node's own, and the controller's list of where to find them all.

Prometheus asks the controller for `/targets` (HTTP service discovery), so it needs no rights and no list of its own,
and a crashed node stays listed, shown as down. A process that is about to end can wait until Prometheus has read its
last values (`Visits`). The server behind it is small and suspicious: a thread a connection, a bound on their number and
on the duration of each, no log, nothing that holds the process back when it ends. Asked by a name of the internet it
answers nothing: a page in a browser on this machine may have given itself this machine's address (DNS rebinding).
"""

import contextlib
import errno
import ipaddress
import logging
import os
import select
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import ServerHandler, WSGIRequestHandler, WSGIServer
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import msgspec
from prometheus_client import CollectorRegistry, make_wsgi_app

from edgebed.core.errors import InfrastructureError

CONNECTIONS_MAX = 32  # Prometheus and a few people looking; more is no visitor
CONNECTION_S_MAX = 10.0  # five times the time-out of a scrape
WATCHED_S = 15.0  # three scrape intervals: whoever has not asked since is gone
SCRAPE_AGAIN_S = 6.0  # one scrape interval and a moment
SCRAPE_FIRST_S = 21.0  # refresh of the list, Prometheus' own two delays of 5 s each, one scrape interval, a moment
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Target:
    """The address of a node's metrics, with the labels that identify it."""

    address: str
    """Host and port, `host:port`."""
    node: str
    role: str
    device_class: str
    run: str
    trial: str
    host: str = ""
    """The host that it is on; empty, and no label, where there is one alone."""


class TargetList:
    """The nodes of a run and where they serve; a node stays on it when it dies and moves when it comes back."""

    def __init__(self) -> None:
        self._targets: dict[str, Target] = {}
        self._lock = threading.Lock()

    def add(self, target: Target) -> None:
        """Add a node, or replace its address."""
        with self._lock:
            self._targets[target.node] = target

    def remove(self, node: str) -> None:
        """Remove a node that has ended in order: no answer from there is expected any more."""
        with self._lock:
            self._targets.pop(node, None)

    def clear(self) -> None:
        """Remove all nodes: another trial begins, with other nodes."""
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
                    **({"host": target.host} if target.host else {}),
                },
            }
            for target in targets
        ]


class Visits:
    """When Prometheus came, distinguished from other visitors by a header of its own, and a way to wait for it.

    Its thread of the server notes visits; one other thread waits, for `fileno` in a poller of its own or here.
    """

    def __init__(self) -> None:
        self._last_s: dict[str, float] = {}
        """When Prometheus last began to ask for each page, on the monotonic clock."""
        self._lock = threading.Lock()
        self._expected_after_s = float("inf")
        self._arrived = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        weakref.finalize(self, os.close, self._arrived)

    def note(self, page: str, headers: Mapping[str, str], began_s: float) -> None:
        """Note that a request that began at `began_s` (monotonic clock) has been answered."""
        if not any(name.lower().startswith("x-prometheus-") for name in headers):
            return
        self._last_s[page] = began_s
        with self._lock:
            if page == "/metrics" and began_s > self._expected_after_s:
                os.eventfd_write(self._arrived, 1)

    def is_watched(self, page: str) -> bool:
        """Whether Prometheus asks for `page` regularly."""
        return time.monotonic() - self._last_s.get(page, float("-inf")) < WATCHED_S

    def linger_s(self) -> float:
        """Seconds for which a node may wait for its last scrape; 0 if Prometheus does not ask for the list of nodes.

        A node that has just been listed waits longest, and cannot know by itself that it is about to be found.
        """
        return SCRAPE_FIRST_S if self.is_watched("/targets") else 0.0

    def expect_scrape(self) -> None:
        """Note that all values are final: from here on `fileno` becomes readable when they have been read."""
        with self._lock:
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self._arrived)  # a scrape that was expected before
            self._expected_after_s = time.monotonic()

    def fileno(self) -> int:
        """A file descriptor, readable once the expected scrape has been answered."""
        return self._arrived

    def await_scrape(self) -> None:
        """Return when Prometheus has read the values of this moment; at once if it does not come regularly."""
        if self.is_watched("/metrics"):
            self.expect_scrape()
            select.select([self], [], [], SCRAPE_AGAIN_S)


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
        self.visits = Visits()
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
        """Cut off, twice a second, clients that take too long to ask or to read."""
        latest = time.monotonic() - CONNECTION_S_MAX
        with self._lock:
            overdue = [request for request, began in self._open.items() if began < latest]
        for request in overdue:
            try:
                request.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # it ended by itself meanwhile

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log a failed request for debugging only: a client that went away or talks nonsense is no event."""
        _LOG.debug("a request from %s failed", client_address, exc_info=True)

    def close(self) -> None:
        """Stop listening, without waiting for answers under way."""
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
        began_s = time.monotonic()
        files = self.rfile, self.wfile, self.get_stderr()
        handler = _SilentServerHandler(*files, self.get_environ(), multithread=True)  # type: ignore[arg-type]
        handler.request_handler = self  # type: ignore[attr-defined]
        handler.run(self.server.application)  # type: ignore[arg-type]
        self.server.visits.note(self.path.partition("?")[0], dict(self.headers), began_s)

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
    """Serve the controller's metrics as `serve_metrics` does, with `/targets` for discovery and `/status` as JSON.

    `/targets` is for Prometheus' service discovery, `/status` the run's state. `status` is called for each request,
    from another thread, and returns what msgspec can encode.
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
    """An application for several paths; any other path is answered with the list of these."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if not _is_own(environ.get("HTTP_HOST", "")):
            return _plain(start_response, "403 Forbidden", "Ask by an address, localhost or this machine's name.\n")
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return _plain(start_response, "405 Method Not Allowed", "Only GET and HEAD are answered.\n")
        page = pages.get(environ.get("PATH_INFO", ""))
        if page is None:
            return _plain(start_response, "404 Not Found", f"Here are {', '.join(pages)}.\n")
        return page(environ, start_response)

    return answer


def _is_own(host: str) -> bool:
    """Whether a request's Host may be this machine: none, an address, its name, or a name of a network of its own."""
    name = host.rpartition("]")[0].removeprefix("[") if host.startswith("[") else host.partition(":")[0]
    if "." not in name and ":" not in name:
        return True  # none, localhost, or a container's name: no name of the internet is without a dot
    with contextlib.suppress(ValueError):
        return bool(ipaddress.ip_address(name))
    return name.rstrip(".").lower() == socket.gethostname().lower()


def _plain(start_response: StartResponse, status: str, text: str) -> Iterable[bytes]:
    start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
    return [text.encode()]


def _json(value: Callable[[], object]) -> WSGIApplication:
    """An application that answers with what `value` returns at that moment."""

    def answer(_: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            body = msgspec.json.encode(value())
        except Exception:  # noqa: BLE001 # a failure in there must not fail the page
            _LOG.exception("the status is not available")
            return _plain(start_response, "500 Internal Server Error", "The status is not available; see the log.\n")
        start_response("200 OK", [("Content-Type", "application/json")])
        return [body]

    return answer
