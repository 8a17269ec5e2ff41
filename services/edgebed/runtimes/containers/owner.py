"""The owner of a container or network: a controller, named so that anybody can find out later whether it still runs.

    machine/<machine>/<process's name>  a controller on a host (see core/process_names.py), and which host that is
    container/<engine>/<id>             a controller that is itself a container, and whose
    process/<process's name>            a controller on a host that has no name of its own

Each container and network that edgebed makes carries such a name in a label. Several hosts may have what a controller
made, so whoever finds it may be on another host than the controller: then it can be unknown whether that still runs.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import docker
from docker.errors import NotFound

from edgebed.core.errors import InfrastructureError
from edgebed.core.process_names import PARTS, is_of_this_boot, is_running, own_process_name
from edgebed.runtimes.containers.engine import engine_id, explained

MOUNTS = Path("/proc/self/mountinfo")
MACHINE = Path("/etc/machine-id")
_OWN_ID = re.compile(r"/containers/([0-9a-f]{64})/\S+ /etc/(?:hostname|hosts|resolv\.conf) ")
Life = Literal["lives", "gone", "unknown"]


def own_container(client: docker.DockerClient, mounts: Path = MOUNTS) -> str | None:
    """The id of the container that this process runs in, if this very engine runs it.

    It is found by the files that an engine mounts over a container's own /etc.
    """
    found = _OWN_ID.search(mounts.read_text(encoding="utf-8", errors="replace"))
    if found is None:
        return None
    try:
        client.api.inspect_container(found[1])
    except NotFound:
        return None  # a container of another engine: for this engine, the process is on the host
    return found[1]


def own_name(client: docker.DockerClient, container_id: str | None) -> str:
    """The name of this controller as an owner; `client` is of the engine that runs its container, if it is in one."""
    if container_id:
        return f"container/{engine_id(client)}/{container_id}"
    machine = _machine()
    return f"machine/{machine}/{own_process_name()}" if machine else f"process/{own_process_name()}"


class Witnesses:
    """Several engines, asked whether an owner still runs."""

    def __init__(self, engines: Mapping[str, docker.DockerClient]) -> None:
        """`engines` by their ids."""
        self.engines = engines
        self.own_ids = {found for client in engines.values() if (found := own_container(client))}
        """The container that this process is: what bears its name is left from an earlier incarnation."""

    def life_of(self, owner: str, *, is_remote: bool) -> Life:
        """Whether an owner still runs; unknown where nobody can tell.

        `is_remote`: the engine that has something of it may be another machine's, and so may the owner be.
        """
        kind, _, name = owner.partition("/")
        if kind == "container":
            engine, _, container_id = name.rpartition("/")
            return self._life_of_container(engine, container_id)
        if kind == "machine":
            machine, _, name = name.partition("/")
            return _life_of_process(name) if machine == _machine() else "unknown"
        if kind == "process":
            return "unknown" if is_remote and not is_of_this_boot(name) else _life_of_process(name)
        return "unknown"  # a version that names its controllers otherwise

    def _life_of_container(self, engine: str, container_id: str) -> Life:
        if container_id in self.own_ids:
            return "gone"
        if engine not in self.engines:
            return "unknown"
        try:
            with explained("the controller's engine"):
                runs = _runs(self.engines[engine], container_id)
        except InfrastructureError:
            return "unknown"
        return "lives" if runs else "gone"


def _runs(client: docker.DockerClient, container_id: str) -> bool:
    try:
        return bool(client.api.inspect_container(container_id)["State"]["Running"])
    except NotFound:
        return False


def _life_of_process(name: str) -> Life:
    if len(name.split("/")) != PARTS:
        return "unknown"
    return "lives" if is_running(name) else "gone"


def _machine() -> str:
    """The name of this machine, which it keeps when it starts anew; empty where it has none."""
    try:
        return MACHINE.read_text(encoding="ascii", errors="ignore").strip()
    except OSError:
        return ""
