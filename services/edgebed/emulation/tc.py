"""A node's link in the kernel: a token bucket (tbf) before what it sends, and one before what it receives.

    uplink      interface --- root: tbf --> network
    downlink    interface --- clsact: u32 takes every packet, mirred --> ifb --- root: tbf --> interface
    to a node   clsact: u32 takes what goes to its address, mirred --> ifb of its own --- root: tbf --> uplink

A queueing discipline holds what leaves an interface; so what arrives is led through an interface made for that, an ifb.
The token bucket cuts large segments into packets and lets hardly more than one of them through after a silence, so that
a single small message takes as long as its bytes. Where the kernel has netem, it makes latency, jitter and loss, below
the token bucket, and what has been on its way waits for that in a queue below the netem, which counts bytes: netem's
own counts packets, and would lose the many small ones that acknowledge a fast downlink.

A link that is cut has a black hole in the place of all this, in each direction: what waits is lost. Two nodes that are
cut off from each other have a permanent neighbour each in the other's place, with an Ethernet address that no bridge
passes on: what they send each other is lost behind their own links, and nobody hears of it.

What may pass between two nodes is limited at each sender, before its uplink: what goes to the other's address is led
through an ifb with a token bucket of its own, and from there to the uplink as if it had just been sent. So the uplink's
queues stay as they are, and what goes to others waits for none of it. A classful queue at the root would have to share
the uplink between the two, by its own rules; of those, hardly one takes a token bucket below it.

All queues of edgebed's carry handles of its own. What somebody else has put onto the interface is never replaced.
Needs NET_ADMIN in the network namespace.
"""

import errno
import functools
import ipaddress
import math
import os
import socket
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyroute2 import IPRoute, NetlinkError

from edgebed.core.errors import InfrastructureError, KernelLackError
from edgebed.core.framing import MTU, burst_bytes, queue_bytes
from edgebed.core.linux import enter_new_network_namespace, in_own_thread
from edgebed.core.planned.link import IMPAIRMENTS, asked, is_impaired
from edgebed.emulation.conditions import LinkState
from edgebed.emulation.netlink import (
    _INGRESS,
    _INGRESS_HANDLE,
    _ROOT,
    ARRIVING,
    BARRED,
    IFB,
    IFB_TO,
    LEAVING,
    NETEM_UNITS,
    TICK_NS,
    UINT32_MAX,
    is_own_ifb,
)

RATE_MIN_BIT_S, RATE_MAX_BIT_S = 1_000, 8 * UINT32_MAX
MTU_MAX = 1586
"""Largest MTU of an edge device's network: hardly more than an Ethernet's."""
LACKING = (errno.ENOENT, errno.EOPNOTSUPP)
"""Numbers of the kernel's errors where it lacks a kind of queue, filter, action or interface."""
_HANDLES = {"tbf": 0xEDB1_0000, "netem": 0xEDB2_0000, "blackhole": 0xEDB3_0000, "bfifo": 0xEDB4_0000}
NUD_PERMANENT = 0x80
"""State of a neighbour that is never asked for, in the kernel's table."""
_ETHERNET = 1  # how tbf counts bytes: with Ethernet's headers
_ALL_PROTOCOLS, _IPV4 = 3, 0x0800
_NETEM_PACKETS = (
    1_000_000  # far more than TCP has on its way on a server's link: netem loses what it is asked to, no more
)
_NETEM_RATE_BYTE_S = 4_000_000_000  # far above any link's: a netem with a rate keeps packets in order

Discipline = tuple[str, dict[str, Any]]
"""Kind and options of a queueing discipline."""


@dataclass(frozen=True)
class Features:
    """What this kernel can do besides limiting rates."""

    netem: bool


@functools.cache
def probe() -> Features:
    """Try the kernel once, in a network namespace made for it and left again. Needs root, else InfrastructureError."""

    def in_own_namespace() -> Features:
        try:
            enter_new_network_namespace()
        except OSError as error:
            reason = error.strerror
            raise InfrastructureError(f"no network namespace can be made to try the kernel in: {reason}") from error
        return probe_here()

    return in_own_thread(in_own_namespace)


