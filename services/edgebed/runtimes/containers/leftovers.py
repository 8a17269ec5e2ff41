"""Removing what edgebed has put onto an engine: a trial's own objects, or those that killed controllers have left.

An old engine may miscount who is in a network when containers join it while others leave, as in many restarts at once.
It then keeps the network until it is restarted and counts anew: joining and leaving it again does not help. This is
reported with what to do, and is no error.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import docker
from docker.errors import APIError, NotFound

from edgebed.core.console import say as say_aloud
from edgebed.core.errors import InfrastructureError
from edgebed.core.planned.hosts import EngineAddress
from edgebed.runtimes.containers.engine import CALL_S_MAX, connected, engine_id, explained, is_there
from edgebed.runtimes.containers.labels import (
    LABEL_FOLDER,
    LABEL_HOLDER,
    LABEL_OWNER,
    LABEL_RUN,
    LABEL_TRIAL,
    LABEL_VOLUME,
)
from edgebed.runtimes.containers.owner import Life, Witnesses
from edgebed.runtimes.containers.register import engines_left_behind, forget_dead
from edgebed.runtimes.containers.server_volume import LogKeeping, remove_volume

AT_ONCE = 8
CONFLICT, FORBIDDEN = 409, 403  # what the engine answers
IN_SWARM = "in use by task"
"""What a swarm's manager says of a network that a container on any of its hosts is in."""
LET_GO_S = 5.0
LOOK_S = 0.1
ENDPOINT = "ep-"
"""Prefix by which the engine lists the end of a container that is gone."""


@dataclass
class Found:
    """What edgebed has on one engine."""

    host: str
    client: docker.DockerClient
    engine: str
    """The engine's id."""
    containers: list[dict[str, Any]]
    networks: list[dict[str, Any]]

    def of(self, owner: str) -> "Found":
        """What one owner has of it."""

        def mine(things: list[dict[str, Any]]) -> list[dict[str, Any]]:
            return [thing for thing in things if thing["Labels"][LABEL_OWNER] == owner]

        return replace(self, containers=mine(self.containers), networks=mine(self.networks))

    @property
    def owners(self) -> set[str]:
        """All owners of it."""
        return {thing["Labels"][LABEL_OWNER] for thing in (*self.containers, *self.networks)}


def remove_leftovers(
    say: Callable[[str], None],
    say_kept: Callable[[str], None] | None = None,
    *,
    logs: LogKeeping | None = None,
    hosts: Sequence[EngineAddress] = (),
    say_away: Callable[[str], None] | None = None,
    engines: Mapping[str, docker.DockerClient] | None = None,
) -> int:
    """Remove containers and networks whose controller is gone; return their number.

    They are looked for on the user's own engine, on those of controllers that were killed, and on those of `hosts`; or
    on `engines` alone, clients by host. `say` is called with what was removed; `say_away`, or else `say`, with which
    host does not answer; `say_kept`, or else `say`, with what stays because its controller still runs, or may run.
    `logs` says what becomes of servers' logs, which runs that have broken off resume from; None: they stay.

    InfrastructureError where none of the `hosts` answers, at the end.
    """
    if engines is not None:
        return _remove_from(engines, say, say_kept or say, logs)
    others = (*hosts, *engines_left_behind())
    with connected((*others, None) if not others or is_there() else others, AT_ONCE) as (clients, problems):
        for address, problem in problems.items():
            if not clients and (address is None or len(problems) == 1):
                raise problem
            (say_away or say)(f"{problem} What earlier runs have left there stays; edgebed down tries again")
        removed = _remove_from(clients, say, say_kept or say, logs)
    forget_dead(problems)
    if hosts and all(address in problems for address in hosts):
        raise InfrastructureError(
            f"no engine answers on {', '.join(each.host for each in hosts)}: nothing is removed there"
        )
    return removed


