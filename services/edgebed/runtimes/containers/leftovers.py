"""Removing what edgebed has put onto an engine: a trial's own objects, or those that killed controllers have left.

An old engine may miscount who is in a network when containers join it while others leave, as in many restarts at once.
It then keeps the network until it is restarted and counts anew: joining and leaving it again does not help. This is
reported with what to do, and is no error.
"""

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import Any

import docker
from docker.errors import APIError, NotFound

from edgebed.core.console import say as say_aloud
from edgebed.runtimes.containers.engine import CALL_S_MAX, connect, explained
from edgebed.runtimes.containers.labels import LABEL_OWNER, LABEL_RUN, LABEL_TRIAL, LABEL_VOLUME
from edgebed.runtimes.containers.owner import is_alive, own_container
from edgebed.runtimes.containers.register import forget_dead
from edgebed.runtimes.containers.server_volume import remove_volume

AT_ONCE = 8
CONFLICT, FORBIDDEN = 409, 403  # what the engine answers
ENDPOINT = "ep-"
"""Prefix by which the engine lists the end of a container that is gone."""


def remove_leftovers(
    say: Callable[[str], None], say_kept: Callable[[str], None] | None = None, *, volumes: bool = False
) -> int:
    """Remove containers and networks whose controller is gone; return their number.

    `say` is called with what was removed; `say_kept`, or else `say`, with what stays because its controller still runs.
    `volumes`: servers' logs, which a run that has broken off resumes from, go with them.
    """
    removed = 0
    with closing(connect(AT_ONCE)) as client, explained("what earlier runs have left"):
        own_id = own_container(client)
        containers, networks = containers_with(client, LABEL_OWNER), networks_with(client, LABEL_OWNER)
        kept = set[str]()
        """Volumes of runs in progress, which may have been made by a controller before."""
        for owner in {thing["Labels"][LABEL_OWNER] for thing in (*containers, *networks)}:
            owned = [c for c in containers if c["Labels"][LABEL_OWNER] == owner]
            joined = [n for n in networks if n["Labels"][LABEL_OWNER] == owner]
            runs = ", ".join(sorted({thing["Labels"].get(LABEL_RUN, "?") for thing in (*owned, *joined)}))
            if is_alive(client, owner, own_id):
                kept |= {container["Labels"].get(LABEL_VOLUME, "") for container in owned}
                (say_kept or say)(f"kept {_count(owned, joined)} of {runs}: its controller seems to be running")
            else:
                stuck = remove(client, owned, joined, say)
                gone = [network for network in joined if network["Name"] not in stuck]
                removed += len(owned) + len(gone)
                if owned or gone:
                    say(f"removed {_count(owned, gone)} of {runs}, whose controller is gone")
        if volumes:
            removed += _remove_volumes(client, kept, own_id, say)
    forget_dead()
    return removed


def _remove_volumes(
    client: docker.DockerClient, kept: Collection[str], own_id: str | None, say: Callable[[str], None]
) -> int:
    """Remove the logs of servers whose controller is gone, but for those `kept`; return their number."""
    removed = 0
    for volume in client.api.volumes(filters={"label": LABEL_OWNER})["Volumes"] or ():
        name, labels = volume["Name"], volume["Labels"]
        if name in kept or is_alive(client, labels[LABEL_OWNER], own_id) or not remove_volume(client, name):
            continue
        removed += 1
        trial = f"{labels.get(LABEL_RUN, '?')}, trial {labels.get(LABEL_TRIAL, '?')}"
        say(f"removed the log of the server of {trial}: `edgebed resume` goes on from its last checkpoint")
    return removed


def containers_with(client: docker.DockerClient, label: str) -> list[dict[str, Any]]:
    """The engine's list of containers that carry `label`, or `label=value`, running or not."""
    found: list[dict[str, Any]] = client.api.containers(all=True, filters={"label": label})
    return found


def networks_with(client: docker.DockerClient, label: str) -> list[dict[str, Any]]:
    """The engine's list of networks that carry `label`, or `label=value`."""
    found: list[dict[str, Any]] = client.api.networks(filters={"label": label})
    return found


def remove(
    client: docker.DockerClient,
    containers: Sequence[dict[str, Any]],
    networks: Sequence[dict[str, Any]] = (),
    say: Callable[[str], None] = say_aloud,
) -> set[str]:
    """Remove containers and networks, as the engine lists them; return the names of networks that the engine keeps."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda container: remove_container(client, container["Id"]), containers))
        are_gone = list(pool.map(lambda network: remove_network(client, network["Id"]), networks))
    kept = {network["Name"] for network, is_gone in zip(networks, are_gone, strict=True) if not is_gone}
    for name in sorted(kept):
        say(
            f"the engine keeps the empty network {name}: it has miscounted who is in it, and counts anew when it is "
            "restarted, which stops its containers (sudo systemctl restart docker); then: edgebed down"
        )
    return kept


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
    """Remove a network, taking out whoever else has joined it; False if the engine keeps it though nobody is in it."""
    try:
        if _is_removed(client, network_id):
            return True
        for key, endpoint in client.api.inspect_network(network_id)["Containers"].items():
            # what is left of a container that is gone is known by that one's name alone
            joined = endpoint["Name"] if key.startswith(ENDPOINT) else key
            with suppress(NotFound):
                client.api.disconnect_container_from_network(joined, network_id, force=True)
        return _is_removed(client, network_id, or_empty=True)
    except NotFound:
        return True


def _is_removed(client: docker.DockerClient, network_id: str, *, or_empty: bool = False) -> bool:
    """Remove a network; False where the engine says that somebody is in it, an error if that has to be `or_empty`."""
    try:
        client.api.remove_network(network_id)
    except APIError as error:
        if error.status_code != FORBIDDEN or (or_empty and client.api.inspect_network(network_id)["Containers"]):
            raise
        return False
    return True


def _count(containers: Sequence[Any], networks: Sequence[Any]) -> str:
    parts = [(len(containers), "container"), (len(networks), "network")]
    return " and ".join(f"{number} {word}{'s' * (number != 1)}" for number, word in parts if number)