def probe_here() -> Features:
    """Try out the kernel on the loopback of the present network namespace, which must be one that nobody uses."""
    with IPRoute() as ip, _explained("the loopback interface"):
        (loopback,) = ip.link_lookup(ifname="lo")
        try:
            _put(ip, loopback, _ROOT, _HANDLES["netem"], ("netem", _netem(LinkState(latency_s=0.001))))
        except NetlinkError as error:
            if error.code in LACKING:
                return Features(netem=False)
            raise
        ip.tc("del", index=loopback, parent=_ROOT, handle=_HANDLES["netem"])
        return Features(netem=True)


class Shaper:
    """Holder of the link of one interface, in the network namespace that `ip` was opened in.

    Raises InfrastructureError where the kernel refuses, and where somebody else already shapes the interface.
    """

    def __init__(self, ip: IPRoute, interface: str, features: Features) -> None:
        self.ip = ip
        self.interface = interface
        self.features = features
        with _explained(interface):
            self.index = _index(ip, interface)
            if self.index is None:
                raise InfrastructureError(f"there is no network interface {interface} whose link could be limited")
            self.ifbs = {
                name: int(each["index"]) for each in ip.get_links() if is_own_ifb(name := each.get("IFLA_IFNAME"))
            }
            """Indices of edgebed's own interfaces by their names."""
            self.is_led = False
            """Whether what arrives certainly passes the ifb."""
            self.narrowed: dict[str, int] = {}
            """Addresses to which all passes an ifb of their own, with its bits a second; 0 where that is not known."""
            self.known: dict[str, str] = {}
            """Ethernet addresses that permanent neighbours had before they were barred, by their addresses."""
            self.held: dict[int, tuple[str, ...]] = {}
            """Kinds of edgebed's own queues on an interface, from the root downwards."""
            self._look()
            self.mtu = self._mtu()
            """The interface's, by which the bytes go that pass at once."""

    def prepare(self) -> None:
        """Make what takes longest, so that the link can be cut at once when it has to be; it idles until then."""
        with _explained(self.interface):
            self._make_ifb(IFB)

    def apply(self, conditions: LinkState) -> None:
        """Give the link these conditions; waiting packets stay, unless a limit appears or goes, or the link is cut."""
        assert self.index is not None
        with _explained(self.interface):
            self._hold(self.index, disciplines(conditions.uplink_bit_s, conditions, self.features, self.mtu))
            down = disciplines(conditions.downlink_bit_s, conditions, self.features, self.mtu)
            if down:
                ifb = self._make_ifb(IFB)
                self._hold(ifb, down)  # first the limit, then what it limits
                if not self.is_led and not self._prios(ARRIVING):
                    self._lead(ARRIVING, 1, _ALL_PROTOCOLS, "0x0/0x0+0", ifb)
                self.is_led = True
            elif IFB in self.ifbs:  # it stays, and idles: to remove an interface takes the kernel 20 ms
                self._lead_no_more(ARRIVING, 1)
                self._hold(self.ifbs[IFB], ())
                self.is_led = False

    def bar(self, addresses: Collection[str]) -> None:
        """Let nothing reach these addresses, and let all others be reached that were barred before."""
        with _explained(self.interface):
            for each in self.ip.get_neighbours(family=socket.AF_INET, ifindex=self.index):
                address, ethernet, state = each.get("NDA_DST"), each.get("NDA_LLADDR"), each["state"]
                if ethernet == BARRED and address not in addresses:
                    if known := self.known.pop(address, ""):
                        self._neighbour("replace", address, known)
                    else:
                        self._neighbour("del", address, BARRED)
                elif ethernet != BARRED and address in addresses and state & NUD_PERMANENT:
                    self.known[address] = ethernet
            for address in addresses:
                self._neighbour("replace", address, BARRED)

    def narrow(self, rates_bit_s: Mapping[str, int]) -> None:
        """Let no more pass to these addresses than so many bits a second, before the link; to others what that lets.

        What waits when such a limit ends passes at once.
        """
        with _explained(self.interface):
            for address in self.narrowed.keys() - rates_bit_s.keys():
                ifb = self.ifbs[_to(address)]
                self._hold(ifb, [("tbf", _tbf(RATE_MAX_BIT_S, self.mtu))])
                self._lead_no_more(LEAVING, ifb)
                del self.narrowed[address]
            for address, rate_bit_s in rates_bit_s.items() - self.narrowed.items():
                ifb = self._make_ifb(_to(address))
                self._hold(ifb, [("tbf", _tbf(rate_bit_s, self.mtu))])
                if address not in self.narrowed:
                    self._lead(LEAVING, ifb, _IPV4, f"{int(ipaddress.ip_address(address)):#x}/0xffffffff+16", ifb)
                self.narrowed[address] = rate_bit_s

    def _neighbour(self, command: str, address: str, ethernet: str) -> None:
        self.ip.neigh(command, dst=address, lladdr=ethernet, ifindex=self.index, state=NUD_PERMANENT)

    def _look(self) -> None:
        """Learn what is there; raise InfrastructureError if anything but the kernel's defaults and edgebed's own is."""
        assert self.index is not None
        for index in (self.index, *self.ifbs.values()):
            own = {}
            for qdisc in self.ip.get_qdiscs(index):
                kind, handle, parent = qdisc.get("TCA_KIND"), qdisc["handle"], qdisc["parent"]
                if handle in _HANDLES.values():
                    own[handle] = kind
                elif parent == _INGRESS and (kind != "clsact" or not self.ifbs):
                    raise self._stranger(kind, handle, kind)
                elif parent == _ROOT and handle:  # the kernel's defaults have none
                    raise self._stranger(kind, handle, "root")
            if own:
                self.held[index] = tuple(own[handle] for handle in sorted(own))
        led = self._prios(LEAVING) if self.ifbs else ()
        self.narrowed = {_address(name): 0 for name, index in self.ifbs.items() if name != IFB and index in led}

    def _mtu(self) -> int:
        """Return the interface's MTU. Raises InfrastructureError if it is none of an edge device's network."""
        (link,) = self.ip.get_links(self.index)
        mtu = int(link.get("IFLA_MTU"))
        if mtu > MTU_MAX:
            raise InfrastructureError(
                f"{self.interface} has an MTU of {mtu}; an edge device's link is limited with one of "
                f"at most {MTU_MAX}. Give the data network one of {MTU}"
            )
        return mtu

    def _stranger(self, kind: str, handle: int, place: str) -> InfrastructureError:
        return InfrastructureError(
            f"{self.interface} already has a {kind} {handle >> 16:x}: that edgebed did not put there, so its link "
            f"cannot be limited. Remove it first: tc qdisc del dev {self.interface} {place}"
        )

    def _lead(self, parent: int, prio: int, protocol: int, key: str, ifb: int) -> None:
        """Lead what u32 finds by this key to an ifb, from where it goes on as before."""
        assert self.index is not None
        self.ip.link("set", index=ifb, state="up")
        with _explained(self.interface, "ingress", "sch_ingress"):
            _put(self.ip, self.index, _INGRESS, _INGRESS_HANDLE, ("clsact", {}))
        with _explained(self.interface, "u32 or mirred", "-a cls_u32 act_mirred"):
            redirect = {"kind": "mirred", "action": "redirect", "direction": "egress", "ifindex": ifb}
            self.ip.tc(
                "add-filter", "u32", self.index, parent=parent, prio=prio, protocol=protocol, target=1, keys=[key],
                action=redirect,
            )  # fmt: skip

    def _lead_no_more(self, parent: int, prio: int) -> None:
        """Remove a filter; without any other one there is nothing left for it."""
        assert self.index is not None
        if prio in self._prios(parent):
            self.ip.tc("del-filter", index=self.index, parent=parent, info=prio << 16)
        if not (self._prios(ARRIVING) or self._prios(LEAVING)):
            _remove(self.ip, self.index, _INGRESS, _INGRESS_HANDLE)

    def _prios(self, parent: int) -> set[int]:
        """Return the priorities of the filters there, of which edgebed's on what leaves have their ifb's index."""
        return {int(each["info"]) >> 16 for each in self.ip.get_filters(index=self.index, parent=parent)}

    def _make_ifb(self, name: str) -> int:
        """Return an ifb, making it where it is not there already."""
        if name not in self.ifbs:
            with _explained(self.interface, "ifb", "ifb"):
                self.ip.link("add", ifname=name, kind="ifb")
            index = _index(self.ip, name)
            assert index is not None
            self.ifbs[name] = index
        return self.ifbs[name]

    def _hold(self, index: int, wanted: Sequence[Discipline]) -> None:
        """Put queues onto an interface, the first at its root, the second below it; what is alike there is changed."""
        kinds = tuple(kind for kind, _ in wanted)
        held = self.held.pop(index, ())
        if held and kinds != held and (not kinds or kinds[0] in held):  # a root of another kind takes its place at once
            _remove(self.ip, index, _ROOT, _HANDLES[held[0]])
        parent = _ROOT
        for kind, options in wanted:
            with _explained(self.interface, kind, f"sch_{kind}"):
                _put(self.ip, index, parent, _HANDLES[kind], (kind, options))
            parent = _HANDLES[kind] + 1
        if kinds:
            self.held[index] = kinds


