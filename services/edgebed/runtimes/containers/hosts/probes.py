"""Probes of several hosts: a small container on each tells every two seconds how busy that host is.

    host's probe (host_load.py) --> a JSON line --> the engine --> a thread for each host, here

A probe has no right, and sees its host's processors, as every container does, and its network, whose interface to the
other hosts it reads. One that ends, or whose host does not answer, is started anew after a while; meanwhile its records
are missing, and the verdict says for how long.
"""

import secrets
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress

import docker
import msgspec

from edgebed.core.errors import InfrastructureError
from edgebed.core.records import HostLoad
from edgebed.runtimes.containers import limits
from edgebed.runtimes.containers.engine import conversing, explained
from edgebed.runtimes.containers.labels import PREFIX
from edgebed.runtimes.containers.leftovers import remove_container

COMMAND = ("python", "-m", "edgebed.emulation.host_load")
HEAR_S = 0.25
START_S_MAX = 60.0
"""Seconds that a probe may need until its first record, on a host that is busy with starting nodes."""
SILENCE_S_MAX = 10.0
AGAIN_S = 5.0
CLOSE_S_MAX = 2.0


class HostProbes:
    """Running probes of several hosts; `close` ends them."""

    def __init__(
        self,
        engines: Mapping[str, docker.DockerClient],
        addresses: Mapping[str, str],
        rates: Mapping[str, int | None],
        image: str,
        labels: Mapping[str, str],
        name: str,
    ) -> None:
        """Begin to start a probe on each host of `engines`; nobody waits for that.

        `addresses`: a host's own on the network between the hosts; of one that is missing the engine tells the address
        in its swarm. `rates`: of that network, in bit/s, where it is known better than by the interface. `image` has
        this code, `labels` are those of the trial, and `name` is the prefix of the containers' names.
        """
        self.engines = engines
        self.addresses = addresses
        self.rates = rates
        self.image = image
        self.labels = dict(labels) | {f"{PREFIX}.role": "probe"}
        self.name = name
        self._found: deque[tuple[int, HostLoad]] = deque()
        self._closing = threading.Event()
        self._threads = [
            threading.Thread(target=self._observe, args=(host,), name=f"probe-{host}", daemon=True) for host in engines
        ]
        for thread in self._threads:
            thread.start()

    def take(self) -> Iterator[tuple[int, HostLoad]]:
        """Yield what came since the last call: (the controller's monotonic clock in ns when it came, load until then).

        So a record is late by what the network and the engines took, milliseconds; no clock of its host is asked.
        """
        while self._found:
            yield self._found.popleft()

    def close(self) -> None:
        """End the probes; for a host that does not answer nobody waits. What has come can still be taken."""
        self._closing.set()
        until_s = time.monotonic() + CLOSE_S_MAX
        for thread in self._threads:
            thread.join(max(0.0, until_s - time.monotonic()))

    def _observe(self, host: str) -> None:
        """Have a probe on a host as long as it can be had."""
        while not self._closing.is_set():
            with suppress(Exception):  # whatever it is, the run goes on, and the verdict tells of missing records
                self._converse(host)
            self._closing.wait(AGAIN_S)

    def _converse(self, host: str) -> None:
        """Start a probe and take what it tells, until it ends or is silent."""
        client = self.engines[host]
        with explained(f"the probe of host {host}"):
            made = self._create(host, client)
            try:
                with conversing(client, made) as talk:
                    client.api.start(made)
                    until_s = time.monotonic() + START_S_MAX
                    while not self._closing.is_set() and time.monotonic() < until_s:
                        with suppress(TimeoutError):
                            line, heard_ns = talk.hear(HEAR_S), time.monotonic_ns()
                            if not line:
                                return
                            self._found.append((heard_ns, self._named(host, line)))
                            until_s = time.monotonic() + SILENCE_S_MAX
            finally:
                remove_container(client, made)

    def _create(self, host: str, client: docker.DockerClient) -> str:
        api = client.api
        address = self.addresses.get(host) or str(client.info().get("Swarm", {}).get("NodeAddr", ""))
        made = api.create_container(
            self.image,
            name=f"{self.name}-probe-{host}-{secrets.token_hex(2)}",  # the last one may still exist
            entrypoint=[*COMMAND, *filter(None, [address])],
            user=limits.USER,
            labels=self.labels,
            stdin_open=True,
            host_config=api.create_host_config(network_mode="host", **limits.probe_settings()),
        )
        return str(made["Id"])

    def _named(self, host: str, line: bytes) -> HostLoad:
        """What a probe told, with the name of its host, and the rate where that is known better."""
        try:
            load = msgspec.json.decode(line, type=HostLoad)
        except msgspec.MsgspecError as error:
            raise InfrastructureError(f"the probe of host {host} tells what is no record: {error}") from error
        return msgspec.structs.replace(load, host=host, rate_bit_s=self.rates.get(host) or load.rate_bit_s)
