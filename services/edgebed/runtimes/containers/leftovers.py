"""Taking away what edgebed has put onto an engine: a trial's own, or what controllers that were killed have left."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import docker
from docker.errors import APIError, NotFound

from edgebed.runtimes.containers.engine import CALL_S_MAX, connect, explained
from edgebed.runtimes.containers.labels import LABEL_OWNER, LABEL_RUN
from edgebed.runtimes.containers.owner import is_alive, own_container

AT_ONCE = 8
CONFLICT, FORBIDDEN = 409, 403  # what the engine answers


def remove_leftovers(say: Callable[[str], None], say_kept: Callable[[str], None] | None = None) -> int:
    """Remove containers and networks whose controller is gone; return their number.

    `say` is told what was removed; `say_kept`, or else `say`, what was kept because its controller still runs.
    """
    removed = 0
    with closing(connect(AT_ONCE)) as client, explained("what earlier runs have left"):
        own_id = own_container(client)
        containers, networks = containers_with(client, LABEL_OWNER), networks_with(client, LABEL_OWNER)
        for owner in {thing["Labels"][LABEL_OWNER] for thing in (*containers, *networks)}:
            owned = [c for c in containers if c["Labels"][LABEL_OWNER] == owner]
            joined = [n for n in networks if n["Labels"][LABEL_OWNER] == owner]
            runs = ", ".join(sorted({thing["Labels"].get(LABEL_RUN, "?") for thing in (*owned, *joined)}))
            if is_alive(client, owner, own_id):
                (say_kept or say)(f"kept {_count(owned, joined)} of {runs}: as far as can be told its controller runs")
            else:
                remove(client, owned, joined)
                removed += len(owned) + len(joined)
                say(f"removed {_count(owned, joined)} of {runs}, whose controller is gone")
    return removed


def containers_with(client: docker.DockerClient, label: str) -> list[dict[str, Any]]:
    """The engine's list of containers that carry `label`, or `label=value`, running or not."""
    found: list[dict[str, Any]] = client.api.containers(all=True, filters={"label": label})
    return found


def networks_with(client: docker.DockerClient, label: str) -> list[dict[str, Any]]:
    """The same of networks."""
    found: list[dict[str, Any]] = client.api.networks(filters={"label": label})
    return found


def remove(
    client: docker.DockerClient, containers: Sequence[dict[str, Any]], networks: Sequence[dict[str, Any]] = ()
) -> None:
    """Remove all of these, as the engine lists them; several at once."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda container: remove_container(client, container["Id"]), containers))
        list(pool.map(lambda network: remove_network(client, network["Id"]), networks))


def remove_container(client: docker.DockerClient, container_id: str) -> None:
    """Kill and remove a container; return when it is gone, whoever removed it."""
    try:
        client.api.remove_container(container_id, force=True, v=True)
    except NotFound:
        return
    except APIError as error:
        if error.status_code != CONFLICT:
            raise
        try:  # somebody else is removing it
            client.api.wait(container_id, timeout=CALL_S_MAX, condition="removed")
        except NotFound:
            return


def remove_network(client: docker.DockerClient, network_id: str) -> None:
    """Remove a network, taking out whoever else has joined it."""
    try:
        try:
            client.api.remove_network(network_id)
        except APIError as error:
            if error.status_code != FORBIDDEN:
                raise
            for container_id in client.api.inspect_network(network_id)["Containers"]:
                client.api.disconnect_container_from_network(container_id, network_id, force=True)
            client.api.remove_network(network_id)
    except NotFound:
        return


def _count(containers: Sequence[Any], networks: Sequence[Any]) -> str:
    parts = [(len(containers), "container"), (len(networks), "network")]
    return " and ".join(f"{number} {word}{'s' * (number != 1)}" for number, word in parts if number)
