"""What the kernel holds of a link: its queues and counters, read over netlink without any right.

A request is one datagram; the kernel answers with many messages, each `length, type, flags, sequence, port, payload`. A
payload is a fixed structure and then attributes, `length, type, value`, which may hold attributes themselves. Whatever
the bytes are, they are either read or refused as `BadAnswerError`.

Numbers and names: linux/netlink.h, rtnetlink.h, if_link.h, pkt_sched.h.
"""

import ipaddress
import os
import re
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from msgspec.structs import replace

from edgebed.core.errors import InfrastructureError
from edgebed.core.planned.link import IMPAIRMENTS, Impairments, Kind, impairments_of

IFB = "edgebed-down"
"""Interface to which tc.py leads what a node receives, so that it passes a queue."""
IFB_TO = "edgebed"
"""Beginning of the name of one for what it sends to an address, which follows in eight hexadecimal digits."""
ARRIVING, LEAVING = 0xFFFF_FFF2, 0xFFFF_FFF3
"""Parents of the filters that see what an interface receives, and what it is to send, before any queue."""

TICK_NS = 64
"""The unit in which the kernel takes and gives a queue's times."""
BARRED = "01:80:c2:00:00:01"
"""Ethernet address of a neighbour that nothing is to reach: that of pauses (IEEE 802.3), which no bridge passes on."""
UINT32_MAX = 2**32 - 1
NETEM_UNITS: dict[Kind, float] = {"delay": 1e9 / TICK_NS, "packets": UINT32_MAX}
"""What netem counts for a second, and for all packets."""

Payload = bytes
_ERROR, _DONE = 2, 3
_GET_LINK, _GET_ADDRESS, _GET_NEIGHBOUR, _GET_QDISC, _GET_FILTER = 18, 22, 30, 38, 46
_REQUEST, _REQUEST_DUMP = 0x1, 0x301
_ROOT, _INGRESS = 0xFFFF_FFFF, 0xFFFF_FFF1
_INGRESS_HANDLE = 0xFFFF_0000
_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_TYPE_MASK = 0x3FFF  # the upper two bits are flags
_LINK = struct.Struct("=BxHiII")
_ADDRESS = struct.Struct("=BBBBI")
_NEIGHBOUR = struct.Struct("=B3xi4x")
_QDISC = struct.Struct("=B3xiIII")
_TBF = struct.Struct("=8xI12xII4x")  # of tc_tbf_qopt: rate in bytes a second, limit, buffer in ticks
_NETEM = struct.Struct("=6I")
_NETEM_FIELDS = ("delay", "limit", "loss", "gap", "duplicate", "jitter")
"""The fields of tc_netem_qopt."""
_BASIC = struct.Struct("=QI")
_QUEUE = struct.Struct("=4xII8x")  # of gnet_stats_queue: bytes that wait, packets dropped
_STATS64 = struct.Struct("=16xQQ")  # of rtnl_link_stats64: bytes received and sent
_UINT64 = struct.Struct("=Q")
_INT32 = struct.Struct("=i")
_UINT32 = struct.Struct("=I")
_U32_KEY = struct.Struct("=2xB13x4s4si")  # of tc_u32_sel and its first key: number of keys, mask, value, place
_DESTINATION_AT = 16
"""Place of the address in the header of IPv4 to which a packet goes."""
_MIRRED = struct.Struct("=24xI")  # of tc_mirred: the interface it leads to
_IFLA_IFNAME, _IFLA_MTU, _IFLA_LINK, _IFLA_STATS64 = 3, 4, 5, 23
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_NDA_DESTINATION, _NDA_ETHERNET = 1, 2
_TCA_KIND, _TCA_OPTIONS, _TCA_STATS2 = 1, 2, 7
_U32_SELECTOR, _U32_ACTIONS, _ACTION_KIND, _ACTION_OPTIONS, _MIRRED_PARMS = 5, 7, 1, 2, 2
_STATS_BASIC, _STATS_QUEUE, _STATS_PACKETS = 1, 3, 8
_TBF_PARMS, _TBF_RATE64 = 1, 4
_NETEM_64 = {"delay": 10, "jitter": 11}
"""Attributes in which newer kernels tell the same in nanoseconds."""


class BadAnswerError(ValueError):
    """Bytes that are no answer of netlink's."""


