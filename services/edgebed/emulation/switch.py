r"""A network of its own for one trial: a namespace for each node, joined by a bridge in one more namespace.

    namespace of the bridge        switch
                                 /   |    \         pairs of veth
    namespaces of nodes       data  data  data       10.0.0.1 the server, 10.0.0.2, …

None has a name: whoever holds their descriptors holds them, and nothing appears in the machine's own namespace. Nobody
has to be found: each worker knows the server's Ethernet address and the server all workers', and the bridge knows
which port each is behind. So the first byte on a link is a node's own.

`python -m edgebed.emulation.switch` is the process that holds them for a trial, and changes any node's link where a
fault asks for it; namespaces.py talks with it. It is killed when the thread that started it ends, so that must be one
that lasts as long as the trial.
"""

import contextlib
import math
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
from pyroute2 import IPRoute, NetlinkError

from edgebed.core.errors import EdgebedError, InfrastructureError, KernelLackError
from edgebed.core.linux import (
    allow_open_files,
    come_first,
    die_with_parent,
    enter_network_namespace,
    enter_new_network_namespace,
    in_own_thread,
)
from edgebed.emulation.conditions import LinkState
from edgebed.emulation.namespaces import PORTS_MAX, Home, NamespacesReply, NamespacesRequest
from edgebed.emulation.orders import HelperReply, Lines
from edgebed.emulation.shaping import Shaping
from edgebed.emulation.tc import LACKING, NUD_PERMANENT, Features, Shaper, probe_here
from edgebed.wire.shared_links import links_of