def _remove_from(
    engines: Mapping[str, docker.DockerClient],
    say: Callable[[str], None],
    say_kept: Callable[[str], None],
    logs: LogKeeping | None,
) -> int:
    """Remove what is left on these engines; one that fails is said, and the others go on, unless it is the only one."""
    tell = say if len(engines) > 1 else None
    found = []
    for host, client in engines.items():
        with _told(host, tell):
            listed = containers_with(client, LABEL_OWNER), networks_with(client, LABEL_OWNER)
            found.append(Found(host, client, engine_id(client), *listed))
    witnesses = Witnesses({each.engine: each.client for each in found})
    removed, kept = 0, set[str]()
    for owner in sorted(set().union(*(each.owners for each in found))):
        parts = [part for each in found if (part := each.of(owner)).owners]
        life = _life(witnesses, owner, parts)
        if life == "gone":
            removed += _remove_parts(parts, say, tell)
            continue
        kept |= {container["Labels"].get(LABEL_VOLUME, "") for part in parts for container in part.containers}
        say_kept(f"kept {_described(parts)}: {WHY_KEPT[life]}")
    for each in found:
        if logs and (logs.hosts is None or each.host in logs.hosts):
            with _told(each.host, tell):
                removed += _remove_logs(each, logs, kept, witnesses, say, say_kept)
    return removed


WHY_KEPT = {
    "lives": "its controller seems to be running",
    "unknown": "whether its controller runs cannot be told from here; on that one's host: edgebed down",
}


def _life(witnesses: Witnesses, owner: str, parts: Sequence[Found]) -> Life:
    """Whether an owner runs, by whoever has seen it: one that runs anywhere does."""
    lives = {witnesses.life_of(owner, is_remote=part.client.is_remote) for part in parts}
    return "lives" if "lives" in lives else "gone" if "gone" in lives else "unknown"


def _remove_parts(parts: Sequence[Found], say: Callable[[str], None], tell: Callable[[str], None] | None) -> int:
    """Remove what one owner has on several engines: all containers, then networks, which go when nobody is in them."""
    gone = []
    for part in parts:
        with _told(part.host, tell):
            remove(part.client, part.containers, say=say)
            gone.append(replace(part, networks=[]))
    for place, part in enumerate(gone):
        with _told(part.host, tell):
            listed = next(each.networks for each in parts if each.host == part.host)
            mine = own_networks(part.client, listed)
            stuck = remove(part.client, (), mine, say)
            gone[place] = replace(part, networks=[network for network in mine if network["Name"] not in stuck])
    if any(part.owners for part in gone):
        say(f"removed {_described(gone)}, whose controller is gone")
    return sum(len(part.containers) + len(part.networks) for part in gone)


@contextmanager
def _told(host: str, tell: Callable[[str], None] | None) -> Iterator[None]:
    """Tell what an engine fails at, and go on; without anybody to tell, fail."""
    try:
        with explained(f"what earlier runs have left on {host}" if host else "what earlier runs have left"):
            yield
    except InfrastructureError as error:
        if tell is None:
            raise
        tell(str(error))


def _remove_logs(
    found: Found,
    logs: LogKeeping,
    in_use: Collection[str],
    witnesses: Witnesses,
    say: Callable[[str], None],
    say_kept: Callable[[str], None],
) -> int:
    """Remove an engine's logs of servers whose controller is gone, as `logs` says; return their number."""
    removed = 0
    for volume in found.client.api.volumes(filters={"label": LABEL_OWNER})["Volumes"] or ():
        name, labels = volume["Name"], volume["Labels"]
        if name in in_use or _life(witnesses, labels[LABEL_OWNER], (found,)) != "gone":
            continue
        run, belongs = labels.get(LABEL_RUN, "?"), logs.belongs(name, labels)
        log = f"the log of the server of {run}, trial {labels.get(LABEL_TRIAL, '?')}"
        if belongs == "elsewhere":
            run = f"its run, in {labels[LABEL_FOLDER]}, is none of {logs.root}"
            say_kept(f"kept {log}: {run} (docker volume rm {name} removes it)")
        elif belongs == "to a run" and not logs.removes:
            say_kept(f"kept {log}: `edgebed resume {run}` goes on from it; `edgebed down --logs` removes it")
        elif remove_volume(found.client, name):
            removed += 1
            say(f"removed {log}: {WHY_REMOVED[belongs]}")
    return removed


WHY_REMOVED = {
    "to a run": "`edgebed resume --from-checkpoint` goes on from its last checkpoint",
    "to a run that is gone": "its run's folder is gone",
}


def containers_with(client: docker.DockerClient, label: str) -> list[dict[str, Any]]:
    """The engine's list of containers that carry `label`, or `label=value`, running or not."""
    found: list[dict[str, Any]] = client.api.containers(all=True, filters={"label": label})
    return found


def networks_with(client: docker.DockerClient, label: str) -> list[dict[str, Any]]:
    """The engine's list of networks that carry `label`, or `label=value`."""
    found: list[dict[str, Any]] = client.api.networks(filters={"label": label})
    return found


