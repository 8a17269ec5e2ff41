"""Nodes that are containers, seen from outside.

    on the controller's own host, as root   cgroups by their files; ports of the engine's bridge over netlink
    elsewhere                               CPU time and memory by the engine's statistics

A container on this host is found by its process, whose cgroup has the container's id in its path. A controller that is
a container itself sees neither, and the ports of an overlay network are in a namespace of the engine's own.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import requests
from docker.errors import DockerException

from edgebed.core.errors import InfrastructureError
from edgebed.emulation.namespaces import inside
from edgebed.emulation.netlink import LinkReader, Netlink
from edgebed.emulation.outside.kernel_sight import FAR_END, KernelSight, Place
from edgebed.emulation.outside.looks import Look
from edgebed.emulation.resources import ROOT, cgroup_folders
from edgebed.runtimes.containers.container import Container
from edgebed.runtimes.containers.engine import joined

ENGINE_SHARE_MAX = 0.1
"""Share of the time for which engines may be asked for statistics: an answer takes some 50 ms."""
NOT_HERE = "its host's kernel cannot be seen from the controller"
HIDDEN = "it is in a namespace of the engine's own, as of an overlay network"


class ContainerSight:
    """The containers of a trial, wherever they are. One thread uses it."""

    def __init__(
        self, container: Callable[[str], Container | None], memory_bytes: Mapping[str, int | None], network: str
    ) -> None:
        """`container`: a node's present one, None before its link is set. `network`: the data network's id.

        `memory_bytes`: the memory cap of each node's container.
        """
        self.container = container
        self.memory_bytes = memory_bytes
        self.network = network
        self.found: dict[str, Place] = {}
        """Where each container is to be seen, by its id."""
        self.kernel = KernelSight(self._place, lambda: "")
        self.since_s = time.monotonic()
        self.asking_s = 0.0
        """Seconds for which engines have been asked."""
        self.turn: deque[str] = deque()
        """Nodes whose engine is asked next in a round."""

    def look(self, nodes: Sequence[str], *, whole: bool) -> Iterator[tuple[str, Look]]:
        """Yield a look at each of the nodes; of those that only engines know, as many as there is time for."""
        places = {node: place for node in nodes if (place := self._place(node))}
        yield from self.kernel.look([node for node, place in places.items() if place.folders], whole=whole)
        others = [node for node, place in places.items() if not place.folders]
        if whole:
            self.turn.extend(node for node in others if node not in self.turn)
            others = [self.turn.popleft() for _ in range(len(self.turn))]
        for number, node in enumerate(others):
            if self.asking_s > ENGINE_SHARE_MAX * (time.monotonic() - self.since_s):
                self.turn.extendleft(reversed(others[number:]))
                return
            if node in places and (look := self._asked(node, places[node])):
                yield node, look

    def close(self) -> None:
        """Let go of what was opened."""
        self.kernel.close()

    def _place(self, node: str) -> Place | None:
        """Where a node is to be seen; None before it has started, or when it is gone."""
        container = self.container(node)
        if container is None:
            return None
        if container.id not in self.found:
            with suppress(DockerException, requests.RequestException, OSError):
                state = container.client.api.inspect_container(container.id)
                if state["State"]["Pid"]:
                    self.found[container.id] = self._find(container, state)
        place = self.found.get(container.id)
        return place and place._replace(cpus=container.cpus_set, memory_bytes=self.memory_bytes[node])

    def _find(self, container: Container, state: dict[str, Any]) -> Place:
        pid = state["State"]["Pid"]
        folders = {each: folder for each, folder in cgroup_folders(pid, ROOT).items() if container.id in str(folder)}
        if os.geteuid() or not {"", "cpu"} & folders.keys():
            return Place(container.id, {}, unread=(f"caps of its cgroup: {NOT_HERE}", f"{FAR_END}: {NOT_HERE}"))
        port, why = self._port(container, pid, state)
        return Place(container.id, folders, pid=pid, port=port, unread=(f"{FAR_END}: {why}",) if why else ())

    def _port(self, container: Container, pid: int, state: dict[str, Any]) -> tuple[int, str]:
        """Index of the other end of a container's link in this namespace; or 0, and why it is not there."""
        addresses = [
            each["IPAddress"]
            for each in joined(container.client, state).values()
            if each["NetworkID"] == self.network and each["IPAddress"]
        ]
        if not addresses:
            return 0, "the engine tells no address of it"
        try:
            with inside(f"/proc/{pid}/ns/net"):
                own = LinkReader(addresses[0])
            here = Netlink()
            try:
                peer = own.interface_at(own.index).peer
                far = here.interfaces().get(peer)
            finally:
                own.close()
                here.close()
        except (InfrastructureError, OSError, ValueError) as error:
            return 0, str(error)
        return (peer, "") if far and far.peer == own.index else (0, HIDDEN)

    def _asked(self, node: str, place: Place) -> Look | None:
        """What a container's engine counts; None where it gives no answer."""
        container = self.container(node)
        since_s = time.monotonic()
        try:
            told = container.client.api.stats(place.life, stream=False, one_shot=True) if container else {}
            cpu_ns = told["cpu_stats"]["cpu_usage"]["total_usage"]
        except (DockerException, requests.RequestException, OSError, KeyError):
            return None
        finally:
            self.asking_s += time.monotonic() - since_s
        if not cpu_ns:
            return None  # it has ended
        return Look(
            life=place.life,
            since_s=since_s,
            until_s=time.monotonic(),
            cpu_s=cpu_ns * 1e-9,
            is_whole=True,
            memory_bytes=told.get("memory_stats", {}).get("max_usage"),
            unread=place.unread,
        )
