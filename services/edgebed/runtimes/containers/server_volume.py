"""The volume of the engine that holds the server's log, which outlasts the server's containers.

The trial's folder names it, so that `edgebed resume` finds it, and its label names the run's folder, so that `edgebed
down` knows whose it is. It goes when the trial is complete, or by `edgebed down --logs` in the same folder of runs.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import docker
from docker.errors import APIError, NotFound

from edgebed.core.errors import InfrastructureError, unwritten
from edgebed.journal.run_folder import TrialFolder
from edgebed.runtimes.containers.engine import explained
from edgebed.runtimes.containers.labels import LABEL_FOLDER, LABEL_OWNER, LABEL_RUN, LABEL_TRIAL, PREFIX

MOUNTED_AT = "/var/lib/edgebed"
"""Folder of the server's image, which belongs to the node's user; a new volume takes its owner from it."""
NAME = "volume"
"""File, in the folder of the server's log, with the name of its volume."""
IN_USE = 409


@dataclass(frozen=True)
class LogKeeping:
    """What becomes of the logs of servers whose controllers are gone."""

    root: Path
    """The folder of runs; the logs of all other runs are somebody else's."""
    removes: bool
    """Whether logs that a run can resume from are removed."""
    hosts: frozenset[str] | None = None
    """Hosts whose logs are looked at; None: all."""

    def belongs(
        self, volume: str, labels: Mapping[str, str]
    ) -> Literal["to a run", "to a run that is gone", "elsewhere"]:
        """Whether a volume holds the log of a run in the folder of runs.

        Its run must name it. Where a folder of a run is gone, only a controller on a host can have meant that folder:
        each container has a tree of files of its own.
        """
        run = Path(labels.get(LABEL_FOLDER) or "/")
        if not run.is_relative_to(self.root.resolve()):
            return "elsewhere"
        if not run.exists():
            return "elsewhere" if labels[LABEL_OWNER].startswith("container/") else "to a run that is gone"
        return "to a run" if recorded(log_folder(run, labels[LABEL_TRIAL])) == volume else "elsewhere"


def log_folder(run: Path, trial: str) -> Path:
    """Return the folder that names the volume of a trial's log."""
    return TrialFolder(run / trial).server_log


def prepare_volume(client: docker.DockerClient, folder: Path, labels: dict[str, str]) -> str:
    """Return the name of the volume that `folder` says, or of a new one, which it says from now on.

    One that has been removed is made again, empty. InfrastructureError where it is not one of this run.
    """
    name = recorded(folder) or f"{PREFIX}-log-{secrets.token_hex(8)}"
    # one that exists stays as it is
    made = client.api.create_volume(name, labels=labels | {LABEL_FOLDER: str(folder.parent.parent.resolve())})
    if (made.get("Labels") or {}).get(LABEL_RUN) != labels[LABEL_RUN]:
        raise InfrastructureError(
            f"{folder / NAME}: the volume {name} is not one of {labels[LABEL_RUN]}; remove the file and resume with "
            "--from-checkpoint, or begin a new run"
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
