"""A witness beside a real program, in real namespaces and cgroups: what it says is what the program did."""

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import msgspec
import pytest
from waiting import until

from edgebed.core.errors import InfrastructureError
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkChange
from edgebed.core.recorded.measured import Bypass, Connections, Link, Usage
from edgebed.core.records import Record
from edgebed.emulation.namespaces import inside
from edgebed.emulation.orders import Began, HelperChange
from edgebed.emulation.tcp import choose_congestion_control
from edgebed.emulation.witness.witness import WitnessLine, WitnessRequest

from .conftest import SHAPED, Holder

pytestmark = pytest.mark.process  # it starts processes and looks each second

PORT = 8000
SENT_BYTES = 300_000
CLIENT = f"""
import os, socket, sys
from multiprocessing import Process
def spin():
    while True: pass
def send(size):
    with socket.create_connection(("hub-0", {PORT})) as connection:
        connection.sendall(bytes(size))
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(10) == b"thanks"
for _ in range(3):
    send({SENT_BYTES} // 3)
kept = socket.create_connection(("hub-0", {PORT}))
kept.sendall(b"one more")
print("sent", flush=True)
for _ in range(int(sys.argv[1])):
    Process(target=spin, daemon=True).start()
sys.stdin.read()
"""
BESIDE = """
import socket
from pyroute2 import IPRoute
with IPRoute() as ip:
    ip.link("add", ifname="side", kind="veth", peer="way")
    side, way = (ip.link_lookup(ifname=name)[0] for name in ("side", "way"))
    for each in (side, way):
        ip.link("set", index=each, state="up")
    ip.addr("add", index=side, address="10.99.0.1", prefixlen=24)
    ip.neigh("add", dst="10.99.0.2", lladdr="02:00:00:00:00:01", ifindex=side, state=128)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
        sending.sendto(bytes(1000), ("10.99.0.2", 9))
    print(flush=True)
    input()
    ip.link("del", index=side)
"""


class Witnessing:
    """A witness of `home-0`, and what it has said."""

    def __init__(self, holder: Holder, **other: object) -> None:
        names = {home.address: node for node, home in holder.homes.items()}
        request = WitnessRequest(
            node="home-0", home=holder.homes["home-0"], cgroup=holder.folders(), names=names, link=SHAPED, cpus=0.5
        )
        request = msgspec.structs.replace(request, **other)
        words = [sys.executable, "-m", "edgebed.emulation.witness", msgspec.json.encode(request).decode()]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.said: list[WitnessLine] = []
        self.reading = threading.Thread(target=self._read)
        self.reading.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.said.append(msgspec.json.decode(line, type=WitnessLine))

    def hears(self, order: Began | HelperChange) -> None:
        """Tell it something."""
        self.process.stdin.write(msgspec.json.encode(order) + b"\n")
        self.process.stdin.flush()

    def all(self, kind: type[Record]) -> list[Record]:
        """What it has said of one kind."""
        return [line.record for line in self.said if isinstance(line.record, kind)]

    def says(self, what: Callable[[], object]) -> None:
        """Wait until it has."""
        until(what, "what the witness says", every_s=0.02)

    def begins(self) -> None:
        """Training begins once the link is held, and the witness has looked."""
        self.says(lambda: self.said)
        assert self.said[0].url.startswith("http://127.0.0.1:")
        self.hears(Began(time.monotonic()))
        self.says(lambda: self.all(Usage))

    def end(self) -> int:
        """Its exit code."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        code = self.process.wait(timeout=60)
        self.reading.join()
        self.process.stdout.close()
        return code


@pytest.fixture
def witness(holder) -> Iterator[Callable[..., Witnessing]]:
    """Starts one."""
    with contextlib.ExitStack() as ends:

        def start(**other: object) -> Witnessing:
            made = Witnessing(holder, **other)
            ends.callback(made.end)
            return made

        yield start


@pytest.fixture
def hub(holder) -> Iterator[None]:
    """It thanks for what it gets."""
    with inside(holder.homes["hub-0"].namespace):
        listening = socket.create_server((holder.homes["hub-0"].address, PORT))

    def serve() -> None:
        with contextlib.suppress(OSError):  # it was closed
            while True:
                connection, _ = listening.accept()
                choose_congestion_control(connection.fileno())
                served.append(threading.Thread(target=thank, args=(connection,)))
                served[-1].start()

    def thank(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while connection.recv(1 << 16):
                pass
            connection.sendall(b"thanks")

    served: list[threading.Thread] = []
    serving = threading.Thread(target=serve)
    serving.start()
    yield
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    for each in (serving, *served):
        each.join(timeout=20)


def begin(holder, spinners=0) -> subprocess.Popen:
    """The program, when it has sent all."""
    words = holder.command(sys.executable, "-c", CLIENT, str(spinners))
    program = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert program.stdout.readline() == "sent\n"
    return program


@pytest.mark.usefixtures("hub")
def test_what_a_program_sends_and_uses_is_told_by_its_witness(holder, witness):
    """The connections that have ended between two looks, too; and what all of its processes computed."""
    watched = witness()
    watched.begins()
    program = begin(holder, spinners=3)
    began_s = len(watched.all(Usage))
    watched.says(lambda: len(watched.all(Usage)) >= began_s + 3)
    holder.kill_all()
    program.communicate(timeout=60)
    assert watched.end() == 0

    (link,) = watched.all(Link)
    assert (link.uplink_held, link.downlink_held, link.problem) == (8_000_000, 16_000_000, "")
    last = watched.all(Connections)[-1]
    assert (last.peer, last.count) == ("hub-0", 4)
    assert SENT_BYTES + 8 <= last.acked_bytes <= SENT_BYTES + 8 + 2 * 4
    assert 3 * 6 <= last.received_bytes <= 3 * 6 + 4
    assert 0.0 < last.round_trip_s < 1.0
    usage = watched.all(Usage)[-1]
    assert SENT_BYTES * 1.03 < usage.uplink_bytes < SENT_BYTES * 1.2
    assert 0.1 < usage.cpu_s <= 0.5 * usage.time_s + 0.1
    assert None not in (usage.throttled_s, usage.starved_s)
    assert usage.memory_bytes > 5_000_000
    assert (usage.cpus_held, usage.differed) == (0.5, 0)
    assert watched.all(Bypass) == []


def test_bytes_beside_the_link_are_told(holder, witness):
    """A program of root's may make an interface, and take it away again."""
    watched = witness()
    watched.begins()
    words = holder.command(sys.executable, "-c", BESIDE)
    program = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    program.stdout.readline()
    watched.says(lambda: watched.all(Bypass))
    program.communicate("\n", timeout=60)
    watched.end()
    passed = {each.interface: each.bytes for each in watched.all(Bypass)}

    assert program.returncode == 0
    assert passed == {"side": 1042, "way": 1042}