def own_networks(client: docker.DockerClient, networks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The networks that an engine can remove: a swarm's are its managers', though others list them while in use."""
    if all(network.get("Scope") != "swarm" for network in networks) or is_manager(client):
        return list(networks)
    return [network for network in networks if network.get("Scope") != "swarm"]


def is_manager(client: docker.DockerClient) -> bool:
    """Whether an engine is a manager of its swarm."""
    return bool(client.info().get("Swarm", {}).get("ControlAvailable"))


def remove(
    client: docker.DockerClient,
    containers: Sequence[dict[str, Any]],
    networks: Sequence[dict[str, Any]] = (),
    say: Callable[[str], None] = say_aloud,
) -> set[str]:
    """Remove containers and networks, as the engine lists them; return the names of networks that the engine keeps."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for are_holders in (False, True):
            some = [each["Id"] for each in containers if (LABEL_HOLDER in each["Labels"]) is are_holders]
            list(pool.map(lambda container: remove_container(client, container), some))
        are_gone = list(pool.map(lambda network: remove_network(client, network["Id"]), networks))
    kept = {network["Name"] for network, is_gone in zip(networks, are_gone, strict=True) if not is_gone}
    for name in sorted(kept):
        is_swarms = any(network["Name"] == name and network.get("Scope") == "swarm" for network in networks)
        say(KEPT_BY_SWARM.format(name) if is_swarms else KEPT_BY_ENGINE.format(name))
    return kept


KEPT_BY_ENGINE = (
    "the engine keeps the empty network {}: it has miscounted who is in it, and counts anew when it is restarted, "
    "which stops its containers (sudo systemctl restart docker); then: edgebed down"
)
KEPT_BY_SWARM = (
    "the swarm keeps the network {}: a container of a host that does not answer is in it. When the host is back, or no "
    "longer of the swarm (docker node rm --force HOST): edgebed down"
)


def remove_container(client: docker.DockerClient, container_id: str) -> None:
    """Kill and remove a container; return when it is gone, whoever removed it."""
    try:
        client.api.remove_container(container_id, force=True, v=True)
    except NotFound:
        return
    except APIError as error:
        if error.status_code != CONFLICT:
            raise
        try:  # another caller is removing it
            client.api.wait(container_id, timeout=CALL_S_MAX, condition="removed")
        except NotFound:
            return


def remove_network(client: docker.DockerClient, network_id: str) -> bool:
    """Remove a network, taking out whoever else has joined it; False if it is kept though nobody is known in it."""
    try:
        if _is_removed(client, network_id):
            return True
        for key, endpoint in (client.api.inspect_network(network_id)["Containers"] or {}).items():
            # what is left of a container that is gone is known by that one's name alone
            joined = endpoint["Name"] if key.startswith(ENDPOINT) else key
            with suppress(NotFound):
                client.api.disconnect_container_from_network(joined, network_id, force=True)
        return _is_removed(client, network_id, or_empty=True)
    except NotFound:
        return True


def _is_removed(client: docker.DockerClient, network_id: str, *, or_empty: bool = False) -> bool:
    """Remove a network; False where the engine says that somebody is in it, an error if that has to be `or_empty`.

    A swarm hears a moment later that a container of another host has left; it is given some seconds.
    """
    until = time.monotonic() + LET_GO_S
    while True:
        try:
            client.api.remove_network(network_id)
        except APIError as error:
            if IN_SWARM in str(error.explanation):
                if time.monotonic() > until:
                    return False
                time.sleep(LOOK_S)
                continue
            if error.status_code != FORBIDDEN or (or_empty and client.api.inspect_network(network_id)["Containers"]):
                raise
            return False
        return True


def _described(parts: Sequence[Found]) -> str:
    """What an owner has, in words: `3 containers and 1 network of quickstart/0001 on a, b`."""
    things = [thing for part in parts for thing in (*part.containers, *part.networks)]
    runs = ", ".join(sorted({thing["Labels"].get(LABEL_RUN, "?") for thing in things}))
    hosts = ", ".join(part.host for part in parts if part.owners and part.host)
    counts = (
        (sum(len(part.containers) for part in parts), "container"),
        (len({network["Id"] for part in parts for network in part.networks}), "network"),
    )
    numbers = " and ".join(f"{number} {word}{'s' * (number != 1)}" for number, word in counts if number)
    return f"{numbers} of {runs}{f' on {hosts}' if hosts else ''}"
