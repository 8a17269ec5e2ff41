"""Probes of several hosts in real containers: one engine under two names."""

import os
import secrets
import socket
import time

import pytest

from edgebed.core.records import HostLoad
from edgebed.runtimes.containers.hosts.probes import HostProbes
from edgebed.runtimes.containers.labels import LABEL_OWNER, LABEL_SITE
from edgebed.runtimes.containers.owner import own_name
from edgebed.runtimes.containers.project import ImageNames

DEADLINE_S = 60.0
GBIT = 1_000_000_000


@pytest.fixture
def name():
    """The prefix of the containers' names, by which these tests know theirs."""
    return f"edgebed-probed-{os.getpid()}-{secrets.token_hex(2)}"


@pytest.fixture
def running(engine, name):
    """Probes of the machine that runs the tests, twice, by an address that it certainly has."""
    labels = {LABEL_OWNER: own_name(engine.client, None), LABEL_SITE: name}
    engines, addresses = dict.fromkeys("ab", engine.client), dict.fromkeys("ab", "127.0.0.1")
    probes = HostProbes(engines, addresses, {"a": GBIT}, ImageNames.named().server, labels, name)
    yield probes
    probes.close()


def heard(probes, *hosts, until_s=DEADLINE_S):
    """The first record of each of these that is taken from now on."""
    found: dict[str, tuple[int, HostLoad]] = {}
    deadline_s = time.monotonic() + until_s
    while not set(hosts) <= found.keys():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
        for came_ns, load in probes.take():
            found.setdefault(load.host, (came_ns, load))
    return found


def containers(engine, name):
    """Those of the probes, as inspected."""
    found = engine.client.api.containers(all=True, filters={"label": f"{LABEL_SITE}={name}"})
    return [engine.client.api.inspect_container(each["Id"]) for each in found]


def test_each_host_tells_of_itself_and_nothing_is_left(engine, running, name):
    """Of its processors, and of its network: what the machine itself sent meanwhile. One that is killed comes again."""
    first = heard(running, "a", "b")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.bind(("127.0.0.1", 0))
        for _ in range(400):
            here.sendto(bytes(60_000), here.getsockname())
    then = heard(running, "a", "b")
    made = containers(engine, name)

    assert {load.rate_bit_s for _, load in (first["a"], then["a"])} == {GBIT}
    assert first["b"][1].rate_bit_s == 0
    assert all(load.cores == os.cpu_count() for _, load in first.values())
    assert max(load.received_bytes_s for _, load in then.values()) > 1_000_000
    assert {each["HostConfig"]["NetworkMode"] for each in made} == {"host"}
    assert all(each["HostConfig"]["ReadonlyRootfs"] and not each["HostConfig"]["CapAdd"] for each in made)

    engine.client.api.kill(next(each["Id"] for each in made if "-probe-b-" in each["Name"]))
    list(running.take())
    heard(running, "b")
    running.close()

    deadline_s = time.monotonic() + DEADLINE_S
    while containers(engine, name):
        assert time.monotonic() < deadline_s
        time.sleep(0.1)
