"""Whether hosts are fit for a run over all of them: engines, images, swarm, links, and the way between them.

    every host       what its engine says; its kernel is tried in a container
    the first one    makes an overlay network; a container in it answers (reach.py)
    every other one  a container in the network measures the way to the first

Whatever is made carries this process as its owner and is removed at the end, also when the user interrupts.
"""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import docker
import msgspec
from docker.errors import ImageNotFound

from edgebed.core.errors import InfrastructureError
from edgebed.core.patience import patience
from edgebed.core.planned.hosts import EngineAddress
from edgebed.emulation.orders import HelperReply
from edgebed.runtimes.containers import limits
from edgebed.runtimes.containers.engine import connected, conversing, explained
from edgebed.runtimes.containers.hosts.reach import Measured
from edgebed.runtimes.containers.labels import LABEL_OWNER, LABEL_RUN, LABEL_SITE, OF_NO_PROJECT, PREFIX
from edgebed.runtimes.containers.leftovers import containers_with, networks_with, remove
from edgebed.runtimes.containers.links import COMMAND as LINK_COMMAND
from edgebed.runtimes.containers.owner import own_container, own_name
from edgebed.runtimes.containers.project import ImageNames
from edgebed.runtimes.containers.register import forget_containers, note_containers
from edgebed.runtimes.containers.site import require_here

REACH_COMMAND = ("python", "-m", "edgebed.runtimes.containers.hosts.reach")
ANSWER_S = 40.0
"""Within which a container on an idle host has answered for certain."""
PORTS = "TCP 2377 to the first host; TCP and UDP 7946 and UDP 4789 between all"
VXLAN_BYTES = 50  # what a swarm puts around a packet
BUILD = "scripts/build-images builds it"


class HostCheck(msgspec.Struct):
    """What was found on a host. None and "": unknown."""

    host: str
    engine: str
    """Its address."""
    version: str = ""
    api: str = ""
    architecture: str = ""
    cgroup: str = ""
    cores: int | None = None
    memory_bytes: int | None = None
    netem: bool | None = None
    images: dict[str, str] = {}
    """Ids by name; an image that is missing has none."""
    swarm: str = ""
    """`manager`, `worker`, or `none`."""
    way: Measured | None = None
    """The way to the first host, through an overlay network; None for that one."""
    problems: list[str] = []
    """What is wrong, and what to do."""


