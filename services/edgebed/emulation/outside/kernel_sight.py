"""Nodes seen in the kernel of this machine: cgroups by their files, ports of a bridge over netlink.

One thread uses it. Reading a node takes some 0.2 ms of CPU time, its counters alone half of that.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from edgebed.core.errors import InfrastructureError
from edgebed.emulation.namespaces import inside
from edgebed.emulation.netlink import Interface, Netlink
from edgebed.emulation.outside.looks import Look, Quota, counters_alone, cpu_folder, differences, lowest_above
from edgebed.emulation.outside.ports import limits
from edgebed.emulation.resources import account, is_frozen, processes


class Place(NamedTuple):
    """Where a node is to be seen, and what edgebed has set there."""

    life: str
    """What its counters are of: of another life they begin anew."""
    folders: Mapping[str, Path]
    """Its cgroup's folder for each controller of version 1, or for "" in version 2; none: it has no cgroup."""
    cpus: float | None = None
    """The CPU cap that was set, in cores; None: none."""
    memory_bytes: int | None = None
    """The memory cap that was set."""
    pid: int = 0
    """Its process; 0: not known."""
    port: int = 0
    """Index of the interface at its link's far end; 0: it cannot be read."""
    unread: tuple[str, ...] = ()
    """What cannot be read and why, each as `what: why`."""
    network: str = ""
    """Path of the network namespace that all of its processes are to be in; empty: they need not be."""
    keeper: int = 0
    """The process that holds that namespace, and may be in it itself."""


FAR_END = "far end of its link"
"""How an end that cannot be read is called."""


@dataclass
class Ports:
    """What was read of the far ends in one round."""

    counts: dict[int, Interface] = field(default_factory=dict)
    limits: dict[int, tuple[str, ...]] = field(default_factory=dict)
    problem: str = ""


class KernelSight:
    """Reads what the kernel of this machine holds of nodes, and counts."""

    def __init__(self, place: Callable[[str], Place | None], bridge: Callable[[], str | None]) -> None:
        """`place` tells where a node is, None if it is not there; `bridge` the path of the namespace of all ports.

        An empty path is the namespace of this process; None: there are no ports. Both may change at any time.
        """
        self.place = place
        self.bridge = bridge
        self.reader: tuple[str, Netlink] | None = None
        """The namespace of the ports, and what reads them."""

    def look(self, nodes: Sequence[str], *, whole: bool) -> Iterator[tuple[str, Look]]:
        """Yield a look at each of the nodes that is there."""
        places = dict(self._places(nodes))
        ports_s, ports = time.monotonic(), self._ports([place.port for place in places.values()], whole=whole)
        above: dict[Path, Quota | None] = {}
        networks = networks_of_all() if whole and any(place.network for place in places.values()) else {}
        for node, place in places.items():
            with suppress(OSError, ValueError, IndexError):  # it is going, and the others are looked at all the same
                if look := self._look(place, ports_s, ports, above, whole=whole):
                    gone_astray = tuple(astray(place, networks)) if place.network and whole else ()
                    yield node, replace(look, differences=(*look.differences, *gone_astray))

    def _places(self, nodes: Sequence[str]) -> Iterator[tuple[str, Place]]:
        for node in nodes:
            with suppress(OSError, ValueError):
                if place := self.place(node):
                    yield node, place

    def close(self) -> None:
        """Close what reads the ports."""
        if self.reader:
            self.reader[1].close()
            self.reader = None

    def _look(
        self, place: Place, since_s: float, ports: Ports, above: dict[Path, Quota | None], *, whole: bool
    ) -> Look | None:
        """Look at a node; None if it is gone, or going."""
        usage = account(place.folders if whole else counters_alone(place.folders))
        port = ports.counts.get(place.port)
        is_port_gone = whole and place.port and port is None and not ports.problem
        if is_port_gone or (place.folders and usage.cpu_s is None):
            return None
        counted = Look(
            life=place.life,
            since_s=since_s,
            until_s=time.monotonic(),
            cpu_s=usage.cpu_s,
            uplink_bytes=port.received if port else None,
            downlink_bytes=port.sent if port else None,
        )
        if not whole:
            return counted
        folder = cpu_folder(place.folders)
        if folder and folder.parent not in above:
            above[folder.parent] = lowest_above(folder)
        unread = place.unread
        if place.port and port is None:
            unread = (*unread, f"{FAR_END}: {ports.problem}")
        return replace(
            counted,
            is_whole=True,
            cpus_held=usage.cpu_limit_cores,
            above=above[folder.parent] if folder else None,
            memory_bytes=usage.peak_bytes,
            memory_held_bytes=usage.memory_limit_bytes,
            mtu=port.mtu if port else None,
            is_stopped=is_stopped(place),
            differences=tuple(differences(usage, place.cpus, place.memory_bytes, ports.limits.get(place.port, ()))),
            unread=unread,
        )

    def _ports(self, indices: Sequence[int], *, whole: bool) -> Ports:
        """Read the ports with these indices."""
        bridge, wanted = self.bridge(), {index for index in indices if index}
        if bridge is None or not wanted:
            return Ports()
        try:
            reader = self._reader(bridge)
            if whole:
                return Ports(reader.interfaces(), limits(reader, wanted))
            return Ports({index: reader.interface_at(index) for index in wanted})
        except (InfrastructureError, OSError, ValueError) as error:
            self.close()
            return Ports(problem=str(error))

    def _reader(self, bridge: str) -> Netlink:
        if self.reader and self.reader[0] != bridge:
            self.close()
        if self.reader is None:
            with inside(bridge):
                self.reader = bridge, Netlink()
        return self.reader[1]