def disciplines(rate_bit_s: int | None, conditions: LinkState, features: Features, mtu: int = MTU) -> list[Discipline]:
    """Return the queueing disciplines of one direction, from the root downwards; none if nothing is to be held there.

    Without a rate nothing cuts what TCP hands over, up to 64 kB at a time: netem loses all of it or nothing.
    """
    if conditions.cut:
        return [("blackhole", {})]
    wanted: list[Discipline] = []
    if rate_bit_s is not None:
        wanted.append(("tbf", _tbf(rate_bit_s, mtu)))
    if features.netem and is_impaired(conditions):
        wanted.append(("netem", _netem(conditions)))
        if rate_bit_s is not None:
            limit = struct.pack("=I", queue_bytes(rate_bit_s))  # the library leaves this kind's options as they are
            wanted.append(("bfifo", {"value": limit}))
    assert features.netem or not asked("packets", conditions), "a scenario with loss is refused where netem is missing"
    return wanted


def _tbf(rate_bit_s: int, mtu: int) -> dict[str, Any]:
    if not RATE_MIN_BIT_S <= rate_bit_s <= RATE_MAX_BIT_S:
        raise InfrastructureError(
            f"tc holds rates from {RATE_MIN_BIT_S}bit to {RATE_MAX_BIT_S}bit here, not {rate_bit_s}bit"
        )
    rate_byte_s, burst = rate_bit_s // 8, burst_bytes(rate_bit_s, mtu)
    parameters = {
        "rate": rate_byte_s,
        "rate___reserved": _ETHERNET,  # the library's name for the link layer
        "limit": queue_bytes(rate_bit_s) + burst,
        "buffer": math.ceil(burst * 1e9 / rate_byte_s / TICK_NS),
    }
    return {"attrs": [("TCA_TBF_PARMS", parameters)]}


