"""Who made a container or network: a controller, named so that anybody can find out later whether it still lives.

    process/<boot>/<pid>/<start>    a controller on the host
    container/<id>                  a controller that is itself a container

Each container and network that edgebed makes carries such a name in a label.
"""

import re
from pathlib import Path

import docker
import psutil
from docker.errors import NotFound

MOUNTS = Path("/proc/self/mountinfo")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_OWN_ID = re.compile(r"/containers/([0-9a-f]{64})/")


def own_container(client: docker.DockerClient, mounts: Path = MOUNTS) -> str | None:
    """The id of the container that this process runs in, if this very engine runs it."""
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
    if container_id:
        return f"container/{container_id}"
    process = psutil.Process()
    return f"process/{_boot_id()}/{process.pid}/{process.create_time():.2f}"


def is_alive(client: docker.DockerClient, owner: str, own_container_id: str | None) -> bool:
    """Whether that controller still runs. Of a process seen from inside a container nobody can tell: so yes.

    This process itself counts as dead if it is a container: what bears its name is left from its earlier life.
    """
    kind, _, rest = owner.partition("/")
    if kind == "container":
        if rest == own_container_id:
            return False
        try:
            return bool(client.api.inspect_container(rest)["State"]["Running"])
        except NotFound:
            return False
    if own_container_id:
        return True
    boot, pid, start = rest.split("/")
    if boot != _boot_id():
        return False
    try:
        return f"{psutil.Process(int(pid)).create_time():.2f}" == start
    except psutil.NoSuchProcess:
        return False


def _boot_id() -> str:
    return BOOT_ID.read_text(encoding="ascii").strip()
