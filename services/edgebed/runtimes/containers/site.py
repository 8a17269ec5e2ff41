"""Where a trial's containers go: their two networks, the controller's address, the labels they carry.

On the host the controller makes both networks and listens on the management network's gateway; where nodes are on
several hosts the two are overlays, and it is reached through a relay (relay.py). As a service of Compose
it finds them by looking at its own container, and its nodes carry Compose's labels, so that `docker compose ps`, `logs`
and `down --remove-orphans` see them.
"""

import hashlib
import ipaddress
import re
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import docker

from edgebed.core.errors import InfrastructureError
from edgebed.core.plan import NodePlan
from edgebed.core.planned.hosts import EngineAddress
from edgebed.emulation.resources import interface_of
from edgebed.runtimes.containers.engine import explained
from edgebed.runtimes.containers.engines import HERE, Engines
from edgebed.runtimes.containers.labels import (
    COMPOSE,
    LABEL_OWNER,
    LABEL_RUN,
    LABEL_SITE,
    LABEL_TRIAL,
    OF_NO_PROJECT,
    PREFIX,
)
from edgebed.runtimes.containers.leftovers import containers_with, networks_with, remove, remove_leftovers
from edgebed.runtimes.containers.owner import own_container, own_name
from edgebed.runtimes.containers.project import ImageNames

DATA, MANAGEMENT, BRIDGE = "data", "management", "controller"
OVERLAY = "overlay"
ADDRESSES_S_MAX, ADDRESSES_LOOK_S = 10.0, 0.05
LOOPBACK, EVERYWHERE = "127.0.0.1", "0.0.0.0"  # noqa: S104 - inside a container


@dataclass(frozen=True)
class EngineNetwork:
    """A network of the engine, by its id: names need not be unique."""

    id: str
    subnet: str
    gateway: str

    @classmethod
    def inspected(cls, client: docker.DockerClient, network_id: str) -> "EngineNetwork":
        """The network as the engine describes it; a swarm takes a moment to give it addresses."""
        until = time.monotonic() + ADDRESSES_S_MAX
        configs = None
        while configs is None and time.monotonic() < until:
            if (configs := client.api.inspect_network(network_id)["IPAM"]["Config"]) is None:
                time.sleep(ADDRESSES_LOOK_S)
        for config in configs or ():
            if ipaddress.ip_network(config["Subnet"]).version == 4:
                return cls(network_id, config["Subnet"], config.get("Gateway", "").partition("/")[0])
        raise InfrastructureError(f"the network {network_id[:12]} has no IPv4 addresses; edgebed needs them")

    def address_of(self, client: docker.DockerClient, container: str) -> str:
        """Return a running container's address in it; empty where it has none."""
        networks = client.api.inspect_container(container)["NetworkSettings"]["Networks"].values()
        return next((str(each["IPAddress"]) for each in networks if each["NetworkID"] == self.id), "")


@dataclass(frozen=True, kw_only=True)
class Site:
    """Where the containers of one trial go."""

    data: EngineNetwork
    name: str
    """Prefix of the names of the trial's containers."""
    labels: dict[str, str]
    project: str | None = None
    """The Compose project that the controller belongs to."""

    def container_name(self, node: NodePlan) -> str:
        """The name of a node's container, unique on this engine."""
        return f"{self.name}-{node.node}"

    def labels_of(self, node: NodePlan, number: int) -> dict[str, str]:
        """Labels that identify a node's container; `number` counts the containers of its class from 1."""
        labels = self.labels | {
            f"{PREFIX}.node": node.node,
            f"{PREFIX}.role": node.role,
            f"{PREFIX}.class": node.device_class,
        }
        return labels | self._composed(node.device_class, node.node, number)

    def labels_of_helper(self, node: NodePlan, number: int) -> dict[str, str]:
        """Labels that identify the helper that sets the node's link."""
        labels = self.labels | {f"{PREFIX}.link": node.node}
        return labels | self._composed(f"{node.device_class}-link", f"{node.node}-link", number)

    def _composed(self, service: str, container: str, number: int) -> dict[str, str]:
        """The labels by which Compose knows a container as one of its project."""
        if self.project is None:
            return {}
        return {
            f"{COMPOSE}.project": self.project,
            f"{COMPOSE}.service": f"node-{service}",  # never a service of the file: `up` would remove it
            f"{COMPOSE}.container-number": str(number),
            f"{COMPOSE}.oneoff": "False",
            f"{COMPOSE}.config-hash": hashlib.sha256(container.encode()).hexdigest(),
        }

    def clear(self, client: docker.DockerClient, *, networks: bool) -> None:
        """Remove the containers of the trial from an engine, and the `networks` that it has made, if asked to."""
        mine = f"{LABEL_SITE}={self.labels[LABEL_SITE]}"
        remove(client, containers_with(client, mine), networks_with(client, mine) if networks else ())


