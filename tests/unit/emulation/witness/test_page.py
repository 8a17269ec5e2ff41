"""A program's page for Prometheus: real answers over this machine's loopback."""

import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from prometheus_client import CollectorRegistry, Gauge, start_http_server

from edgebed.core.planned.program import OutputMeasure, Page
from edgebed.emulation.orders import Call
from edgebed.emulation.witness.page import BYTES_MAX, PageReader

METRICS = {"loss": 'loss{split="a\\"b"}', "step": "step", "told": ""}
Read = Callable[[bytes], Call]


def reader_of(port: int) -> PageReader:
    """What reads the page on a port."""
    measures = [OutputMeasure(name=name, pattern="", metric=metric) for name, metric in METRICS.items()]
    return PageReader(Page(port=port), measures)


@pytest.fixture
def read() -> Iterator[Read]:
    """Reads a page whose whole answer is given."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        reader = reader_of(listener.getsockname()[1])

        def answer(data: bytes) -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(data)

        def read_one(data: bytes) -> Call:
            server = threading.Thread(target=answer, args=(data,))
            server.start()
            try:
                return reader.read()
            finally:
                server.join()

        yield read_one


def page(text: str) -> bytes:
    """A whole answer that has a text."""
    return b"HTTP/1.1 200 OK\r\n\r\n" + text.encode()


def test_what_prometheus_own_library_shows_is_read():
    """With labels that have quotes in them; a measure that is no metric is not looked for."""
    registry = CollectorRegistry()
    loss = Gauge("loss", "a loss", ["split", "fold"], registry=registry)
    loss.labels('a"b', "1").set(0.5)
    loss.labels("other", "1").set(3)
    Gauge("step", "a step", registry=registry).set(7)
    server, thread = start_http_server(0, "127.0.0.1", registry)
    try:
        assert reader_of(server.server_port).read() == Call(measured={"loss": 0.5, "step": 7.0})
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "does not answer: Remote end closed connection without response"),
        (b"no HTTP\r\n", "does not answer: no HTTP"),
        (b"HTTP/1.1 503 Busy\r\n\r\n", "does not answer: it says 503 Busy"),
        (page("<html>"), "is no text for Prometheus: "),
        (page("\\{, =a {}1{\n"), "is no text for Prometheus: string index out of range"),
        (page("step seven\n"), "is no text for Prometheus: "),
        (b"HTTP/1.1 200 OK\r\n\r\n\xff", "is no text for Prometheus: "),
        (page("#" * (BYTES_MAX + 1)), "is no text for Prometheus: it has more than 1,048,576 bytes"),
        (page("steps 7\n"), "has no step"),
        (page('step{a="1"} 7\nstep{a="2"} 8\n'), "has 2 of step: say which by their labels"),
        (page("step NaN\n"), "is nan, no finite number"),
    ],
)
def test_why_a_measure_is_not_there_is_said(read: Read, answer: bytes, why: str):
    """In a sentence; no value is told."""
    call = read(answer)

    assert call.measured == {}
    assert why in call.unread["step"]


def test_of_a_measure_that_has_come_nothing_more_is_said(read: Read):
    """A program that ends closes its page, and that is no problem."""
    assert read(page("step 7\n")).measured == {"step": 7.0}
    assert read(b"").unread.keys() == {"loss"}


def test_a_port_that_nobody_listens_on_is_named():
    """With the page's address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    assert reader_of(port).read().unread["step"].startswith(f"http://127.0.0.1:{port}/metrics does not answer: ")
