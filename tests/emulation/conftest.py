"""Two network namespaces joined by a pair of veth, each with a thread in it; and a node's place for a program."""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from node_plans import plan_of_role
from pyroute2 import IPRoute

from edgebed.core.planned.link import LinkPlan
from edgebed.emulation.cgroups import Cgroups
from edgebed.emulation.enter import Entry
from edgebed.emulation.namespaces import Namespaces
from edgebed.emulation.netlink import LinkReader
from edgebed.emulation.resources import processes
from edgebed.emulation.tcp import choose_congestion_control

CLONE_NEWNET = 0x4000_0000


@dataclass
class Host:
    """One of the two; what is called in it runs in its namespace."""

    address: str
    thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    ip: IPRoute | None = None
    reader: LinkReader | None = None

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Its result; sockets that it makes and processes that it starts stay in the namespace."""
        return self.thread.submit(function, *arguments).result(timeout=60)

    def index(self) -> int:
        """Of its interface; IPRoute opens a socket for each thread that uses it, so only its own may."""
        (found,) = self.call(lambda: self.ip.link_lookup(ifname="data"))
        return found

    def enter(self) -> int:
        """Make the namespace; return the thread that is in it."""
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.unshare(CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        self.ip = IPRoute()
        return threading.get_native_id()

    def start(self) -> None:
        """Give the interface its address."""
        for interface in ("lo", "data"):
            (index,) = self.ip.link_lookup(ifname=interface)
            self.ip.link("set", index=index, state="up")
        self.ip.addr("add", index=index, address=self.address, prefixlen=24)
        self.reader = LinkReader(self.address)

    def close(self) -> None:
        """Leave it; then it is gone."""
        self.call(self.ip.close)
        self.reader.close()
        self.thread.shutdown()


@pytest.fixture
def hosts() -> Iterator[tuple[Host, Host]]:
    """10.77.0.1 and 10.77.0.2; the interface of each is called `data`."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root: run the tests as root")
    one, other = Host("10.77.0.1"), Host("10.77.0.2")
    one.call(one.enter)
    there = other.call(other.enter)
    peer = {"ifname": "data", "net_ns_pid": there}
    one.call(lambda: one.ip.link("add", ifname="data", kind="veth", peer=peer))
    for host in (one, other):
        host.call(host.start)
    yield one, other
    one.close()
    other.close()


@pytest.fixture
def connected() -> Callable[[Host, Host], tuple[socket.socket, socket.socket]]:
    """A TCP connection from one host to another: both its ends."""

    def connect(one: Host, other: Host) -> tuple[socket.socket, socket.socket]:
        with other.call(socket.create_server, (other.address, 0)) as listening:
            near = one.call(socket.create_connection, listening.getsockname())
            far, _ = listening.accept()
        for end in (near, far):
            choose_congestion_control(end.fileno())
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return near, far

    return connect


NODES = ("hub-0", "home-0")
SHAPED = LinkPlan(uplink_bit_s=8_000_000, downlink_bit_s=16_000_000)


class Holder:
    """A node's network and cgroup, with a folder for its files and one to write in; its link is SHAPED."""

    def __init__(self, namespaces: Namespaces, cgroups: Cgroups, folder: Path) -> None:
        self.namespaces, self.cgroups = namespaces, cgroups
        self.homes = namespaces.homes
        self.scratch, self.files = folder / "scratch", folder / "files"
        self.scratch.mkdir()
        self.files.mkdir()

    def folders(self) -> dict[str, str]:
        """Of its cgroup."""
        return {controller: str(folder) for controller, folder in self.cgroups.folders("home-0").items()}

    def entry(self, *argv: str, **other: object) -> Entry:
        """For this program."""
        hosts = "127.0.0.1 localhost\n" + "".join(f"{self.homes[node].address} {node}\n" for node in NODES)
        given = Entry(
            node="home-0", namespace=self.homes["home-0"].namespace, cgroups=tuple({*self.folders().values()}),
            hosts=hosts, scratch=str(self.scratch), argv=argv,
            environment={"PATH": os.environ["PATH"], "GREETING": "hello you"},
        )  # fmt: skip
        return msgspec.structs.replace(given, **other)

    def command(self, *argv: str, **other: object) -> list[str]:
        """What starts the program."""
        entry = msgspec.json.encode(self.entry(*argv, **other)).decode()
        return [sys.executable, "-m", "edgebed.emulation.enter", entry]

    def run(self, *argv: str, **other: object) -> subprocess.CompletedProcess[str]:
        """This program to its end."""
        words = self.command(*argv, **other)
        return subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)

    def kill_all(self) -> None:
        """End the program, and what it has started."""
        for folder in self.cgroups.folders("home-0").values():
            while pids := processes(folder):
                for pid in pids:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.01)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Namespaces, Cgroups]]:
    """The networks of a hub and of `home-0`, and the cgroups of this."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root: run the tests as root")
    with contextlib.ExitStack() as ends:
        log = tmp_path_factory.mktemp("namespaces") / "namespaces.log"
        namespaces = Namespaces({"hub-0": LinkPlan(), "home-0": SHAPED}, log, ["home-0"])
        ends.callback(namespaces.close)
        ends.callback((cgroups := Cgroups()).remove)
        cgroups.make(plan_of_role(node="home-0", role="worker", cpus=0.5))
        yield namespaces, cgroups


@pytest.fixture
def holder(places: tuple[Namespaces, Cgroups], tmp_path: Path) -> Holder:
    """That of `home-0`, for one test after the other."""
    return Holder(*places, tmp_path)
