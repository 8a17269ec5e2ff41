"""Brings the images of the nodes to all hosts: those of the first one, by save and load, or each from a registry.

An image whose name has a registry in it (`registry.example:5000/edgebed-worker:main`) is pulled by each host. All
others are streamed from the first host's engine through this process, which keeps nothing of them; those that a host
has already, by their ids, are left out.
"""

import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import docker
from docker.errors import ImageNotFound

from edgebed.core.errors import InfrastructureError
from edgebed.core.planned.hosts import EngineAddress
from edgebed.core.quantities import bytes_text, seconds_text
from edgebed.runtimes.containers.engine import EngineClient, connected, explained
from edgebed.runtimes.containers.project import ImageNames

CHUNK_BYTES = 2**20
SILENCE_S_MAX = 600  # an engine that unpacks gigabytes says nothing meanwhile
SAY_EVERY_S = 10.0
HAS_REGISTRY = re.compile(r"(localhost|[^/]*[.:][^/]*)/")


def bring_images(addresses: Sequence[EngineAddress], say: Callable[[str], None]) -> list[str]:
    """Bring images to all hosts; return what could not be done, a sentence each. `say` is told of progress."""
    names = sorted(set(vars(ImageNames.named()).values()))
    pulled = [name for name in names if HAS_REGISTRY.match(name)]
    carried = [name for name in names if name not in pulled]
    lock = threading.Lock()

    def say_one(line: str) -> None:
        with lock:
            say(line)

    with connected(addresses, connections=4) as (clients, problems):
        for client in clients.values():
            client.api.timeout = SILENCE_S_MAX
        found = [str(problem) for problem in problems.values()]
        first = clients.get(addresses[0].host)
        if carried and first is None:
            return found
        wanted = {name: _image(first, name) for name in carried} if first else {}
        if missing := [name for name, (image, _) in wanted.items() if not image]:
            is_are = "images" if len(missing) > 1 else "image"
            return [*found, f"host {addresses[0].host} has no {is_are} {', '.join(missing)}: scripts/build-images"]

        def bring(host: str) -> str:
            try:
                with explained(f"host {host}"):
                    for name in pulled:
                        _pull(clients[host], host, name, say_one)
                    if first is not None and clients[host] is not first:
                        _carry(first, clients[host], host, wanted, say_one)
            except InfrastructureError as error:
                return str(error)
            return ""

        with ThreadPoolExecutor(max(1, len(clients))) as pool:
            return found + [problem for problem in pool.map(bring, clients) if problem]


def _carry(
    first: EngineClient,
    client: EngineClient,
    host: str,
    wanted: dict[str, tuple[str, int]],
    say: Callable[[str], None],
) -> None:
    """Bring what one host has not, or another of."""
    names = [name for name, (image, _) in wanted.items() if _image(client, name)[0] != image]
    if not names:
        say(f"host {host}: has all images")
        return
    began_s, size = time.monotonic(), [0]
    about = bytes_text(sum(wanted[name][1] for name in names))
    say(f"host {host}: {', '.join(names)}: about {about} …")
    saved = first.api.get(
        f"{first.api.base_url}/v{first.api.api_version}/images/get", params={"names": names}, stream=True,
        timeout=SILENCE_S_MAX,
    )  # fmt: skip
    with saved:
        saved.raise_for_status()
        for answer in client.api.load_image(_counted(saved.iter_content(CHUNK_BYTES), size, host, say)):
            if problem := answer.get("error"):
                raise InfrastructureError(f"host {host}: an image could not be loaded: {problem}")
    if others := [name for name in names if _image(client, name)[0] != wanted[name][0]]:
        raise InfrastructureError(
            f"host {host}: {', '.join(others)} was loaded and has another id there. Engines that store images in "
            "different ways give them different ids: use a registry, or engines of one kind"
        )
    say(f"host {host}: {', '.join(names)}: {bytes_text(size[0])} in {seconds_text(time.monotonic() - began_s)}")


def _counted(parts: Iterator[bytes], size: list[int], host: str, say: Callable[[str], None]) -> Iterator[bytes]:
    """The parts of a stream, whose sizes are added up and said now and then."""
    said_s = time.monotonic()
    for part in parts:
        size[0] += len(part)
        if time.monotonic() > said_s + SAY_EVERY_S:
            said_s = time.monotonic()
            say(f"host {host}: {bytes_text(size[0])} …")
        yield part


def _pull(client: EngineClient, host: str, name: str, say: Callable[[str], None]) -> None:
    began_s = time.monotonic()
    say(f"host {host}: pulling {name} …")
    for answer in client.api.pull(*_name_and_tag(name), stream=True, decode=True):
        if problem := answer.get("error"):
            raise InfrastructureError(f"host {host}: {name} could not be pulled: {problem}")
    image, size = _image(client, name)
    say(f"host {host}: {name}: {bytes_text(size)} in {seconds_text(time.monotonic() - began_s)}, {image[7:19]}")


def _name_and_tag(name: str) -> tuple[str, str]:
    """An image's name without its tag, and that, `latest` by default; a digest is a tag, too."""
    if "@" in name:
        repository, _, digest = name.partition("@")
        return repository, digest
    head, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    return f"{head}{slash}{last}", tag or "latest"


def _image(client: docker.DockerClient, name: str) -> tuple[str, int]:
    """Id and size of an image; an empty id where there is none."""
    try:
        found = client.api.inspect_image(name)
    except ImageNotFound:
        return "", 0
    return str(found["Id"]), int(found["Size"])