INTERFACE = "data"
"""Name of a node's end of the pair in its namespace."""
LOOPBACK = 1
"""Index of lo, the first interface of every namespace."""
PREFIX_LENGTH = 16
ENOUGH_BIT_S = 10_000_000
_NUD_NOARP = 0x40  # in a bridge's table: never forgotten
_NO_IPV6 = [Path(f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6") for which in ("all", "default")]


@dataclass(frozen=True)
class Namespace:
    """A node's namespace, as whoever made it sees it."""

    ip: IPRoute
    """Netlink socket that was opened inside the namespace."""
    index: int
    """Index of the node's interface."""
    address: str
    ethernet: str
    descriptor: int
    port: int
    """Index of the bridge's port to the node."""

    @property
    def home(self) -> Home:
        """Return the node's home, as the node gets it."""
        return Home(namespace=_path(self.descriptor), address=self.address)


class Switch:
    """The namespaces of a trial. Raises InfrastructureError where the kernel refuses, e.g. without the right.

    It changes the namespace of the thread that makes it.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, Namespace] = {}
        self.descriptors = contextlib.ExitStack()
        with _explained("a network namespace"):
            self.ip, descriptor = self._enter_new()
        self.namespace = _path(descriptor)
        """Path of the namespace of the bridge."""
        with _explained("a bridge", "bridge", "bridge"):
            self.ip.link("add", ifname="switch", kind="bridge", br_stp_state=0, br_forward_delay=0, br_mcast_snooping=0)
            (self.index,) = self.ip.link_lookup(ifname="switch")
            self.ip.link("set", index=self.index, state="up")

    def add(self, node: str) -> Namespace:
        """Make a namespace for `node`; the first is the server's."""
        number = len(self.nodes) + 1
        assert number <= PORTS_MAX
        high, low = divmod(number, 256)
        with _explained(f"the network namespace of {node}", "veth", "veth"):
            ip, descriptor = self._enter_new()
            ethernet, port = f"02:ed:9e:bd:{high:02x}:{low:02x}", f"port{number}"
            peer = {"ifname": INTERFACE, "net_ns_fd": descriptor, "address": ethernet, "num_tx_queues": 1,
                    "num_rx_queues": 1}  # fmt: skip
            self.ip.link(
                "add", ifname=port, kind="veth", num_tx_queues=1, num_rx_queues=1, peer=peer, master=self.index,
                state="up",
            )  # fmt: skip
            (port_index,) = self.ip.link_lookup(ifname=port)
            self.ip.fdb("add", ifindex=port_index, lladdr=ethernet, state=_NUD_NOARP)
            (index,) = ip.link_lookup(ifname=INTERFACE)
            made = Namespace(ip, index, f"10.0.{high}.{low}", ethernet, descriptor, port_index)
            for each in (LOOPBACK, index):
                ip.link("set", index=each, state="up")
            ip.addr("add", index=index, address=made.address, prefixlen=PREFIX_LENGTH)
            for server in list(self.nodes.values())[:1]:
                _introduce(made, server)
                _introduce(server, made)
            self.nodes[node] = made
        return made

    def open(self, node: str) -> IPRoute:
        """Open one more way to change what is in a node's namespace, whose own may be closed."""
        enter_network_namespace(self.nodes[node].descriptor)
        return IPRoute()

    def close(self) -> None:
        """Let go of the namespaces; those that nobody else is in are gone then."""
        self.ip.close()
        for node in self.nodes.values():
            node.ip.close()
        self.descriptors.close()

    def _enter_new(self) -> tuple[IPRoute, int]:
        enter_new_network_namespace()
        descriptor = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self.descriptors.callback(os.close, descriptor)
        for file in _NO_IPV6:
            with contextlib.suppress(OSError):  # in a container it is not to be written: some packets more at the start
                file.write_text("1", encoding="ascii")
        return IPRoute(), descriptor


def main() -> int:
    """Hold a trial's namespaces until standard input closes; links change in time however much nodes compute."""
    if not die_with_parent(os.getppid()):
        return 1
    allow_open_files()  # a namespace takes a handful
    come_first()
    try:
        _serve()
    except EdgebedError as error:
        _say(NamespacesReply(problem=str(error)))
        return error.exit_code
    return 0


def _serve() -> None:
    lines = Lines(0)
    switch, features = Switch(), probe_here()
    shaping = Shaping(lambda node: Shaper(switch.open(node), INTERFACE, features))
    wanted = msgspec.json.decode(lines.read(math.inf) or b"", type=NamespacesRequest)
    for node, link in links_of(wanted.links).items():
        namespace = switch.add(node)
        shaping.addresses[node] = namespace.address
        changeable = node in wanted.changeable
        shaping.add(node, link, changeable=changeable)
        if not (link.changes or changeable):
            shaping.close(node)  # each takes several files
        if len(switch.nodes) > 1:  # the server's is needed to introduce it to all
            namespace.ip.close()
    homes, ports = ({name: getattr(node, what) for name, node in switch.nodes.items()} for what in ("home", "port"))
    _say(NamespacesReply(homes, bridge=switch.namespace, ports=ports))
    while (line := lines.read(shaping.due_s())) != b"":
        if line and (answer := shaping.obey(line)):
            _say(answer)
        shaping.tick()


def _say(message: NamespacesReply | HelperReply) -> None:
    os.write(1, msgspec.json.encode(message) + b"\n")


def probe() -> Features:
    """Try everything that a trial may need, once. Raises InfrastructureError where something is not possible here."""

    def in_own_namespaces() -> Features:
        switch = Switch()
        try:
            features = probe_here()
            limited = LinkState(uplink_bit_s=ENOUGH_BIT_S, downlink_bit_s=ENOUGH_BIT_S)
            Shaper(switch.add("probe").ip, INTERFACE, features).apply(limited)
            return features
        finally:
            switch.close()

    return in_own_thread(in_own_namespaces)


def _path(descriptor: int) -> str:
    """Path by which other processes open a namespace that this one holds."""
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def _introduce(one: Namespace, other: Namespace) -> None:
    """Tell `one` where `other` is."""
    one.ip.neigh("add", dst=other.address, lladdr=other.ethernet, ifindex=one.index, state=NUD_PERMANENT)


@contextlib.contextmanager
def _explained(what: str, needed: str = "", module: str = "") -> Iterator[None]:
    """Context that says what cannot be made, and why; `needed` is what the kernel must have in `module`."""
    try:
        yield
    except NetlinkError as error:
        if needed and error.code in LACKING:
            raise KernelLackError(needed, module) from error
        raise InfrastructureError(f"{what} cannot be made: {os.strerror(error.code)}") from error
    except OSError as error:
        raise InfrastructureError(f"{what} cannot be made: {error.strerror}") from error


if __name__ == "__main__":
    sys.exit(main())
