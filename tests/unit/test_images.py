"""The images and the file for Compose, as far as they can be judged without an engine."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
DOCKERFILES = sorted((ROOT / "images").glob("*/Dockerfile"))


def steps(image: str) -> list[str]:
    """The instructions of an image's Dockerfile, each on one line, from its first `RUN` after the last `FROM`."""
    text = (ROOT / "images" / image / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
    last = max(number for number, line in enumerate(lines) if line.startswith("FROM"))
    return [" ".join(line.split()) for line in lines[last + 1 :]]


@pytest.fixture(scope="module")
def compose():
    """docker-compose.yml."""
    return YAML(typ="safe").load(ROOT / "docker-compose.yml")


def test_the_images_share_their_large_layers():
    """The same steps in the same order: what the server has, then torch, then the rest."""
    server, worker, controller = (steps(image) for image in ("parameter-server", "worker", "controller"))
    of_server, of_worker = ([step for step in image if step.startswith("RUN --mount")] for image in (server, worker))

    assert (len(of_server), len(of_worker)) == (2, 2)
    assert "link.txt" in of_server[1]
    assert server[: server.index(of_server[0]) + 1] == worker[: worker.index(of_worker[0]) + 1]
    shared = worker.index(of_worker[1]) + 1
    assert worker[:shared] == controller[:shared]


@pytest.mark.parametrize("image", ["controller", "parameter-server", "worker"])
def test_images_say_what_they_are_of(image, compose):
    """By the labels of the Open Container Initiative; they are last, since a commit changes them and no layer."""
    *_, source, revision, version, label = steps(image)
    arguments = compose["services"]["controller"]["build"]["args"]

    assert (source, revision, version) == ("ARG SOURCE=", "ARG REVISION=", "ARG VERSION=")
    for key in ("source", "revision", "version"):
        assert f'org.opencontainers.image.{key}="${{{key.upper()}}}"' in label
        assert f"${{EDGEBED_{key.upper()}" in arguments[key.upper()]
    assert 'org.opencontainers.image.licenses="Apache-2.0"' in label
    assert "org.opencontainers.image.title=" in label


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.parent.name)
def test_images_build_with_the_oldest_engine(path):
    """Neither a frontend that has to be pulled nor syntax that a built-in one does not know."""
    text = path.read_text(encoding="utf-8")

    assert "syntax=" not in text
    assert "<<" not in text


def test_the_socket_is_in_the_controller_alone(compose):
    """It is root on the host."""
    assert [name for name, service in compose["services"].items() if "docker.sock" in str(service)] == ["controller"]


def test_nothing_is_open_to_the_network(compose):
    """Ports are published on loopback; the nodes' networks lead nowhere; services have few rights, and limits."""
    services = {name: service for name, service in compose["services"].items() if service.get("scale") != 0}

    assert set(services) == {"controller", "prometheus", "grafana"}
    ports = [port for service in services.values() for port in service["ports"]]
    assert len(ports) == 3
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert compose["networks"] == {"data": {"internal": True}, "management": {"internal": True}, "pages": None}
    assert [name for name, service in services.items() if "data" in service["networks"]] == ["controller"]
    for service in services.values():
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["read_only"]
        assert {"mem_limit", "pids_limit"} <= service.keys()


def test_what_is_built_is_never_asked_of_a_registry(compose):
    """Nobody else has these images; they are built where they are missing, and are their project's own."""
    built = {name: service for name, service in compose["services"].items() if "build" in service}

    assert set(built) == {"controller", "parameter-server-image", "worker-image"}
    for service in built.values():
        assert service["pull_policy"] == "never"
        assert service["image"].endswith(":${COMPOSE_PROJECT_NAME}}")
    assert "name" not in compose, "two folders would be one project"
    environment = compose["services"]["controller"]["environment"]
    assert environment["EDGEBED_SERVER_IMAGE"] == built["parameter-server-image"]["image"]
    assert environment["EDGEBED_WORKER_IMAGE"] == built["worker-image"]["image"]


def test_every_service_tells_whether_it_is_well(compose):
    """With what its image has; `up --wait` waits for it. The two that never run have nothing to tell."""
    services = {name: service for name, service in compose["services"].items() if service.get("scale") != 0}
    checks = {name: " ".join(service["healthcheck"]["test"]).split()[1] for name, service in services.items()}

    assert checks == {"controller": "test", "prometheus": "promtool", "grafana": "wget"}


def test_training_waits_for_no_service_that_shows_it(compose):
    """Whoever cannot have Prometheus or Grafana starts the controller alone, which brings the nodes' images along."""
    assert compose["services"]["controller"]["depends_on"] == ["parameter-server-image", "worker-image"]


def test_every_variable_without_a_default_is_in_the_env_file(compose):
    """So that the bare command works; the project's name Compose knows itself."""
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    known = set(re.findall(r"^(\w+)=", (ROOT / ".env").read_text(encoding="utf-8"), flags=re.MULTILINE))

    needed = set(re.findall(r"\$\{(\w+)\}", text))
    assert needed
    assert needed <= known | {"COMPOSE_PROJECT_NAME"}
    assert {name for name, value in compose["services"]["controller"]["environment"].items() if value is None} <= known


@pytest.mark.parametrize(
    ("files", "last_words"),
    [
        (
            {"memory/memory.max_usage_in_bytes": "61", "memory/memory.limit_in_bytes": "64",
             "memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2"},
            " peak=61 limit=64 oom_kills=2",
        ),
        (
            {"memory/memory.max_usage_in_bytes": "61", "memory/memory.limit_in_bytes": "9223372036854771712"},
            " peak=61",
        ),
        (
            {"cgroup.controllers": "memory", "memory.peak": "61", "memory.max": "64",
             "memory.events": "low 0\noom 3\noom_kill 1\noom_group_kill 0"},
            " peak=61 limit=64 oom_kills=1",
        ),
        ({"cgroup.controllers": "memory", "memory.max": "max", "memory.events": "oom_kill 0"}, " oom_kills=0"),
    ],
    ids=["v1", "v1 without limit", "v2", "v2 of an old kernel"],
)  # fmt: skip
def test_a_node_that_was_killed_leaves_what_its_cgroup_knew(tmp_path, files, last_words):
    """Of either version; what is not known is left out; the exit code is the node's."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")

    done = run_node(tmp_path, "kill -KILL $$")

    assert (done.returncode, done.stderr) == (128 + signal.SIGKILL, f"edgebed-node: memory{last_words}\n")


def test_a_node_that_ended_by_itself_has_no_last_words(tmp_path):
    """Whatever its exit code was."""
    done = run_node(tmp_path, "exit 3")

    assert (done.returncode, done.stderr) == (3, "")


def run_node(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    """What `images/edgebed-node` does when Python is this shell program and the cgroup this folder."""
    python = folder / "python"
    python.write_text(f"#!/bin/sh\n{program}\n")
    python.chmod(0o755)
    return subprocess.run(
        [ROOT / "images/edgebed-node"], capture_output=True, text=True, check=False,
        env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}", "EDGEBED_CGROUP": str(folder)},
    )  # fmt: skip
