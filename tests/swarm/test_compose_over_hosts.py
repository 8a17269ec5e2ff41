"""`docker compose` on the manager of a swarm: the controller is a container there, and its nodes are on two hosts."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from compose_project import USER, Project
from swarm import FOLDER
from waiting import until

import edgebed
from edgebed.runtimes.containers.labels import LABEL_OWNER
from edgebed.runtimes.containers.leftovers import containers_with

pytestmark = [pytest.mark.docker, pytest.mark.campaign, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
NAME = f"composed-over-hosts-{os.getpid()}"
SCENARIO = f"""
name: {NAME}
task: {{ data: synthetic, model: small, batch_size: 20, fraction: 0.3 }}
method: asgd
fleet: {{ here: {{ count: 1, cpus: 0.3 }}, there: {{ count: 2, cpus: 0.3, uplink: 20mbit }} }}
evaluation: {{ every: 200 updates }}
stop: {{ time: 15s }}
"""
FILES = ("-f", "docker-compose.yml", "-f", "docker-compose.override.yml", "-f", "docker-compose.swarm.yml")


def test_compose_trains_over_two_hosts_and_prometheus_sees_both(swarm, clients, tmp_path, monkeypatch):
    """The other host's engine is reached by TLS; `down` leaves no container on either and no network on the manager."""
    project = Project(tmp_path, SCENARIO)
    wanted = [
        project.images["EDGEBED_CONTROLLER_IMAGE"],
        "edgebed-prometheus:" + project.images["EDGEBED_WORKER_IMAGE"].rpartition(":")[2],
    ]
    saved = subprocess.Popen(["docker", "save", *wanted], stdout=subprocess.PIPE)
    monkeypatch.setenv("DOCKER_HOST", swarm.address("e1").engine)
    subprocess.run(["docker", "load", "--quiet"], stdin=saved.stdout, check=True)
    assert saved.wait() == 0
    assert saved.stdout is not None
    saved.stdout.close()
    shutil.copy(ROOT / "docker-compose.swarm.yml", tmp_path)
    shutil.copytree(FOLDER / "tls", tmp_path / "certificates/e2")
    for path in (tmp_path / "certificates").rglob("*"):
        os.chown(path, USER, USER)
    address = swarm.by_tls()
    hosts = f"e1: {{ classes: [here] }}\ne2: {{ engine: '{address.engine}', tls: certificates/e2, classes: [there] }}\n"
    (tmp_path / "hosts.yaml").write_text(hosts, encoding="utf-8")
    monkeypatch.setenv("DOCKER_SOCKET", str(FOLDER / "e1.sock"))
    monkeypatch.setenv("EDGEBED_PROMETHEUS_IMAGE", wanted[1])
    try:
        begun = project.compose(*FILES, "up", "--detach", "--wait")
        assert begun.returncode == 0, begun.stderr[-3000:]
        waited = project.compose(*FILES, "wait", "controller")
        said = project.compose(*FILES, "logs", "controller").stdout
        assert waited.returncode == 0, said[-3000:]
        (trial,) = edgebed.load(NAME, runs_dir=tmp_path / "runs").trials.values()
        assert trial.summary.outcome == "completed"
        assert {node.node: node.host for node in trial.folder.read_plan().workers()} == {
            "here-0": "e1", "there-0": "e2", "there-1": "e2",
        }  # fmt: skip
        assert trial.summary.accounting is not None
        assert trial.summary.accounting.closes
    finally:
        project.compose(*FILES, "down", "--volumes")
        until(
            lambda: project.compose(*FILES, "down", "--volumes").returncode == 0, "the networks are let go", 60.0, 1.0
        )
    for host in ("e1", "e2"):
        assert containers_with(clients[host], LABEL_OWNER) == []
