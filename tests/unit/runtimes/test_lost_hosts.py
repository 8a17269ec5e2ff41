"""Hosts that do not answer any more, and come back; and the relay that joins their networks to a controller."""

import asyncio
import queue
import threading
import types

import pytest

from edgebed.core.errors import InfrastructureError
from edgebed.runtimes.containers import engines as engines_module
from edgebed.runtimes.containers import relay as relay_module
from edgebed.runtimes.containers.engines import HostWatch
from edgebed.runtimes.containers.relay import Relay

DEADLINE_S = 20.0


class Hosts:
    """Stands in for the engines of hosts a and b, of which a test says who answers, and which look it is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clients = {name: types.SimpleNamespace(name=name, tunnel=None) for name in "ab"}
        self.are_many = True
        self.silent: set[str] = set()
        self.told: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
        self.looked = threading.Semaphore(0)
        self.refuses = False
        monkeypatch.setattr(engines_module, "answers", self._answers)
        monkeypatch.setattr(engines_module, "LOOK_EVERY_S", 0.001)
        self.watch = HostWatch(self, lambda host: self.told.put(("lost", host)), self._back)  # type: ignore[arg-type]

    def open(self, host: str) -> None:
        """Connect to a host anew, by another way."""
        self.clients[host] = types.SimpleNamespace(name=f"{host} again", tunnel=None)

    def _answers(self, client: types.SimpleNamespace) -> bool:
        if client.name == "b":
            self.looked.release()
        return client.name not in self.silent

    def _back(self, host: str) -> None:
        if self.refuses:
            self.refuses = False
            raise InfrastructureError("it has gone again")
        self.told.put(("back", host))

    def looks(self, number: int) -> None:
        """Wait for so many looks at b from now on."""
        while self.looked.acquire(blocking=False):
            pass
        for _ in range(number):
            assert self.looked.acquire(timeout=DEADLINE_S)


@pytest.fixture
def hosts(monkeypatch):
    """Watched until the test is over."""
    made = Hosts(monkeypatch)
    yield made
    made.watch.close()
    for thread in made.watch.threads:
        thread.join(DEADLINE_S)


def test_a_host_that_is_silent_is_lost_once_and_comes_back_once_it_is_cleared(hosts):
    """What fails while it is cleared means that it is not back yet; the other host is never told of."""
    hosts.looks(5)
    assert hosts.told.empty()
    hosts.refuses = True
    hosts.silent.add("b")
    assert hosts.told.get(timeout=DEADLINE_S) == ("lost", "b")
    hosts.looks(10)
    assert hosts.told.empty()
    assert hosts.watch.away == {"b"}
    hosts.silent.clear()
    assert hosts.told.get(timeout=DEADLINE_S) == ("back", "b")
    hosts.looks(5)
    assert (hosts.watch.away, hosts.told.empty(), hosts.refuses) == (set(), True, False)


def test_after_an_error_of_its_engine_a_silent_host_is_lost_at_once(hosts, monkeypatch):
    """Nobody waits for more looks; an error of an engine that answers is an error."""
    monkeypatch.setattr(engines_module, "LOOKS_MISSED", 10**9)
    assert hosts.watch.answers("b")
    hosts.silent.add("b")
    assert not hosts.watch.answers("b")
    assert hosts.told.get(timeout=DEADLINE_S) == ("lost", "b")


def test_a_way_by_ssh_that_has_ended_is_opened_anew(hosts):
    """It does not come back by itself, as its engine does."""
    hosts.clients["b"].tunnel = object()
    hosts.silent.add("b")
    assert hosts.told.get(timeout=DEADLINE_S) == ("lost", "b")
    assert hosts.told.get(timeout=DEADLINE_S) == ("back", "b")
    assert hosts.clients["b"].name == "b again"


def test_a_host_alone_is_not_watched(monkeypatch):
    """Its engine's errors are the run's."""
    alone = types.SimpleNamespace(are_many=False, clients={"": None})
    before = threading.active_count()
    watch = HostWatch(alone, pytest.fail, pytest.fail)  # type: ignore[arg-type]
    assert watch.answers("")
    assert threading.active_count() == before


def test_the_relay_copies_both_ways_and_ends_when_its_target_is_gone(monkeypatch):
    """Whatever the sizes; a side that ends ends the other; while a connection is open the relay does not end."""
    monkeypatch.setattr(relay_module, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(relay_module, "LOOKS_MISSED", 3)
    monkeypatch.setattr(relay_module, "PORT", 0)
    sent = bytes(range(256)) * 3000

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while part := await reader.read(10_000):
            writer.write(part)
            await writer.drain()
        writer.close()

    async def body() -> bytes:
        target = await asyncio.start_server(echo, "127.0.0.1", 0)
        relay = Relay("127.0.0.1", target.sockets[0].getsockname()[1])
        serving = asyncio.create_task(relay.serve())
        port = await asyncio.wait_for(relay.listening, DEADLINE_S)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        got = await asyncio.wait_for(reader.readexactly(len(sent)), DEADLINE_S)
        target.close()  # it takes nobody new
        await asyncio.sleep(0.1)
        assert not serving.done()
        writer.write_eof()
        assert await asyncio.wait_for(reader.read(), DEADLINE_S) == b""
        writer.close()
        await asyncio.wait_for(serving, DEADLINE_S)
        return got

    assert asyncio.run(body()) == sent