@dataclass(frozen=True, kw_only=True)
class ManagedSite(Site):
    """Where containers go that the controller talks to, over a network of its own."""

    management: EngineNetwork
    host: str
    """The controller's own address: on the management network, or where nodes are on several hosts and it is a process,
    on a bridge of the first one."""
    bridge: EngineNetwork | None = None
    """The network between a controller that is a process and its relay; None: it reaches its nodes without."""


def find_data(engines: Engines, run: str, trial: str) -> Site:
    """The data network of a trial whose containers are in no other; as `find_site`."""
    client = engines.first
    with explained("the network of the run"):
        own_id, name, labels = _named(client, run, trial)
        if own_id:
            found = _found(engines, own_id, name, labels)
            return Site(data=found.data, name=name, labels=labels, project=found.project)
        try:
            data = _make(client, f"{name}-{DATA}", labels, overlay=engines.are_many)
        except BaseException:
            remove(client, (), networks_with(client, f"{LABEL_SITE}={name}"))
            raise
        return Site(data=data, name=name, labels=labels)


def find_site(engines: Engines, run: str, trial: str) -> ManagedSite:
    """The networks for a trial: made by the first engine, or those of the Compose project that this process is in."""
    client = engines.first
    with explained("the networks of the run"):
        own_id, name, labels = _named(client, run, trial)
        if own_id:
            return _found(engines, own_id, name, labels)
        try:
            data, management = (
                _make(client, f"{name}-{each}", labels, overlay=engines.are_many) for each in (DATA, MANAGEMENT)
            )
            bridge = _make(client, f"{name}-{BRIDGE}", labels) if engines.are_many else None
            host = (bridge or management).gateway
            require_here(host)
        except BaseException:
            remove(client, (), networks_with(client, f"{LABEL_SITE}={name}"))
            raise
        return ManagedSite(data=data, management=management, host=host, name=name, labels=labels, bridge=bridge)


def _named(client: docker.DockerClient, run: str, trial: str) -> tuple[str | None, str, dict[str, str]]:
    """This process's own container, if it is in one; a name for a trial's containers, and their labels."""
    own_id = own_container(client)
    name = re.sub(r"[^a-z0-9_.-]+", "-", f"{PREFIX}-{run}-{trial}-{secrets.token_hex(3)}".lower())
    labels = OF_NO_PROJECT | {LABEL_OWNER: own_name(client, own_id), LABEL_SITE: name}
    return own_id, name, labels | {LABEL_RUN: run, LABEL_TRIAL: trial}


def require_here(gateway: str) -> None:
    """Raise where the engine's networks are not this machine's own: nodes must reach a controller on it."""
    try:
        interface_of(gateway)
    except InfrastructureError as error:
        raise InfrastructureError(
            f"the engine's networks are on another machine, or in another network namespace (here is no {gateway}): it "
            "is remote, runs in a virtual machine as Docker Desktop does, is rootless, or is a host of scripts/swarm: "
            "start the controller there as well, by docker compose up or scripts/swarm run. Or it is Podman, which "
            "does not do yet (docs/runtimes.md)."
        ) from error