def is_stopped(place: Place) -> bool:
    """Whether somebody has frozen a node's cgroup, or stopped a process in it by a signal or as a debugger does.

    Not where the node is gone, or not known.
    """
    folder = cpu_folder(place.folders)
    pids = {place.pid, *(processes(folder) if folder else ())} - {0}
    return is_frozen(place.folders) or any(_state(pid) in ("T", "t") for pid in pids)


def _state(pid: int) -> str:
    """A process's state, as the kernel writes it; empty if it is gone."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return status.rpartition(")")[2].split()[0]


def networks_of_all() -> dict[int, int]:
    """The network namespace of each process of this machine that it can be read of, as the number of its file."""
    found = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 # hundreds, five times a second
        if name.isdecimal():
            with suppress(OSError):  # it has just ended
                found[int(name)] = _network(int(name))
    return found


def _network(pid: int) -> int:
    return os.stat(f"/proc/{pid}/ns/net").st_ino  # noqa: PTH116 # likewise


def astray(place: Place, networks: Mapping[int, int]) -> Iterator[str]:
    """Yield what of a program has left its node's network, or its cgroup and not the network, as `cause: what`.

    Who has left both is one of this machine's processes like any other. Raises OSError where the network is gone.
    """
    own, folder = Path(place.network).stat().st_ino, cpu_folder(place.folders)
    inside = set(processes(folder)) if folder else set(networks)
    for pid in sorted(inside):
        if networks.get(pid, own) != own:
            yield f"bypass: its process {_name(pid)} was in another network, where its link and limits are not"
            break
    for pid in (pid for pid, network in networks.items() if network == own and pid not in inside | {place.keeper}):
        with suppress(OSError):  # it had ended before the cgroup was read
            if _network(pid) == own:
                yield f"cgroup: the process {_name(pid)} was in its network, and not in its cgroup, where caps are"
                break


def _name(pid: int) -> str:
    """A process's number and name, for messages."""
    with suppress(OSError):
        return f"{pid} ({Path(f'/proc/{pid}/comm').read_text(encoding='utf-8', errors='replace').strip()})"
    return str(pid)