class Queue(Impairments, frozen=True, kw_only=True):
    """A direction of a link as the kernel holds it, with its counters since it was set."""

    rate_bit_s: int | None = None
    """Rate that limits the queue; None: no limit."""
    burst_bytes: int | None = None
    """Bytes that may leave at once after a silence."""
    limit_bytes: int | None = None
    """Bytes that may wait before packets are dropped."""
    cut: bool = False
    """Whether the queue drops everything."""
    packets: int = 0
    bytes: int = 0
    """Bytes on the wire, with the headers of Ethernet, IP and TCP."""
    drops: int = 0
    waiting_bytes: int = 0
    """Bytes in the queue now."""


@dataclass(frozen=True, kw_only=True)
class Qdisc:
    """One of the kernel's queueing disciplines."""

    interface: int
    handle: int
    parent: int
    kind: str
    queue: Queue = field(default_factory=Queue)


class Interface(NamedTuple):
    """A network interface."""

    name: str
    mtu: int
    """Bytes of the largest packet that the interface takes, without Ethernet's header."""
    received: int
    """Bytes so far, with Ethernet's headers."""
    sent: int
    peer: int
    """Index of the other end of a pair of veth, in that end's namespace; 0: there is none."""


class Netlink:
    """Connection to the kernel for questions about the network namespace that the thread is in now, for good."""

    def __init__(self, protocol: int = socket.NETLINK_ROUTE) -> None:
        """`protocol`: whom it asks; that of routing knows interfaces and what is on them."""
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
        self._socket.settimeout(5.0)
        self._sequence = 0

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def interfaces(self) -> dict[int, Interface]:
        """Return all interfaces by their index. Raises OSError and BadAnswerError, as what follows."""
        return dict(map(read_interface, self.dump(_GET_LINK, _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0))))

    def interface_at(self, index: int) -> Interface:
        """Return the interface with that index."""
        request = _LINK.pack(socket.AF_UNSPEC, 0, index, 0, 0)
        return read_interface(next(self._ask(_GET_LINK, request, _REQUEST)))[1]

    def qdiscs(self) -> list[Qdisc]:
        """Return the queueing disciplines of all interfaces."""
        return [read_qdisc(payload) for payload in self.dump(_GET_QDISC, _QDISC.pack(socket.AF_UNSPEC, 0, 0, 0, 0))]

    def filters(self, interface: int, parent: int) -> list[Payload]:
        """Return the payloads of an interface's filters below `parent`."""
        return self.dump(_GET_FILTER, _QDISC.pack(socket.AF_UNSPEC, interface, 0, parent, 0))

    def dump(self, kind: int, request: Payload) -> list[Payload]:
        """Return the payloads of the kernel's whole answer; OSError if it refuses."""
        return list(self._ask(kind, request, _REQUEST_DUMP))

    def _ask(self, kind: int, request: Payload, flags: int) -> Iterator[Payload]:
        """Yield the payloads of an answer, to the end of a dump; OSError if the kernel refuses."""
        self._sequence = (self._sequence + 1) & UINT32_MAX
        self._socket.send(_HEADER.pack(_HEADER.size + len(request), kind, flags, self._sequence, 0) + request)
        while True:
            for kind_of_message, sequence, payload in messages(self._socket.recv(1 << 16)):
                if sequence != self._sequence:
                    continue  # of an earlier question, whose answer came too late
                if kind_of_message == _DONE:
                    return
                if kind_of_message == _ERROR:
                    (code,) = unpack(_INT32, payload)
                    raise OSError(-code, os.strerror(-code))
                yield payload


