"""scripts/build-images, with a `docker` that only says what it has: what is built, what is left out, what is said."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
DOCKER = """#!/bin/sh
echo "$*" >>"$STATE/asked"
echo "$EDGEBED_REVISION" >"$STATE/revision"
case "$*" in
    *"config --images grafana") echo grafana:1 ;;
    *"config --images prometheus") echo prometheus:1 ;;
    *"config --images") echo edgebed-worker:box ;;
    "compose config") echo "name: box" ;;
    *" build"*) for name in $UNBUILDABLE; do case "$*" in *" $name"*) echo "no $name" >&2; exit 17 ;; esac; done ;;
    "image inspect"*) case " $HERE " in *" $3 "*) ;; *) exit 1 ;; esac ;;
    pull*) case " $REGISTRY " in *" $3 "*) ;; *) echo "no such host" >&2; exit 1 ;; esac ;;
esac
"""
(BASE,) = re.findall(
    r"^base=\$\{EDGEBED_BASE_IMAGE:-(.+)\}$", (ROOT / "scripts/build-images").read_text("utf-8"), re.MULTILINE
)


class Script:
    """A copy of the script in a project of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.override = folder / "docker-compose.override.yml"
        for name in ("scripts", "images/wheels", "bin"):
            (folder / name).mkdir(parents=True)
        shutil.copy(ROOT / "scripts/build-images", folder / "scripts")
        (folder / "docker-compose.yml").touch()
        (folder / "bin/docker").write_text(DOCKER)
        (folder / "bin/docker").chmod(0o755)

    def run(self, **has: str) -> subprocess.CompletedProcess[str]:
        """Run it where the engine has HERE, a registry REGISTRY, and services UNBUILDABLE cannot be built."""
        state = {"STATE": str(self.folder), "HERE": "", "REGISTRY": "", "UNBUILDABLE": ""}
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        return subprocess.run(
            [self.folder / "scripts/build-images"], capture_output=True, text=True, check=False,
            env={"PATH": path} | state | has,
        )  # fmt: skip

    def services(self) -> dict[str, Any]:
        """What Compose is told besides docker-compose.yml."""
        return dict(YAML(typ="safe").load(self.override)["services"])

    def asked(self) -> str:
        """The commands for the engine."""
        return (self.folder / "asked").read_text()


@pytest.fixture
def script(tmp_path) -> Script:
    """One that has not run yet."""
    return Script(tmp_path)


def test_with_a_registry_nothing_deviates(script):
    """Not even a file: what an earlier run without one has written goes."""
    script.override.write_text("# Written by scripts/build-images, which could not\nservices: {}\n")

    done = script.run(HERE="prometheus:1", REGISTRY=f"{BASE} grafana:1")

    assert done.returncode == 0, done.stderr
    assert not script.override.exists()
    assert "build controller parameter-server-image worker-image" in script.asked()
    assert "pull --quiet prometheus:1" not in script.asked()


def test_a_checkout_says_which_commit_its_images_are_of(script):
    """As it is, or with changes; in a folder that is none it says nothing, whatever repository that lies in."""
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", str(script.folder)]
    revision = script.folder / "revision"
    package = script.folder / "services/edgebed/core/package.py"
    package.parent.mkdir(parents=True)
    package.touch()
    (script.folder / "pyproject.toml").touch()
    found = []
    for command in (
        ["init", "--quiet"],
        ["add", "pyproject.toml", "services"],
        ["commit", "--quiet", "--message", "one"],
    ):
        script.run(HERE=f"{BASE} grafana:1 prometheus:1")
        found.append(revision.read_text().strip())
        subprocess.run([*git, *command], check=True)
    script.run(HERE=f"{BASE} grafana:1 prometheus:1")
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    clean = revision.read_text().strip()
    package.write_text("VERSION = 1\n")
    script.run(HERE=f"{BASE} grafana:1 prometheus:1")

    assert found[:2] == ["", ""]
    assert (clean, revision.read_text().strip()) == (head, f"{head}-dirty")


ABSENT = {"profiles": ["registry"]}
"""What keeps a service from being started by the bare `docker compose up`."""
WITHOUT = {
    "Grafana cannot be had": (
        {"HERE": f"{BASE} prometheus:1"}, {"grafana": ABSENT},
        ["Grafana cannot be had (no such host): it is left out; training does without.",
         "With a registry: docker pull grafana:1 && "],
    ),
    "Prometheus cannot be had: it is built from Debian's package, under the project's own name": (
        {"HERE": f"{BASE} grafana:1"},
        {"prometheus": {"image": "edgebed-prometheus:box", "pull_policy": "never",
                        "build": {"context": ".", "dockerfile": "images/prometheus/Dockerfile", "network": "host",
                                  "args": {"BASE_IMAGE": BASE}}}}, [],
    ),
    "Prometheus cannot even be built": (
        {"HERE": f"{BASE} grafana:1", "UNBUILDABLE": "prometheus"}, {"prometheus": ABSENT},
        ["Prometheus could not be built: it is left out, and training does without. no prometheus"],
    ),
    "an image of nodes cannot be built: without it there is no training": (
        {"HERE": f"{BASE} grafana:1 prometheus:1", "UNBUILDABLE": "worker-image"}, None,
        ["error: an image could not be built:", "no worker-image"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WITHOUT)
def test_what_cannot_be_had_is_left_out_with_what_to_do(script, case):
    """The rest is built as ever; what training needs is an error."""
    has, services, said = WITHOUT[case]
    done = script.run(**has)

    assert done.returncode == (3 if services is None else 0), done.stderr
    assert [each for each in said if each not in done.stderr] == []
    assert services is None or script.services() == services
    assert "build controller" in script.asked().partition("build prometheus")[0]


def test_a_file_of_the_users_own_is_not_replaced(script):
    """It may have what nobody else knows."""
    script.override.write_text("services: {}\n")

    done = script.run(HERE=f"{BASE} grafana:1 prometheus:1")

    assert (done.returncode, script.override.read_text()) == (3, "services: {}\n")
    assert "docker-compose.override.yml was not written by this script and would be lost" in done.stderr
