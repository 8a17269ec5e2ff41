"""The volume of the engine that holds the server's log, which outlasts the server's containers.

The trial's folder names it, so that `edgebed resume` finds it. It goes when the trial is complete, or by `edgebed
down`.
"""

import secrets
from collections.abc import Mapping
from pathlib import Path

import docker
from docker.errors import APIError, NotFound

from edgebed.core.errors import InfrastructureError, unwritten
from edgebed.runtimes.containers.engine import explained
from edgebed.runtimes.containers.labels import LABEL_RUN, PREFIX

MOUNTED_AT = "/var/lib/edgebed"
"""Folder of the server's image, which belongs to the node's user; a new volume takes its owner from it."""
NAME = "volume"
"""File, in the folder of the server's log, with the name of its volume."""
IN_USE = 409


def prepare_volume(client: docker.DockerClient, folder: Path, labels: Mapping[str, str]) -> str:
    """Return the name of the volume that `folder` says, or of a new one, which it says from now on.

    One that has been removed is made again, empty. InfrastructureError where it is not one of this run.
    """
    name = recorded(folder) or f"{PREFIX}-log-{secrets.token_hex(8)}"
    made = client.api.create_volume(name, labels=dict(labels))  # one that exists stays as it is
    if (made.get("Labels") or {}).get(LABEL_RUN) != labels[LABEL_RUN]:
        raise InfrastructureError(
            f"{folder / NAME}: the volume {name} is not one of {labels[LABEL_RUN]}; remove the file to resume from the "
            "last checkpoint, or begin a new run"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / NAME).write_text(name + "\n", encoding="utf-8")
    except OSError as error:
        remove_volume(client, name)
        raise InfrastructureError(unwritten(error, "--runs-dir")) from error
    return name


def recorded(folder: Path) -> str:
    """Return the name of the volume that a log's folder says; empty: none."""
    try:
        return (folder / NAME).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""


def discard_volume(client: docker.DockerClient, folder: Path) -> None:
    """Remove the volume that a log's folder says, if any."""
    name = recorded(folder)
    if name:
        with explained("the volume of the server's log"):
            remove_volume(client, name)


def remove_volume(client: docker.DockerClient, name: str) -> bool:
    """Remove a volume; return whether it is gone, which it is not while a container has it."""
    try:
        client.api.remove_volume(name)
    except NotFound:
        return True
    except APIError as error:
        if error.status_code != IN_USE:
            raise
        return False
    return True