class LinkReader(Netlink):
    """Reader of the interface that holds `address` in the network namespace that the thread is in now, for good.

    Raises InfrastructureError where no interface of it has the address.
    """

    def __init__(self, address: str) -> None:
        super().__init__()
        try:
            self.index = self._index_of(address)
            self.interface, self.mtu, *_ = self.interfaces()[self.index]
            """Bytes of the largest packet that the interface takes, without Ethernet's header."""
        except BaseException:
            self.close()
            raise

    def bytes(self) -> tuple[int, int]:
        """Return bytes received and sent by the interface, with Ethernet's headers. Raises OSError if it is gone."""
        own = self._own()
        return own.received, own.sent

    def queues(self) -> tuple[Queue | None, Queue | None]:
        """What limits or delays what the node sends, and what it receives; None if nothing does.

        Raises OSError and BadAnswerError.
        """
        qdiscs = self.qdiscs()
        uplink = stack(qdiscs, self.index)
        if not any(each.interface == self.index and each.parent == _INGRESS for each in qdiscs):
            return uplink, None
        ifb = next((index for index, each in self.interfaces().items() if each.name == IFB), None)
        return uplink, stack(qdiscs, ifb) if ifb is not None and self._leads_to(ifb) else None

    def barred(self) -> set[str]:
        """Addresses of the neighbours that nothing reaches from here. Raises OSError and BadAnswerError."""
        found = set()
        for payload in self.dump(_GET_NEIGHBOUR, _NEIGHBOUR.pack(socket.AF_INET, self.index)):
            _, index = unpack(_NEIGHBOUR, payload)
            known = attributes(payload[_NEIGHBOUR.size :])
            if index == self.index and known.get(_NDA_ETHERNET) == bytes.fromhex(BARRED.replace(":", "")):
                found.add(str(ipaddress.ip_address(known.get(_NDA_DESTINATION, b""))))
        return found

    def narrowed(self) -> dict[str, Queue | None]:
        """What limits, before the link, what goes to single addresses; None where it is led away and nothing does.

        Raises OSError and BadAnswerError.
        """
        qdiscs, found = self.qdiscs(), dict[str, Queue | None]()
        for payload in self.filters(self.index, LEAVING):
            for ifb in redirected(payload):
                found[destination(payload)] = stack(qdiscs, ifb)
        return found

    def mtu_now(self) -> int:
        """Bytes of the largest packet that the interface takes now, without Ethernet's header."""
        return self._own().mtu

    def _own(self) -> Interface:
        """Return the interface as it is now. Raises OSError if it is gone, and BadAnswerError."""
        own = self.interfaces().get(self.index)
        if own is None:
            raise OSError(f"the interface {self.interface} is gone")
        return own

    def _leads_to(self, ifb: int) -> bool:
        """Whether what the interface receives is led to another one."""
        return any(ifb in redirected(payload) for payload in self.filters(self.index, ARRIVING))

    def _index_of(self, address: str) -> int:
        wanted = ipaddress.ip_address(address)
        held: dict[str, int] = {}
        for payload in self.dump(_GET_ADDRESS, _ADDRESS.pack(socket.AF_UNSPEC, 0, 0, 0, 0)):
            _, _, _, _, index = unpack(_ADDRESS, payload)
            found = attributes(payload[_ADDRESS.size :])
            packed = found.get(_IFA_LOCAL, found.get(_IFA_ADDRESS, b""))
            if packed == wanted.packed:
                return int(index)
            if len(packed) == 4:
                held[str(ipaddress.ip_address(packed))] = index
        known = ", ".join(sorted(held)) or "no address"
        raise InfrastructureError(f"no network interface has the address {address}. This namespace has {known}.")