def _netem(conditions: LinkState) -> dict[str, Any]:
    return {
        **{each.netem: round(getattr(conditions, each.field) * NETEM_UNITS[each.kind]) for each in IMPAIRMENTS},
        "limit": _NETEM_PACKETS,
        "attrs": [("TCA_NETEM_RATE", {"rate": _NETEM_RATE_BYTE_S})],
    }


def _put(ip: IPRoute, index: int, parent: int, handle: int, discipline: Discipline) -> None:
    """Add a queueing discipline, or change the one with that handle; what waits in it stays."""
    kind, options = discipline
    attributes: list[tuple[str, Any]] = [("TCA_KIND", kind)]
    if options:
        attributes.append(("TCA_OPTIONS", options))
    ip.tc("replace", index=index, parent=parent, handle=handle, attrs=attributes)


def _remove(ip: IPRoute, index: int, parent: int, handle: int) -> None:
    try:
        ip.tc("del", index=index, parent=parent, handle=handle)
    except NetlinkError as error:
        if error.code not in (errno.ENOENT, errno.EINVAL):  # gone already
            raise


def _to(address: str) -> str:
    """Return the name of the ifb for what goes to an address."""
    return f"{IFB_TO}{int(ipaddress.ip_address(address)):08x}"


def _address(name: str) -> str:
    """Return the address of which an ifb takes what goes there."""
    return str(ipaddress.ip_address(int(name.removeprefix(IFB_TO), 16)))


def _index(ip: IPRoute, interface: str) -> int | None:
    found = ip.link_lookup(ifname=interface)
    return int(found[0]) if found else None


@contextmanager
def _explained(interface: str, needed: str = "", module: str = "") -> Iterator[None]:
    """Context that turns a kernel's refusal into an InfrastructureError; `needed` is what it must have in `module`."""
    try:
        yield
    except NetlinkError as error:
        reason = os.strerror(error.code)
        if error.code in (errno.EPERM, errno.EACCES):
            raise InfrastructureError(
                f"no permission to limit the link of {interface}: that needs NET_ADMIN in its network namespace"
            ) from error
        if needed and error.code in LACKING:
            raise KernelLackError(needed, module) from error
        raise InfrastructureError(f"the kernel refuses to limit the link of {interface}: {reason}") from error
