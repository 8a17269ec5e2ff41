"""Engines of several hosts: reached by TLS, cleared of what controllers have left, also when a host is gone."""

import shutil
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
from leftovers import leftovers

from edgebed.core.errors import InfrastructureError
from edgebed.core.planned.hosts import EngineAddress
from edgebed.core.process_names import process_name
from edgebed.runtimes.containers.engine import connect, connected, conversing, engine_id
from edgebed.runtimes.containers.labels import LABEL_OWNER, LABEL_RUN
from edgebed.runtimes.containers.leftovers import containers_with, networks_with, remove_leftovers
from edgebed.runtimes.containers.project import ImageNames

pytestmark = pytest.mark.docker

ECHO = "import sys\nfor line in sys.stdin: print(line.strip() + 'x' * 50_000, flush=True)"
DEADLINE_S = 30.0


@pytest.fixture
def left(swarm, clients):
    """Function that leaves a network over all hosts with a container on each, all of one owner."""

    def leave(owner: str) -> None:
        labels = {LABEL_OWNER: owner, LABEL_RUN: "far/0001"}
        api = clients["e1"].api
        network = api.create_network("left", driver="overlay", attachable=True, internal=True, labels=labels)["Id"]
        for client in clients.values():
            made = client.api.create_container(
                ImageNames.named().server,
                entrypoint=["sleep", "600"],
                labels=labels,
                host_config=client.api.create_host_config(network_mode=network),
            )
            client.api.start(made["Id"])

    return leave


def all_gone(clients) -> bool:
    """Whether no engine has anything of edgebed's; hosts hear a moment later that the swarm's network is removed."""
    until = time.monotonic() + DEADLINE_S
    while any(containers_with(each, LABEL_OWNER) or networks_with(each, LABEL_OWNER) for each in clients.values()):
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


def down(hosts) -> str:
    """What `edgebed down --hosts` prints."""
    command = [sys.executable, "-m", "edgebed", "down", "--hosts", str(hosts)]
    with leftovers():
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_engine_behind_tls_is_like_one_here(swarm, clients, monkeypatch) -> None:
    """Calls and long lines of an attached container; the environment's certificates for the web do not matter."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/etc/ssl/certs/ca-certificates.crt")
    monkeypatch.setenv("CURL_CA_BUNDLE", "/nowhere")
    with closing(connect(swarm.by_tls())) as client:
        assert engine_id(client) == engine_id(clients["e2"])
        made = client.api.create_container(
            ImageNames.named().server, entrypoint=["python", "-c", ECHO], stdin_open=True
        )["Id"]
        try:
            with conversing(client, made) as talk:
                client.api.start(made)
                for word in (b"ab", b"cd", b"ef"):
                    talk.say(word)
                    assert talk.hear(DEADLINE_S) == word + 50_000 * b"x"
            assert client.api.wait(made, timeout=DEADLINE_S)["StatusCode"] == 0, "its standard input has closed"
        finally:
            client.api.remove_container(made, force=True)


def test_an_engine_that_nobody_vouches_for_is_refused(swarm, tmp_path) -> None:
    """Its certificate is signed by another authority than the folder's."""
    for name in ("cert.pem", "key.pem"):
        shutil.copy(Path(swarm.by_tls().tls) / name, tmp_path)
    make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=other -keyout ca.key"
    subprocess.run([*make.split(), "-out", "ca.pem"], cwd=tmp_path, check=True, capture_output=True)

    with pytest.raises(InfrastructureError, match=r"host e2: no container engine answers: .*certificate verify failed"):
        connect(EngineAddress("e2", swarm.by_tls().engine, str(tmp_path)))


def test_what_a_controller_left_on_three_hosts_goes_with_down(swarm, clients, left, tmp_path) -> None:
    """While it lives it is left alone; when it is gone, `down` removes it wherever it is, and the network at last."""
    hosts = swarm.write_hosts(tmp_path / "hosts.yaml")
    with subprocess.Popen(["sleep", "600"]) as process:
        left(f"process/{process_name(process.pid)}")
        kept = down(hosts)
        process.kill()

    assert "kept 3 containers and 1 network of far/0001 on e1, e2, e3: its controller seems to be running" in kept
    removed = down(hosts)
    assert "removed 3 containers and 1 network of far/0001 on e1, e2, e3, whose controller is gone" in removed
    assert all_gone(clients)


def test_a_controller_in_a_container_of_another_host_keeps_what_it_has(clients, left) -> None:
    """Who cannot ask its engine touches nothing, though its own engine does not know that container."""
    manager = clients["e1"]
    controller = manager.api.create_container(ImageNames.named().server, entrypoint=["sleep", "600"])["Id"]
    manager.api.start(controller)
    try:
        left(f"container/{engine_id(manager)}/{controller}")
        said: list[str] = []
        here_alone = remove_leftovers(said.append, engines={"e2": clients["e2"]})
        everywhere = remove_leftovers(said.append, engines=clients)
    finally:
        manager.api.remove_container(controller, force=True)
    blind = remove_leftovers(said.append, engines={"e2": clients["e2"]})

    assert (here_alone, everywhere, blind) == (0, 0, 0)
    assert ["cannot be told from here" in line for line in said] == [True, False, True]
    assert remove_leftovers(said.append, engines=clients) == 4
    assert all_gone(clients)


def test_what_is_left_on_a_host_that_is_gone_goes_when_it_is_back(swarm, clients, left, tmp_path) -> None:
    """The others are cleared meanwhile, and the host is named."""
    hosts = swarm.write_hosts(tmp_path / "hosts.yaml")
    left("process/earlier-boot/1/2/3")
    swarm.kill("e3")
    try:
        meanwhile = down(hosts)
        of_others = [len(containers_with(clients[host], LABEL_OWNER)) for host in ("e1", "e2")]
    finally:
        swarm.start("e3")
        wait_for(swarm.address("e3"))
    afterwards = down(hosts)

    assert "host e3: no container engine answers" in meanwhile
    assert "removed 2 containers" in meanwhile
    assert of_others == [0, 0]
    assert "host e3" not in afterwards
    with connected(swarm.addresses) as (found, _):
        assert all_gone(found)


def wait_for(address: EngineAddress) -> None:
    """Wait until an engine answers, and is in its swarm."""
    until = time.monotonic() + DEADLINE_S
    while time.monotonic() < until:
        with suppress(InfrastructureError), closing(connect(address)) as client:
            if client.info()["Swarm"]["LocalNodeState"] == "active":
                return
        time.sleep(0.2)
    raise AssertionError(f"{address.host} is not back after {DEADLINE_S:g} s")