@dataclass(frozen=True)
class _Visit:
    """A host whose engine answers, and what is needed to start something there."""

    client: docker.DockerClient
    check: HostCheck
    labels: Mapping[str, str]
    is_first: bool = False
    """Whether the controller is to be on this host."""

    @contextmanager
    def explained(self, what: str) -> Iterator[None]:
        """Note what goes wrong as a problem of the host."""
        try:
            with explained(what):
                yield
        except InfrastructureError as error:
            self.check.problems.append(str(error))

    def hear(self, command: Sequence[str], network: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The answer of a command in a container of its own."""
        with self.talking(command, network, settings) as (_, answer):
            return answer

    @contextmanager
    def talking(
        self, command: Sequence[str], network: str, settings: Mapping[str, Any]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """A container that runs a command for as long as this is open, by its id, and its first answer."""
        api = self.client.api
        made: str = api.create_container(
            ImageNames.named().server,
            name=f"{self.labels[LABEL_SITE]}-{secrets.token_hex(2)}",
            entrypoint=list(command),
            user="0:0" if "cap_add" in settings else limits.USER,
            labels=dict(self.labels),
            stdin_open=True,
            host_config=api.create_host_config(network_mode=network, **settings),
        )["Id"]
        with conversing(self.client, made) as talk:
            api.start(made)
            waits_s, waited = patience(ANSWER_S)
            try:
                line = talk.hear(waits_s)
            except TimeoutError as error:
                raise InfrastructureError(f"nothing was heard {waited}") from error
            if not line:
                words = talk.complaints.decode(errors="replace").strip().rpartition("\n")[2]
                raise InfrastructureError(
                    f"{' '.join(command)} ended: {words or 'without a word'}. Is its image of this code? {BUILD}"
                )
            yield made, msgspec.json.decode(line)


def check_hosts(addresses: Sequence[EngineAddress], say: Callable[[str], None]) -> list[HostCheck]:
    """Check all hosts, the first of which is to have the controller; `say` is told what takes a while."""
    checks = {address.host: HostCheck(address.host, address.engine) for address in addresses}
    note_containers(addresses)
    with connected(addresses, connections=4) as (clients, problems):
        for address, problem in problems.items():
            if address:
                checks[address.host].problems.append(_without_host(address.host, problem))
        for twin in checks.keys() - clients.keys() - {address.host for address in problems if address}:
            checks[twin].problems.append("its engine is that of another host of the file; name each once")
        visits = _visits(clients, checks)
        try:
            if visits:
                say(f"looking at {', '.join(clients)} …")
            _at_once(_look, visits)
            _compare(visits, first=next(iter(checks)))
            if len(checks) > 1 and visits and visits[0].check.host == next(iter(checks)):
                _measure(visits, say)
        finally:
            _remove_all(visits)
    forget_containers()
    return list(checks.values())


def _visits(clients: Mapping[str, docker.DockerClient], checks: Mapping[str, HostCheck]) -> list[_Visit]:
    if not clients:
        return []
    first = next(iter(clients.values()))
    labels = OF_NO_PROJECT | {
        LABEL_OWNER: own_name(first, own_container(first)),
        LABEL_RUN: "hosts check",
        LABEL_SITE: f"{PREFIX}-check-{secrets.token_hex(4)}",
    }
    controller = next(iter(checks))
    return [_Visit(client, checks[host], labels, host == controller) for host, client in clients.items()]


def _at_once(do: Callable[[_Visit], None], visits: Sequence[_Visit]) -> None:
    """Do something for several hosts; when it is interrupted, threads end as their containers are removed."""
    pool = ThreadPoolExecutor(max(1, len(visits)))
    try:
        list(pool.map(do, visits))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _look(visit: _Visit) -> None:
    """Find out what one host has."""
    check = visit.check
    with visit.explained("the engine"):
        info, version = visit.client.info(), visit.client.version()
        check.version, check.api = info["ServerVersion"], version["ApiVersion"]
        check.architecture, check.cgroup = info["Architecture"], str(info.get("CgroupVersion", ""))
        check.cores, check.memory_bytes = info["NCPU"], info["MemTotal"]
        swarm = info.get("Swarm", {})
        is_active = swarm.get("LocalNodeState") == "active"
        check.swarm = ("manager" if swarm.get("ControlAvailable") else "worker") if is_active else "none"
        for name in vars(ImageNames.named()).values():
            check.images[name] = _image_id(visit.client, name)
    if visit.is_first:
        with visit.explained("the controller's place"):
            _require_here(visit.client)
    if check.images.get(ImageNames.named().server):
        with visit.explained("the kernel could not be tried"):
            answer = visit.hear((*LINK_COMMAND, "--probe"), "none", limits.helper_settings())
            check.netem = msgspec.convert(answer, HelperReply).netem


def _require_here(client: docker.DockerClient) -> None:
    """Raise where a run's controller, which is to be here, would not be on the engine's machine.

    Inside a container of the engine it is.
    """
    if own_container(client) is None:
        for pool in client.api.inspect_network("bridge")["IPAM"]["Config"]:
            if gateway := pool.get("Gateway"):
                require_here(gateway)


def _image_id(client: docker.DockerClient, name: str) -> str:
    try:
        return str(client.api.inspect_image(name)["Id"])
    except ImageNotFound:
        return ""


def _compare(visits: Sequence[_Visit], first: str) -> None:
    """Find what does not go together."""
    known = {visit.check.host: visit for visit in visits}
    if first not in known:
        return
    own, members = known[first].check, _members(known[first])
    for visit in visits:
        check = visit.check
        check.problems += _image_problems(check, own)
        if len(visits) == 1 or not check.swarm:
            continue
        if check is own and check.swarm != "manager":
            check.problems.append(
                "the first host has to manage the swarm of all, and it does not. On it: docker swarm init "
                "--advertise-addr ITS-ADDRESS"
            )
        elif members is not None and visit.client.info()["Swarm"].get("NodeID") not in members:
            left = "docker swarm leave, and then " if check.swarm != "none" else ""
            check.problems.append(
                f"it is not in the swarm of {first}. On it: {left}what `docker swarm join-token worker` says on {first}"
            )


def _members(first: _Visit) -> set[str] | None:
    """The ids of the hosts in the swarm that the first one manages; None if it manages none."""
    if first.check.swarm != "manager":
        return None
    members: set[str] = set()
    with first.explained("the hosts of the swarm"):
        members |= {str(node["ID"]) for node in first.client.api.nodes()}
    return members or None


def _image_problems(check: HostCheck, own: HostCheck) -> Iterator[str]:
    for name, found in check.images.items():
        wanted = own.images.get(name)
        if check is own:
            if not found:
                yield f"there is no image {name}: {BUILD}"
        elif check.architecture != own.architecture:
            if not found:
                yield f"there is no image {name}, and {own.host}'s is for {own.architecture}: on this host {BUILD}"
        elif wanted and found != wanted:
            what = f"its image {name} is another than {own.host}'s" if found else f"there is no image {name}"
            yield f"{what}: edgebed hosts images brings it over"


def _measure(visits: Sequence[_Visit], say: Callable[[str], None]) -> None:
    """Measure the way from each host to the first, through a network that is made for it."""
    first, others = visits[0], [visit for visit in visits[1:] if _can_measure(visit)]
    if first.check.swarm != "manager" or not _can_measure(first) or not others:
        return
    say(f"measuring the way to {first.check.host} …")
    with first.explained("the way between the hosts"):
        api = first.client.api
        network = api.create_network(
            first.labels[LABEL_SITE], driver="overlay", attachable=True, internal=True, labels=dict(first.labels)
        )["Id"]
        with first.talking((*REACH_COMMAND, "serve"), network, limits.probe_settings()) as (server, answer):
            (joined,) = api.inspect_container(server)["NetworkSettings"]["Networks"].values()
            where = joined["IPAddress"], str(answer["port"])
            _at_once(lambda visit: _measure_one(visit, first.check.host, network, where), others)


def _can_measure(visit: _Visit) -> bool:
    return bool(visit.check.swarm not in ("", "none") and visit.check.images.get(ImageNames.named().server))


def _measure_one(visit: _Visit, first: str, network: str, where: tuple[str, str]) -> None:
    with visit.explained(f"no way to {first} (firewalls have to let through {PORTS})"):
        answer = visit.hear((*REACH_COMMAND, "measure", *where), network, limits.probe_settings())
        if problem := answer.get("problem"):
            visit.check.problems.append(
                f"no way to {first} through the swarm's network: {problem}. Firewalls have to let through {PORTS}"
            )
            return
        visit.check.way = way = msgspec.convert(answer, Measured)
        if not way.passes:
            visit.check.problems.append(
                f"packets of {way.mtu} bytes do not get to {first} and back. The network between the hosts has to "
                f"carry {way.mtu + VXLAN_BYTES} bytes: raise the MTU of what is between them"
            )


def _remove_all(visits: Sequence[_Visit]) -> None:
    """Remove what was made: containers everywhere, then the network, which is the first host's."""
    for visit in visits:
        mine = f"{LABEL_SITE}={visit.labels[LABEL_SITE]}"
        with visit.explained("what was made for the check is left; edgebed down removes it"):
            remove(visit.client, containers_with(visit.client, mine))
    for visit in visits[:1]:
        mine = f"{LABEL_SITE}={visit.labels[LABEL_SITE]}"
        with visit.explained("what was made for the check is left; edgebed down removes it"):
            remove(visit.client, (), networks_with(visit.client, mine))


def _without_host(host: str, problem: InfrastructureError) -> str:
    return str(problem).removeprefix(f"host {host}: ")
