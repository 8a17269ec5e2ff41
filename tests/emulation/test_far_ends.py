"""Far ends of real links: what a bridge's port counts, and what somebody puts there."""

import contextlib
import os
import socket
from collections.abc import Iterator

import pytest
from pyroute2 import IPRoute
from waiting import until

from edgebed.core.planned.link import LinkPlan
from edgebed.emulation.namespaces import Namespaces, inside
from edgebed.emulation.netlink import LinkReader
from edgebed.emulation.outside.kernel_sight import FAR_END, KernelSight, Place
from edgebed.emulation.outside.looks import Look

pytestmark = pytest.mark.process  # it starts processes

MBIT = 1_000_000
ROOT = 0xFFFF_FFFF
HANDLE = 0x77_0000
LINKS = {"server": LinkPlan(), "edge-0": LinkPlan(uplink_bit_s=50 * MBIT, downlink_bit_s=50 * MBIT)}


@pytest.fixture
def namespaces(tmp_path) -> Iterator[Namespaces]:
    """A server and a worker whose link edgebed limits, at the worker's own end."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root: run the tests as root")
    made = Namespaces(LINKS, tmp_path / "namespaces.log")
    yield made
    made.close()


@pytest.fixture
def sight(namespaces) -> Iterator[KernelSight]:
    """What the controller sees of both."""

    def place(node: str) -> Place:
        return Place(namespaces.made.bridge, {}, port=namespaces.made.ports[node])

    made = KernelSight(place, lambda: namespaces.made.bridge)
    yield made
    made.close()


def looks(sight: KernelSight, *, whole: bool = True) -> dict[str, Look]:
    """At both."""
    return dict(sight.look(list(LINKS), whole=whole))


@contextlib.contextmanager
def at_the_port(namespaces: Namespaces, node: str) -> Iterator[tuple[IPRoute, int]]:
    """What somebody in the bridge's namespace has: a way to change it, and the port's index."""
    with inside(namespaces.made.bridge), IPRoute() as ip:
        yield ip, namespaces.made.ports[node]


def test_a_port_counts_what_its_node_sends_and_receives(namespaces, sight):
    """The same bytes as the node's own interface, with directions as the node has them; one port or all of them."""
    before = looks(sight)
    with inside(namespaces.homes["edge-0"].namespace):
        sender, reader = (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
            LinkReader(namespaces.homes["edge-0"].address),
        )
    with sender:
        for _ in range(20):
            sender.sendto(bytes(1000), (namespaces.homes["server"].address, 9))
    until(lambda: looks(sight)["server"].downlink_bytes >= 20 * 1042, "the bytes", every_s=0.01)
    received, sent = reader.bytes()
    reader.close()
    after, counters = looks(sight), looks(sight, whole=False)

    assert before["edge-0"].uplink_bytes < 1000
    assert (after["edge-0"].uplink_bytes, after["edge-0"].downlink_bytes) == (sent, received)
    assert counters["edge-0"].uplink_bytes == sent
    assert not counters["edge-0"].is_whole
    assert {(each.mtu, each.differences, each.unread) for each in after.values()} == {(1500, (), ())}


def test_what_somebody_puts_at_a_port_is_found_by_its_kind_and_way(namespaces, sight):
    """Queues that limit and lose; what edgebed holds at the node's own end is nobody's at the port."""
    with at_the_port(namespaces, "edge-0") as (ip, port):
        ip.tc("add", "tbf", port, handle=HANDLE, parent=ROOT, rate=50_000, burst=5_000, limit=50_000)
        found = looks(sight)
        ip.tc("del", index=port, handle=HANDLE, parent=ROOT)
        ip.tc("add", "pfifo_fast", port, handle=HANDLE, parent=ROOT)
        other = looks(sight)["edge-0"].differences
        ip.tc("del", index=port, handle=HANDLE, parent=ROOT)
        ip.link("set", index=port, mtu=700)
        last = looks(sight)["edge-0"]

    assert found["edge-0"].differences == (
        "link: a tbf of 400 kbit on what the node receives, at the far end of its link",
    )
    assert found["server"].differences == ()
    assert other == ("link: a pfifo_fast on what the node receives, at the far end of its link",)
    assert (last.differences, last.mtu) == ((), 700)


@pytest.mark.parametrize("kind", ["ingress", "clsact"])
def test_a_filter_on_what_a_node_sends_is_found(namespaces, sight, kind):
    """One that could drop packets, say; a place for filters without any does nothing."""
    with at_the_port(namespaces, "edge-0") as (ip, port):
        ip.tc("add", kind, port)
        nothing = looks(sight)["edge-0"].differences
        parent = 0xFFFF_0000 if kind == "ingress" else 0xFFFF_FFF2
        ip.tc("add-filter", "u32", port, parent=parent, prio=1, protocol=3, target=1, keys=["0x0/0x0+0"])
        found = looks(sight)["edge-0"].differences

    assert nothing == ()
    assert found == ("link: a filter on what the node sends, at the far end of its link",)


def test_ports_that_are_made_anew_are_read_anew(namespaces, sight):
    """Where the process that holds them was killed: until there are others, the look says what it cannot read."""
    first = looks(sight)["edge-0"]
    namespaces.process.kill()
    namespaces.process.wait()
    sight.close()
    between = looks(sight)["edge-0"]
    namespaces.mend()
    again = looks(sight)["edge-0"]

    assert between.uplink_bytes is None
    assert between.unread[0].startswith(f"{FAR_END}: no network namespace")
    assert again.uplink_bytes is not None
    assert again.life != first.life
    assert again.unread == ()
