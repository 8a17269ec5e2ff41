"""`edgebed hosts check` and `edgebed hosts images` on real hosts: their clocks, the way between them, their images."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest
from docker.errors import ImageNotFound
from swarm import FOLDER, SCRIPT

from edgebed.cli.options import engines_in
from edgebed.runtimes.containers.labels import LABEL_OWNER
from edgebed.runtimes.containers.leftovers import containers_with, networks_with
from edgebed.runtimes.containers.project import ImageNames

pytestmark = pytest.mark.docker

DEADLINE_S = 60.0
TRIES = 5


@pytest.fixture
def hosts(swarm, tmp_path):
    """A file of the hosts."""
    return swarm.write_hosts(tmp_path / "hosts.yaml")


@pytest.fixture
def carried(clients, monkeypatch):
    """A name that the images of the nodes have on the first host alone, and which commands look for."""
    name = f"edgebed-carried:{os.getpid()}"
    clients["e1"].api.tag(ImageNames.named().server, *name.split(":"))
    monkeypatch.setenv("EDGEBED_SERVER_IMAGE", name)
    monkeypatch.setenv("EDGEBED_WORKER_IMAGE", name)
    yield name
    for client in clients.values():
        with suppress(ImageNotFound):
            client.api.remove_image(name)


def command(*words, there=True):
    """Exit code, output and errors of a command on the first host; else beside the hosts."""
    place = [SCRIPT, "run"] if there else []
    line = [*place, sys.executable, "-m", "edgebed", "hosts", *map(str, words)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    return done.returncode, done.stdout, done.stderr


def test_the_hosts_that_the_script_made_are_in_a_file(swarm):
    """Which commands take as it is."""
    assert engines_in(FOLDER / "hosts.yaml") == swarm.addresses


def left(clients):
    """What a check has left on any host, where it does not go within a while."""
    until = time.monotonic() + DEADLINE_S
    while True:
        found = [thing for each in clients.values() for thing in containers_with(each, LABEL_OWNER)]
        found += [thing for each in clients.values() for thing in networks_with(each, LABEL_OWNER)]
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.2)


def test_hosts_are_checked_with_their_clocks(hosts, clients) -> None:
    """Their monotonic clocks are a thousand seconds apart, to the millisecond; nothing of the check is left."""
    code, out, err = command("check", hosts, "--json")

    assert code == 0, err
    first, *others = json.loads(out)
    assert (first["swarm"], first["way"]) == ("manager", None)
    for place, each in enumerate(others, 1):
        way = each["way"]
        assert abs(way["offset_s"] - 1000 * place) <= max(way["round_trip_s"] / 2, 1e-5)
        assert way["round_trip_s"] < 0.01
        assert (way["mtu"], way["passes"], each["swarm"]) == (1450, True, "worker")
    assert left(clients) == []


def test_a_check_from_beside_the_hosts_says_where_a_controller_belongs(hosts, clients) -> None:
    """On the first of them; nodes would not reach it elsewhere. That is no fault of the others."""
    code, out, _ = command("check", hosts, "--json", there=False)

    first, *others = json.loads(out)
    assert code == 3
    assert ["scripts/swarm run" in problem for problem in first["problems"]] == [True]
    assert [each["problems"] for each in others] == [[], []]
    assert left(clients) == []


def test_images_are_brought_to_hosts_that_have_them_not(hosts, clients, carried) -> None:
    """What is there already is not brought again."""
    code, _, first = command("images", hosts)
    again = command("images", hosts)

    assert code == again[0] == 0
    assert "host e2: edgebed-carried" in first
    assert sorted(again[2].splitlines()) == ["host e2: has all images", "host e3: has all images"]
    assert len({client.api.inspect_image(carried)["Id"] for client in clients.values()}) == 1


@pytest.mark.campaign
def test_a_host_that_is_cut_off_is_told_with_what_to_do(swarm, hosts, clients) -> None:
    """Its engine answers, and its network does not reach the others."""
    swarm.cut("e3")
    try:
        code, out, _ = command("check", hosts, "--json")
    finally:
        swarm.heal("e3")

    assert code == 3
    e1, e2, e3 = json.loads(out)
    assert e1["problems"] == e2["problems"] == []
    assert "no way to e1" in e3["problems"][0]
    assert "TCP and UDP 7946 and UDP 4789" in e3["problems"][0]
    assert left(clients) == []


def test_a_check_that_is_interrupted_leaves_nothing(hosts, clients) -> None:
    """Whoever presses Ctrl-C while containers of it run; one that was faster than the key is checked again."""
    codes = []
    while 130 not in codes and len(codes) < TRIES:
        codes.append(interrupted_check(hosts, clients))

    assert codes[-1] == 130, codes
    assert left(clients) == []


def interrupted_check(hosts, clients) -> int:
    """The exit code of a check that is interrupted as soon as a container of it is seen."""
    line = [sys.executable, "-m", "edgebed", "hosts", "check", str(hosts)]
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + DEADLINE_S
        while not containers_with(clients["e1"], LABEL_OWNER) and time.monotonic() < until and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=DEADLINE_S)
    return process.returncode
