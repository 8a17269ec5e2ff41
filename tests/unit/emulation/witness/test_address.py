"""The HTTP address of a program: real calls over this machine's loopback."""

import http.client
import json
import socket
import threading
import urllib.request
from collections.abc import Iterator
from urllib.error import HTTPError

import pytest

from edgebed.emulation.orders import Call
from edgebed.emulation.witness.address import BODY_BYTES_MAX, CONNECTIONS_MAX, Address

PATIENCE_S = 30.0


class Heard:
    """What an address has been told, and a way to wait for that."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.changed = threading.Condition()

    def __call__(self, call: Call) -> None:
        """Take it in."""
        with self.changed:
            self.calls.append(call)
            self.changed.notify_all()

    def wait_for(self, count: int) -> None:
        """Wait until there were so many calls."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.calls) >= count, PATIENCE_S)


@pytest.fixture
def heard() -> Heard:
    """What the address is told."""
    return Heard()


@pytest.fixture
def address(heard: Heard) -> Iterator[Address]:
    """One of three nodes."""
    made = Address(socket.create_server(("127.0.0.1", 0)), heard, ("loss", "step"), 3)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def host_of(address: Address) -> str:
    """Where it is."""
    return f"127.0.0.1:{address.socket.getsockname()[1]}"


def post(address: Address, path: str, body: bytes = b"") -> int:
    """The status of a call."""
    with urllib.request.urlopen(
        urllib.request.Request(f"http://{host_of(address)}{path}", data=body, method="POST")
    ) as answer:
        return answer.status


def test_measures_are_handed_on(address, heard):
    """Whole numbers and others, as floats."""
    assert post(address, "/measures", b'{"loss": 0.5, "step": 3}') == 204
    assert heard.calls == [Call(measured={"loss": 0.5, "step": 3.0})]


@pytest.mark.parametrize(
    ("path", "body", "status", "says"),
    [
        ("/measures", b'{"los": 1}', 400, "no measure 'los'; program.measures has: loss, step"),
        ("/measures", b"loss=1", 400, "not JSON"),
        ("/measures", b"[1]", 400, "not a JSON object"),
        ("/measures", b'{"loss": "1"}', 400, "loss: not a finite number"),
        ("/measures", b'{"loss": true}', 400, "loss: not a finite number"),
        ("/measures", b'{"loss": NaN}', 400, "loss: not a finite number"),
        ("/measures", b'{"loss": 1e999}', 400, "loss: not a finite number"),
        ("/measures", b'{"loss": 1' + b"0" * 400 + b"}", 400, "loss: not a finite number"),
        ("/measures", b" " * (BODY_BYTES_MAX + 1), 413, "65,536 bytes at most"),
        ("/barriers/start", b'{"nodes": 4}', 400, "a number from 1 to 3"),
        ("/barriers/a b", b"", 404, "POST /measures or /barriers/NAME"),
        ("/", b"", 404, "POST /measures or /barriers/NAME"),
    ],
)
def test_what_is_wrong_is_refused_with_a_sentence(address, heard, path, body, status, says):
    """Nothing of it is handed on."""
    with pytest.raises(HTTPError) as caught:
        post(address, path.replace(" ", "%20"), body)

    assert (caught.value.code, says in caught.value.read().decode()) == (status, True)
    assert not heard.calls


def test_a_barrier_answers_once_it_opens(address, heard):
    """Whoever waits is answered then, not before; the next to come waits again."""
    answered = []
    callers = [
        threading.Thread(target=lambda: answered.append(post(address, "/barriers/start", b'{"nodes": 2}')))
        for _ in range(2)
    ]
    callers[0].start()
    heard.wait_for(1)
    callers[1].start()
    heard.wait_for(2)
    assert heard.calls == [Call(barrier="start", nodes=2)] * 2
    assert not answered

    address.open("start")
    for caller in callers:
        caller.join(PATIENCE_S)
    assert answered == [204, 204]

    late = threading.Thread(target=post, args=(address, "/barriers/start"))
    late.start()
    heard.wait_for(3)
    assert heard.calls[-1] == Call(barrier="start", nodes=3)
    address.open("start")
    late.join(PATIENCE_S)
    assert not late.is_alive()


def test_more_connections_than_there_is_room_for_are_closed(address, heard):
    """Those that stand go on to be served."""
    host = host_of(address)
    standing = [http.client.HTTPConnection(host) for _ in range(CONNECTIONS_MAX)]
    try:
        for place, each in enumerate(standing):
            each.request("POST", "/measures", json.dumps({"step": place}))
            assert each.getresponse().read() == b""
        with pytest.raises(ConnectionError):
            _answer_of(host)
        standing[0].request("POST", "/measures", b'{"step": 99}')
        assert standing[0].getresponse().status == 204
    finally:
        for each in standing:
            each.close()
    assert heard.calls[-1] == Call(measured={"step": 99.0})


def _answer_of(host: str) -> None:
    connection = http.client.HTTPConnection(host)
    try:
        connection.request("POST", "/measures", b"{}")
        connection.getresponse()
    finally:
        connection.close()
