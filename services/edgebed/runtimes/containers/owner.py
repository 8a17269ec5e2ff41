"""Who made a container or network: a controller, named so that anybody can find out later whether it still lives.

    process/<process's name>    a controller on the host (see process_names.py)
    container/<id>              a controller that is itself a container

Each container and network that edgebed makes carries such a name in a label.
"""

import re
from pathlib import Path

import docker
from docker.errors import NotFound

from edgebed.process_names import lives, own_process_name

MOUNTS = Path("/proc/self/mountinfo")
_OWN_ID = re.compile(r"/containers/([0-9a-f]{64})/\S+ /etc/(?:hostname|hosts|resolv\.conf) ")


def own_container(client: docker.DockerClient, mounts: Path = MOUNTS) -> str | None:
    """The id of the container that this process runs in, if this very engine runs it.

    It is told by the files that an engine mounts over a container's own /etc.
    """
    found = _OWN_ID.search(mounts.read_text(encoding="utf-8", errors="replace"))
    if found is None:
        return None
    try:
        client.api.inspect_container(found[1])
    except NotFound:
        return None  # a container of another engine: to this one its inside is the host
    return found[1]


def own_name(container_id: str | None) -> str:
    """This controller as an owner."""
    return f"container/{container_id}" if container_id else f"process/{own_process_name()}"


def is_alive(client: docker.DockerClient, owner: str, own_container_id: str | None) -> bool:
    """Whether that controller still runs; yes where this cannot be told, as of a process in another namespace.

    This process itself counts as dead if it is a container: what bears its name is left from its earlier life.
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
    return kind != "process" or lives(name)  # another kind: of a version that names its controllers otherwise