def test_a_change_that_the_witness_was_told_of_is_no_difference(holder, witness):
    """Of the link and of the cap; one that nobody told it of is."""
    slower = Injection(node="home-0", action="link", change=LinkChange(uplink_bit_s=1_000_000))
    less = Injection(node="home-0", action="cpus", cpus=0.25)
    watched = witness(changeable=True)
    watched.begins()
    holder.cgroups.cap_cpus("home-0", 0.25)
    _change(holder, slower)
    for number, injection in enumerate((slower, less)):
        watched.hears(HelperChange(injection, number))
    watched.says(lambda: len(watched.all(Link)) > 1)
    held = watched.all(Link)[-1]
    looks = len(watched.all(Usage))
    watched.says(lambda: len(watched.all(Usage)) > looks + 2)
    told = watched.all(Usage)[-1]
    holder.cgroups.cap_cpus("home-0", 0.5)
    _change(holder, msgspec.structs.replace(slower, change=None))
    watched.says(lambda: watched.all(Link)[-1].problem and watched.all(Usage)[-1].differed)

    assert (held.uplink_asked, held.uplink_held, held.problem) == (1_000_000, 1_000_000, "")
    assert (told.cpus_held, told.differed) == (0.25, 0)
    assert "the kernel holds 8mbit, asked 1mbit" in watched.all(Link)[-1].problem
    watched.end()


def _change(holder, injection: Injection) -> None:
    """Have the link changed, and wait for it."""
    holder.namespaces.inject(1, injection)
    until(lambda: list(holder.namespaces.answers()), "the change", every_s=0.02)


def test_what_was_done_before_is_what_is_asked_of_a_restarted_program(holder, witness):
    """Its witness does not wait for the link as planned."""
    slower = Injection(node="home-0", action="link", change=LinkChange(uplink_bit_s=1_000_000))
    _change(holder, slower)
    watched = witness(changeable=True, injected=(slower,))
    watched.begins()
    _change(holder, msgspec.structs.replace(slower, change=None))

    assert watched.all(Link)[0].uplink_asked == 1_000_000
    watched.end()


def test_a_witness_that_cannot_watch_says_why(holder, witness):
    """With the exit code of what went wrong."""
    gone = msgspec.structs.replace(holder.homes["home-0"], namespace="/no/such/namespace")
    watched = witness(home=gone)

    assert watched.process.wait(timeout=60) == InfrastructureError.exit_code
    watched.end()
    assert [line.problem for line in watched.said] == [
        "no network namespace /no/such/namespace: No such file or directory"
    ]
