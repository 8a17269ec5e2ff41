"""The controller's side of the probes of several hosts, over connections as engines give them."""

import contextlib
import socket
import struct
import threading
import time
import types
from collections.abc import Callable, Iterator

import msgspec
import pytest

from edgebed.core.records import HostLoad
from edgebed.runtimes.containers.engine import Conversation, Stream
from edgebed.runtimes.containers.hosts import probes
from edgebed.runtimes.containers.hosts.probes import COMMAND, HostProbes

GBIT = 1_000_000_000
DEADLINE_S = 20.0
LOAD = HostLoad(busy=0.5, steal=0.0, load=1.0, lag_s=0.001, cores=2, received_bytes_s=7.0, sent_bytes_s=9.0)


class Engine:
    """Stands in for an engine: probes, whose ends of the connections the test holds."""

    def __init__(self, address: str = "") -> None:
        self.info = lambda: {"Swarm": {"NodeAddr": address}}
        self.made: list[dict] = []
        self.removed: list[str] = []
        self.probes: list[socket.socket] = []
        self.goes_on = threading.Event()
        """Cleared: no call returns."""
        self.goes_on.set()
        self.api = types.SimpleNamespace(
            create_container=self._create,
            create_host_config=lambda **settings: settings,
            start=lambda _: self.goes_on.wait(),
            remove_container=self._remove,
        )

    def _create(self, image: str, **settings: object) -> dict[str, str]:
        self.goes_on.wait()
        self.made.append({"image": image} | settings)
        return {"Id": f"probe-{len(self.made)}"}

    def _remove(self, container: str, **_: bool) -> None:
        self.goes_on.wait()
        self.removed.append(container)

    def tells(self, load: HostLoad | bytes) -> None:
        """A line of the last probe's."""
        line = load if isinstance(load, bytes) else msgspec.json.encode(load)
        self.probes[-1].sendall(struct.pack(">BxxxI", 1, len(line) + 1) + line + b"\n")


@pytest.fixture
def conversations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections to containers are pairs of sockets."""

    @contextlib.contextmanager
    def conversing(client: Engine, container: str) -> Iterator[Conversation]:
        near, far = socket.socketpair()
        client.probes.append(far)
        with near, far, contextlib.closing(socket.SocketIO(near, "rwb")) as stream:
            yield Conversation(Stream(stream))

    monkeypatch.setattr(probes, "conversing", conversing)
    monkeypatch.setattr(probes, "AGAIN_S", 0.05)


def begin(engines: dict[str, Engine], **settings: dict) -> HostProbes:
    """Probes on these."""
    asked = {"addresses": {}, "rates": {}} | settings
    return HostProbes(engines, image="node", labels={"edgebed.site": "s"}, name="edgebed-run", **asked)


def until(is_true: Callable[[], bool]) -> None:
    """Wait for another thread."""
    deadline_s = time.monotonic() + DEADLINE_S
    while not is_true():
        assert time.monotonic() < deadline_s
        time.sleep(0.005)


def heard(running: HostProbes, count: int) -> list[HostLoad]:
    """So many records."""
    found: list[HostLoad] = []
    until(lambda: bool(found.extend(load for _, load in running.take()) or len(found) >= count))
    return found


@pytest.mark.usefixtures("conversations")
def test_what_each_probe_tells_has_the_name_of_its_host_and_the_time_at_which_it_came():
    """And the rate of the network where a scenario says it; else the interface's own."""
    engines = {"a": Engine("10.0.0.1"), "b": Engine("10.0.0.2")}
    running = begin(engines, rates={"a": GBIT, "b": None}, addresses={"b": "10.9.0.2"})
    until(lambda: all(engine.probes for engine in engines.values()))
    began_ns = time.monotonic_ns()
    engines["a"].tells(LOAD)
    engines["b"].tells(msgspec.structs.replace(LOAD, rate_bit_s=7))
    found: list[tuple[int, HostLoad]] = []
    until(lambda: bool(found.extend(running.take()) or len(found) == 2))
    running.close()

    assert {load.host: load.rate_bit_s for _, load in found} == {"a": GBIT, "b": 7}
    assert all(began_ns <= came_ns <= time.monotonic_ns() for came_ns, _ in found)
    assert [engines[host].made[0]["entrypoint"] for host in "ab"] == [[*COMMAND, "10.0.0.1"], [*COMMAND, "10.9.0.2"]]
    assert [engine.removed for engine in engines.values()] == [["probe-1"], ["probe-1"]]


@pytest.mark.usefixtures("conversations")
def test_a_probe_has_no_right_at_all():
    """It sees the network of its host, and can change nothing."""
    engine = Engine()
    running = begin({"a": engine})
    until(lambda: bool(engine.probes))
    running.close()
    (made,) = engine.made
    settings = made["host_config"]

    assert settings["network_mode"] == "host"
    assert (settings["cap_drop"], settings.get("cap_add"), settings["read_only"]) == (["ALL"], None, True)
    assert settings["mem_limit"] == settings["memswap_limit"] <= 2**27
    assert settings["pids_limit"] <= 100
    assert settings["log_config"]["type"] == "none"
    assert made["user"].partition(":")[0] != "0"
    assert made["labels"]["edgebed.site"] == "s"


@pytest.mark.usefixtures("conversations")
@pytest.mark.parametrize("last_words", [None, b"no record", b'{"kind":"hostload","busy":7}'])
def test_a_probe_that_ends_or_tells_nonsense_is_started_anew(last_words):
    """Its records are missing meanwhile, and nothing else happens."""
    engine = Engine()
    running = begin({"a": engine})
    until(lambda: bool(engine.probes))
    engine.tells(LOAD)
    before = heard(running, 1)
    if last_words is None:
        engine.probes[-1].close()
    else:
        engine.tells(last_words)
    until(lambda: len(engine.probes) == 2)
    engine.tells(LOAD)
    after = heard(running, 1)
    running.close()

    assert before == after == [msgspec.structs.replace(LOAD, host="a")]
    assert engine.removed == ["probe-1", "probe-2"]


@pytest.mark.usefixtures("conversations")
@pytest.mark.parametrize("patience", ["START_S_MAX", "SILENCE_S_MAX"])
def test_a_silent_probe_is_taken_for_one_that_has_ended(monkeypatch, patience):
    """Its host may have been cut off, which no connection tells; at the beginning it may take longer."""
    monkeypatch.setattr(probes, patience, 0.3)
    engine = Engine()
    running = begin({"a": engine})
    if patience == "SILENCE_S_MAX":
        until(lambda: bool(engine.probes))
        engine.tells(LOAD)
    until(lambda: len(engine.probes) >= 2)
    running.close()

    assert "probe-1" in engine.removed


@pytest.mark.usefixtures("conversations")
def test_nobody_waits_for_an_engine_that_does_not_answer(monkeypatch):
    """Neither at the beginning nor at the end; other hosts are heard."""
    monkeypatch.setattr(probes, "CLOSE_S_MAX", 0.2)
    lost, well = Engine(), Engine()
    lost.goes_on.clear()
    running = begin({"lost": lost, "well": well})
    until(lambda: bool(well.probes))
    well.tells(LOAD)
    assert [load.host for load in heard(running, 1)] == ["well"]
    running.close()  # it would not return
    lost.goes_on.set()
    until(lambda: lost.removed == [made for made, _ in zip(["probe-1"], lost.made, strict=False)])
