"""What the tests in containers share: an engine with the images, and a look at what is on it."""

import dataclasses
import json
import os
import socket
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import docker
import pytest
from patiently import TooLateError

from edgebed.runtimes.containers.engine import connect
from edgebed.runtimes.containers.labels import LABEL_OWNER, LABEL_RUN
from edgebed.runtimes.containers.leftovers import containers_with, networks_with, remove_network


@dataclasses.dataclass
class Engine:
    """The engine of this machine."""

    client: docker.DockerClient

    def containers(self, **labels: str) -> list[dict[str, Any]]:
        """The containers of these tests' scenarios, as inspected; those with these labels (`role="worker"`)."""
        wanted = {f"edgebed.{name}": value for name, value in labels.items()}
        found = [self.client.api.inspect_container(name.removeprefix("/")) for name in self.left() if name[0] == "/"]
        return [container for container in found if wanted.items() <= container["Config"]["Labels"].items()]

    def left(self) -> list[str]:
        """Names of the containers and networks of these tests' scenarios; others may use the engine as well."""
        containers = [container["Names"][0] for container in containers_with(self.client, LABEL_OWNER)]
        networks = [network["Name"] for network in networks_with(self.client, LABEL_OWNER)]
        return [name for name in containers + networks if f"-{os.getpid()}-" in name]

    def removable(self) -> list[str]:
        """`left()`, but for networks that the engine has miscounted and cannot remove, though nobody is in them."""
        return [name for name in self.left() if name[0] == "/" or remove_network(self.client, name)]

    def volumes(self) -> list[str]:
        """Names of the volumes of these tests' scenarios."""
        found = self.client.api.volumes(filters={"label": LABEL_OWNER})["Volumes"] or ()
        return [volume["Name"] for volume in found if f"-{os.getpid()}/" in volume["Labels"][LABEL_RUN]]


def metrics_of(node: str, port: int) -> str:
    """The page of a node's metrics, found in the list that the controller gives on `port`."""
    for target in json.loads(page(f"http://127.0.0.1:{port}/targets")):
        if target["labels"]["node"] == node:
            return page(f"http://{target['targets'][0]}/metrics")
    raise AssertionError(f"{node} is not on the controller's list")


def page(url: str) -> str:
    """What a server answers."""
    with urllib.request.urlopen(url, timeout=5) as answer:
        return answer.read().decode()


@pytest.fixture
def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.fixture
def metrics() -> Callable[[str, int], str]:
    """For the tests to call."""
    return metrics_of


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """The one that the runs use."""
    client = connect()
    yield Engine(client)
    client.close()


@pytest.fixture(autouse=True)
def nothing_left(engine: Engine) -> Iterator[None]:
    """Whatever a test does, its containers and networks are gone afterwards; logs of servers that failed may stay."""
    yield
    assert engine.removable() == []
    for volume in engine.volumes():
        engine.client.api.remove_volume(volume)


@pytest.fixture
def onlooker() -> type["Onlooker"]:
    """For the tests to make."""
    return Onlooker


class Onlooker:
    """A `progress` that calls `look` as soon as so many updates are applied and so much time has passed.

    It looks again where nobody answers: a node may not have started yet.
    """

    def __init__(self, look: Callable[[], None], updates: int = 1, elapsed_s: float = 0.0) -> None:
        self.look: Callable[[], None] | None = look
        self.updates = updates
        self.elapsed_s = elapsed_s
        self.problem: OSError | None = None

    def trial_started(self, plan: Any) -> None:
        """Nothing to see yet."""

    def update(self, status: Any) -> None:
        """Look, if it is time to."""
        if self.look and status.updates >= self.updates and status.elapsed_s >= self.elapsed_s:
            try:
                self.look()
                self.look = None
            except OSError as error:
                self.problem = error

    def trial_ended(self, summary: Any) -> None:
        """It must have been time to look by now."""
        if self.look:
            raise TooLateError(f"the trial ended before there was anything to see: {self.problem}")
