"""The container engines of a run, one a host, and whether they still answer.

A host that is switched off, or cut off, does not answer any more: its nodes are gone, for the run. When it answers
again, what it has of them is removed, and they may be launched again.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Self

import docker
import requests
from docker.errors import DockerException

from edgebed.core.errors import InfrastructureError
from edgebed.core.plan import NodePlan
from edgebed.core.planned.hosts import EngineAddress
from edgebed.runtimes.containers.engine import EngineClient, connect

LOOK_EVERY_S = 2.0
ANSWER_S_MAX = 4.0
LOOKS_MISSED = 3
"""Times in a row that an engine has to be silent: one that is busy, or is restarted, comes back."""
HERE = ""
"""Name of the host where there is one alone."""


class Engines:
    """Clients of the engines by host; of the user's own engine where there are no hosts. A context manager."""

    def __init__(self, addresses: Sequence[EngineAddress] = (), connections: int = 10) -> None:
        """Connect to all, for so many calls at once each; InfrastructureError where one does not answer."""
        self.addresses = {address.host: address for address in addresses}
        self.connections = connections
        self.clients: dict[str, EngineClient] = {}
        self._open = ExitStack()
        try:
            for host in self.addresses or (HERE,):
                self.open(host)
        except BaseException:
            self._open.close()
            raise

    def open(self, host: str) -> None:
        """Connect to a host's engine, also once more: a way by ssh ends when the host is cut off."""
        client = connect(self.addresses.get(host), self.connections)
        self._open.callback(client.close)
        self.clients[host] = client

    @property
    def first(self) -> docker.DockerClient:
        """The engine that networks are made by, which runs beside the controller."""
        return next(iter(self.clients.values()))

    @property
    def are_many(self) -> bool:
        """Whether nodes are on several hosts."""
        return len(self.clients) > 1

    def of(self, node: NodePlan) -> docker.DockerClient:
        """The engine that has a node's container."""
        return self.clients[node.host]

    def close(self) -> None:
        """Close all connections."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class HostWatch:
    """Looks every two seconds whether each host's engine answers; does nothing where there is one host alone."""

    def __init__(self, engines: Engines, lost: Callable[[str], None], back: Callable[[str], None]) -> None:
        """Call `lost` with a host that does not answer any more, and `back` before it counts as there again.

        Both are called from other threads; what `back` raises as an InfrastructureError means not yet.
        """
        self.engines = engines
        self.lost = lost
        self.back = back
        self.away: set[str] = set()
        """Hosts that do not answer."""
        self.lock = threading.Lock()
        self.ended = threading.Event()
        self.threads = [
            threading.Thread(target=self._look, args=(host,), name=f"host-{host}", daemon=True)
            for host in (engines.clients if engines.are_many else ())
        ]
        for thread in self.threads:
            thread.start()

    def answers(self, host: str) -> bool:
        """Whether a host's engine answers now, to be asked after an error of its; one that does not is lost."""
        if not self.engines.are_many or answers(self.engines.clients[host]):
            return True
        self._note_lost(host)
        return False

    def close(self) -> None:
        """End it: what happens to hosts from now on is not told. A thread may wait for an answer yet."""
        with self.lock:
            self.ended.set()

    def _look(self, host: str) -> None:
        missed = 0
        while not self.ended.wait(LOOK_EVERY_S):
            client = self.engines.clients[host]
            missed = 0 if answers(client) else missed + 1
            if missed == LOOKS_MISSED:
                self._note_lost(host)
            elif missed == 0 and host in self.away:
                self._note_back(host)
            elif missed and host in self.away and client.tunnel:
                with suppress(InfrastructureError):
                    self.engines.open(host)

    def _note_lost(self, host: str) -> None:
        with self.lock:
            if host not in self.away:
                self.away.add(host)
                if not self.ended.is_set():
                    self.lost(host)

    def _note_back(self, host: str) -> None:
        try:
            self.back(host)
        except InfrastructureError:
            return
        with self.lock:
            self.away.discard(host)


def answers(client: docker.DockerClient) -> bool:
    """Whether an engine answers."""
    try:
        return bool(client.api.get(f"{client.api.base_url}/_ping", timeout=ANSWER_S_MAX).ok)
    except (DockerException, requests.RequestException, OSError):
        return False
