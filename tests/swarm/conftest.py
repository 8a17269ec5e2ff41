"""What the tests on several hosts share: the hosts, made once for all of them."""

from collections.abc import Iterator

import docker
import pytest
from swarm import Swarm, running_swarm, why_no_swarm

from edgebed.runtimes.containers.engine import connected


@pytest.fixture(scope="session")
def swarm() -> Iterator[Swarm]:
    """Three hosts, each with the images of the nodes."""
    if reason := why_no_swarm():
        pytest.skip(reason)
    with running_swarm(3) as made:
        yield made


@pytest.fixture
def clients(swarm: Swarm) -> Iterator[dict[str, docker.DockerClient]]:
    """Clients of their engines, by host."""
    with connected(swarm.addresses) as (found, problems):
        assert problems == {}
        yield dict(found)
