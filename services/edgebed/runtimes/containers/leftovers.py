"""What controllers that were killed have left on the engine, and its removal. Nothing else is touched."""

from collections.abc import Callable
from contextlib import closing
from typing import Any

import docker
from docker.errors import NotFound

from edgebed.runtimes.containers.engine import connect, explained
from edgebed.runtimes.containers.labels import LABEL_OWNER, LABEL_RUN
from edgebed.runtimes.containers.owner import is_alive, own_container


def remove_leftovers(say: Callable[[str], None]) -> int:
    """Remove containers and networks whose controller is gone; return their number.

    `say` is told what was removed, and what was kept because its controller still runs.
    """
    with closing(connect()) as client, explained("what earlier runs have left"):
        own_id = own_container(client)
        by_owner: dict[str, tuple[list[Any], list[Any]]] = {}
        only = {"label": LABEL_OWNER}
        for container in client.api.containers(all=True, filters=only):
            by_owner.setdefault(container["Labels"][LABEL_OWNER], ([], []))[0].append(container)
        for network in client.api.networks(filters=only):
            by_owner.setdefault(network["Labels"][LABEL_OWNER], ([], []))[1].append(network)
        removed = 0
        for owner, (containers, networks) in by_owner.items():
            runs = ", ".join(sorted({thing["Labels"].get(LABEL_RUN, "?") for thing in (*containers, *networks)}))
            if is_alive(client, owner, own_id):
                say(f"kept {_count(containers, networks)} of {runs}: its controller is running")
            else:
                _remove(client, containers, networks)
                removed += len(containers) + len(networks)
                say(f"removed {_count(containers, networks)} of {runs}, whose controller is gone")
    return removed


def _remove(client: docker.DockerClient, containers: list[Any], networks: list[Any]) -> None:
    for container in containers:
        remove_container(client, container["Id"])
    for network in networks:
        try:
            client.api.remove_network(network["Id"])
        except NotFound:
            continue


def remove_container(client: docker.DockerClient, container_id: str) -> None:
    """Kill and remove a container, unless it is gone or going already."""
    try:
        client.api.remove_container(container_id, force=True, v=True)
    except NotFound:
        return
    except docker.errors.APIError as error:
        if error.status_code != 409:  # its removal is already in progress
            raise


def _count(containers: list[Any], networks: list[Any]) -> str:
    parts = [(len(containers), "container"), (len(networks), "network")]
    return " and ".join(f"{number} {word}{'s' * (number != 1)}" for number, word in parts if number)
