"""The owner of a container or network: a controller, named so that anybody can find out later whether it still runs.

    process/<process's name>    a controller on the host (see core/process_names.py)
    container/<id>              a controller that is itself a container

Each container and network that edgebed makes carries such a name in a label.
"""

import re
from pathlib import Path

import docker
from docker.errors import NotFound

from edgebed.core.process_names import is_running, own_process_name

MOUNTS = Path("/proc/self/mountinfo")
_OWN_ID = re.compile(r"/containers/([0-9a-f]{64})/\S+ /etc/(?:hostname|hosts|resolv\.conf) ")


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


def own_name(container_id: str | None) -> str:
    """The name of this controller as an owner."""
    return f"container/{container_id}" if container_id else f"process/{own_process_name()}"


def is_alive(client: docker.DockerClient, owner: str, own_container_id: str | None) -> bool:
    """Whether a controller still runs; True where this cannot be found out, as for a process in another namespace.

    This process itself counts as dead if it is a container: what bears its name is left from an earlier incarnation.
    """
    if owner.startswith("container/"):
        container_id = owner.removeprefix("container/")
        if container_id == own_container_id:
            return False
        try:
            return bool(client.api.inspect_container(container_id)["State"]["Running"])
        except NotFound:
            return False
    kind, _, name = owner.partition("/")
    return kind != "process" or is_running(name)  # another kind: a version that names its controllers otherwise
