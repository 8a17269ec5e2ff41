"""The images of a trial's programs: there on every host that needs them, or built there, before anything starts."""

from collections.abc import Iterator
from typing import Any

import docker
from docker.errors import BuildError, ImageNotFound

from edgebed.core.errors import InfrastructureError
from edgebed.core.plan import ProgramsPlan
from edgebed.runtimes.containers.engine import explained
from edgebed.runtimes.containers.engines import Engines

BUILT = "edgebed-program"
"""Name of images that are built; the scenario's name is their tag."""
LINES = 5
"""Lines of a build that failed which are shown."""


def images_of(plan: ProgramsPlan, engines: Engines, default: str) -> dict[str, str]:
    """The image of each node: its own, or the one built from `program.build`, or else `default`, which has python.

    InfrastructureError where one is not there, or cannot be built.
    """
    found: dict[tuple[str, str], str] = {}
    for node in plan.nodes:
        where = node.host, node.image
        if where not in found:
            client = engines.of(node)
            is_built = plan.program.build and not node.image
            found[where] = _built(client, plan) if is_built else node.image or default
            with explained(f"the image of {node.node}"):
                _require(client, found[where], f" on host {node.host}" if node.host else "", default)
    return {node.node: found[node.host, node.image] for node in plan.nodes}


def _require(client: docker.DockerClient, image: str, on_host: str, default: str) -> None:
    try:
        client.api.inspect_image(image)
    except ImageNotFound as error:
        if image == default:
            raise
        raise InfrastructureError(
            f"program.image: there is no image {image}{on_host}. There: docker pull {image}, or docker build --tag "
            f"{image} FOLDER; or have it built by program.build"
        ) from error


def _built(client: docker.DockerClient, plan: ProgramsPlan) -> str:
    """The image built from the folder that the plan names, as quickly as the engine's cache makes it."""
    what = f"program.build: {plan.program.build}"
    tag = f"{BUILT}:{plan.scenario}"
    try:
        with explained(what):
            client.images.build(path=plan.program.build, tag=tag, rm=True)
    except BuildError as error:
        said = "".join(_said(error.build_log)).splitlines()[-LINES:]
        raise InfrastructureError(f"{what}: the image cannot be built: {error}\n" + "\n".join(said)) from error
    except TypeError as error:  # the library's, of a path that is no folder
        raise InfrastructureError(f"{what} is no folder of this machine; give one that has a Dockerfile") from error
    return tag


def _said(log: Iterator[dict[str, Any]]) -> Iterator[str]:
    for part in log:
        yield str(part.get("stream") or part.get("error") or "")