def messages(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield (type, sequence, payload) of each message in a datagram. Raises BadAnswerError."""
    while data:
        length, kind, _, sequence, _ = unpack(_HEADER, data)
        if not _HEADER.size <= length <= len(data):
            raise BadAnswerError(f"a message of {length} bytes in {len(data)}")
        yield kind, sequence, data[_HEADER.size : length]
        data = data[_aligned(length) :]


def attributes(data: bytes) -> dict[int, bytes]:
    """Return the value of each attribute by its type. Raises BadAnswerError."""
    found = {}
    while len(data) >= _ATTRIBUTE.size:
        length, kind = unpack(_ATTRIBUTE, data)
        if not _ATTRIBUTE.size <= length <= len(data):
            raise BadAnswerError(f"an attribute of {length} bytes in {len(data)}")
        found[kind & _TYPE_MASK] = data[_ATTRIBUTE.size : length]
        data = data[_aligned(length) :]
    return found


def read_interface(payload: bytes) -> tuple[int, Interface]:
    """Read an interface, and its index, from the payload of its message. Raises BadAnswerError."""
    _, _, index, _, _ = unpack(_LINK, payload)
    found = attributes(payload[_LINK.size :])
    received, sent = unpack(_STATS64, found.get(_IFLA_STATS64, b""))
    (mtu,), (peer,) = unpack(_UINT32, found.get(_IFLA_MTU, b"")), unpack(_UINT32, found.get(_IFLA_LINK, bytes(4)))
    return index, Interface(_text(found.get(_IFLA_IFNAME, b"")), mtu, received, sent, peer)


def read_qdisc(payload: bytes) -> Qdisc:
    """Read a queueing discipline from the payload of its message. Raises BadAnswerError."""
    _, interface, handle, parent, _ = unpack(_QDISC, payload)
    found = attributes(payload[_QDISC.size :])
    kind, options = _text(found.get(_TCA_KIND, b"")), found.get(_TCA_OPTIONS, b"")
    queue = Queue()
    if kind == "tbf":
        queue = _read_tbf(options)
    elif kind == "netem":
        queue = _read_netem(options)
    elif kind == "blackhole":
        queue = Queue(cut=True)
    queue = _with_counters(queue, attributes(found.get(_TCA_STATS2, b"")))
    return Qdisc(interface=interface, handle=handle, parent=parent, kind=kind, queue=queue)


def redirected(payload: bytes) -> set[int]:
    """Return the interfaces that a u32 filter leads packets to, by its message's payload. Raises BadAnswerError."""
    interfaces = set()
    for action in attributes(_u32_options(payload).get(_U32_ACTIONS, b"")).values():
        parts = attributes(action)
        if _text(parts.get(_ACTION_KIND, b"")) == "mirred":
            (interface,) = unpack(_MIRRED, attributes(parts.get(_ACTION_OPTIONS, b"")).get(_MIRRED_PARMS, b""))
            interfaces.add(interface)
    return interfaces


def is_own_ifb(name: str) -> bool:
    """Whether an interface is one to which tc.py leads what a node receives or sends: it passes the link as well."""
    return name == IFB or re.fullmatch(f"{IFB_TO}[0-9a-f]{{8}}", name) is not None


def destination(payload: bytes) -> str:
    """Return the only address of which a u32 filter takes packets to it; empty for another. Raises BadAnswerError."""
    num_keys, mask, value, place = unpack(_U32_KEY, _u32_options(payload).get(_U32_SELECTOR, b""))
    is_one = (num_keys, mask, place) == (1, b"\xff" * 4, _DESTINATION_AT)
    return str(ipaddress.ip_address(value)) if is_one else ""


def _u32_options(payload: bytes) -> dict[int, bytes]:
    found = attributes(payload[_QDISC.size :])
    return attributes(found.get(_TCA_OPTIONS, b"")) if _text(found.get(_TCA_KIND, b"")) == "u32" else {}


def stack(qdiscs: list[Qdisc], interface: int) -> Queue | None:
    """Return what an interface's queues do together: a rate at its root, a delay below it or alone; or a cut."""
    here = [each for each in qdiscs if each.interface == interface]
    for root in here:
        if root.parent == _ROOT and root.kind in ("tbf", "netem", "blackhole"):
            for child in here:
                if root.kind == "tbf" and child.kind == "netem" and child.parent >> 16 == root.handle >> 16:
                    return replace(root.queue, **impairments_of(child.queue))
            return root.queue
    return None


def _read_tbf(options: bytes) -> Queue:
    found = attributes(options)
    rate_byte_s, limit_bytes, buffer_ticks = unpack(_TBF, found.get(_TBF_PARMS, b""))
    if _TBF_RATE64 in found:
        (rate_byte_s,) = unpack(_UINT64, found[_TBF_RATE64])
    burst_bytes = round(rate_byte_s * buffer_ticks * TICK_NS / 1e9)
    return Queue(rate_bit_s=8 * rate_byte_s, burst_bytes=burst_bytes, limit_bytes=limit_bytes)


def _read_netem(options: bytes) -> Queue:
    values = dict(zip(_NETEM_FIELDS, unpack(_NETEM, options), strict=True))
    found = attributes(options[_NETEM.size :])
    held: dict[str, Any] = {each.field: values[each.netem] / NETEM_UNITS[each.kind] for each in IMPAIRMENTS}
    for each in IMPAIRMENTS:
        if (attribute := _NETEM_64.get(each.netem)) in found:
            held[each.field] = unpack(_UINT64, found[attribute])[0] * 1e-9
    return Queue(**held)


def _with_counters(queue: Queue, stats: dict[int, bytes]) -> Queue:
    sent_bytes, packets = unpack(_BASIC, stats[_STATS_BASIC]) if _STATS_BASIC in stats else (0, 0)
    if _STATS_PACKETS in stats:
        (packets,) = unpack(_UINT64, stats[_STATS_PACKETS])
    waiting_bytes, drops = unpack(_QUEUE, stats[_STATS_QUEUE]) if _STATS_QUEUE in stats else (0, 0)
    return replace(queue, bytes=sent_bytes, packets=packets, drops=drops, waiting_bytes=waiting_bytes)


def unpack(layout: struct.Struct, data: bytes) -> tuple[Any, ...]:
    """Return the fields at the beginning of `data`. Raises BadAnswerError."""
    if len(data) < layout.size:
        raise BadAnswerError(f"{len(data)} bytes where {layout.size} are needed")
    return layout.unpack_from(data)


def _text(data: bytes) -> str:
    return data.partition(b"\0")[0].decode("utf-8", "replace")


def _aligned(length: int) -> int:
    return (length + 3) & ~3