def prepare(say: Callable[[str], None], addresses: Sequence[EngineAddress] = ()) -> tuple[str, dict[str, Any]]:
    """Prepare for a run: remove what killed controllers have left, which `say` reports, and inspect the engine.

    Returns the address for the controller's pages (on the host loopback, as a service of Compose all that it has: its
    published port leads to another network than the nodes') and the facts of the engine for a run's manifest, or of
    the engines of all hosts by name.
    """
    remove_leftovers(say, say_kept=lambda _: None, hosts=addresses)
    with Engines(addresses) as engines:
        facts = {host: _facts(host, client) for host, client in engines.clients.items()}
        client = engines.first
        with explained("the controller's own networks"):
            own_id = own_container(client)
            if own_id:  # told now, and not when a trial begins, where the networks are missing
                _attachments(client, client.api.inspect_container(own_id))
    return EVERYWHERE if own_id else LOOPBACK, facts.get(HERE) or {"hosts": facts}


def _facts(host: str, client: docker.DockerClient) -> dict[str, Any]:
    """Return what a run's manifest says of an engine; InfrastructureError where it has not the images."""
    what = "the images of the nodes"
    with explained(f"{what} on host {host} (`edgebed hosts images` brings them over)" if host else what):
        images = {role: client.api.inspect_image(name)["Id"] for role, name in vars(ImageNames.named()).items()}
        info = client.info()
    facts = {"version": info["ServerVersion"], "cgroup": info.get("CgroupVersion"), "images": images}
    return facts | ({"cores": info["NCPU"], "memory_bytes": info["MemTotal"]} if host else {})


def _found(engines: Engines, own_id: str, name: str, labels: dict[str, str]) -> ManagedSite:
    client = engines.first
    own = client.api.inspect_container(own_id)
    attached = _attachments(client, own)
    data, management = (EngineNetwork.inspected(client, attached[label][0]) for label in (DATA, MANAGEMENT))
    if engines.are_many:
        _require_overlay(client, (data, management))
    return ManagedSite(
        data=data,
        management=management,
        host=attached[MANAGEMENT][1],
        name=name,
        labels=labels,
        project=own["Config"]["Labels"][f"{COMPOSE}.project"],
    )


def _attachments(client: docker.DockerClient, own: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Id of the network, and own address in it, for each network by the name that its Compose file gives it."""
    found: dict[str, tuple[str, str]] = {}
    for attachment in own["NetworkSettings"]["Networks"].values():
        labels = client.api.inspect_network(attachment["NetworkID"])["Labels"] or {}
        found[labels.get(f"{COMPOSE}.network", "")] = attachment["NetworkID"], attachment["IPAddress"]
    if not {DATA, MANAGEMENT} <= found.keys():
        raise InfrastructureError(
            "the controller runs in a container without the networks 'data' and 'management' of a Compose project. "
            "Start it with docker compose, or run `edgebed run … --runtime docker` on the host."
        )
    return found


def _require_overlay(client: docker.DockerClient, networks: Sequence[EngineNetwork]) -> None:
    for network in networks:
        if client.api.inspect_network(network.id)["Driver"] != OVERLAY:
            raise InfrastructureError(
                "nodes are to be on several hosts, but the networks of this Compose project are this machine's alone. "
                "Start it with: docker compose -f docker-compose.yml -f docker-compose.swarm.yml up"
            )


def _make(client: docker.DockerClient, name: str, labels: dict[str, str], *, overlay: bool = False) -> EngineNetwork:
    """A network without a way out: nodes reach each other, and this machine by its address there.

    An `overlay` reaches over all hosts, and has no address on any.
    """
    driver = OVERLAY if overlay else "bridge"
    made = client.api.create_network(name, driver=driver, internal=True, attachable=overlay, labels=labels)
    return EngineNetwork.inspected(client, made["Id"])
