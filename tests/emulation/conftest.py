"""Two network namespaces of their own, joined by a pair of veth, each entered by a thread that stays in it."""

import ctypes
import os
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from pyroute2 import IPRoute

from edgebed.emulation.netlink import LinkReader
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
