"""The project as a user of Compose has it, in a folder and under a name of its own; scenarios are somebody else's."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from real_prometheus import Prometheus

from edgebed.runtimes.containers.project import ImageNames, project_name

ROOT = Path(__file__).parents[2]
USER = 12345
"""To whom the scenarios belong, and so the runs."""


class Project:
    """A copy of the project's files for Compose."""

    def __init__(self, folder: Path, scenario: str) -> None:
        self.folder = folder
        self.name = f"edgebed-test-{os.getpid()}-{folder.name.replace('_', '-')}"[:60]
        nodes, controller = ImageNames.named(), f"edgebed-controller:{project_name()}"
        self.images = {
            "EDGEBED_SERVER_IMAGE": nodes.server,
            "EDGEBED_WORKER_IMAGE": nodes.worker,
            "EDGEBED_CONTROLLER_IMAGE": os.environ.get("EDGEBED_CONTROLLER_IMAGE") or controller,
        }
        """Those of this checkout, whatever the project's name."""
        for name in ("docker-compose.yml", "docker-compose.override.yml", ".env"):
            if (ROOT / name).exists():
                shutil.copy(ROOT / name, folder)
        shutil.copytree(ROOT / "dashboards", folder / "dashboards")
        (folder / "scenarios").mkdir()
        self.write("quickstart.yaml", scenario)
        os.chown(folder / "scenarios", USER, USER)
        folder.chmod(0o755)

    def write(self, name: str, text: str) -> None:
        """A scenario."""
        (self.folder / "scenarios" / name).write_text(text)

    def compose(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """`docker compose` with these arguments, to its end."""
        return subprocess.run(
            ["docker", "compose", *arguments], capture_output=True, text=True, check=False, cwd=self.folder,
            env=self._environment() | environment,
        )  # fmt: skip

    def _environment(self) -> dict[str, str]:
        """The project's name, any ports that are free, and its images."""
        ports = dict.fromkeys(("EDGEBED_PORT", "EDGEBED_PROMETHEUS_PORT", "EDGEBED_GRAFANA_PORT"), "0")
        return os.environ | ports | self.images | {"COMPOSE_PROJECT_NAME": self.name}

    def edgebed(self, command: str) -> subprocess.CompletedProcess[str]:
        """The command, in the controller's container."""
        return self.compose("exec", "-T", "controller", "edgebed", *command.split())

    @contextlib.contextmanager
    def watching(self, run: str) -> Iterator[subprocess.Popen[str]]:
        """`edgebed watch`, in the controller's container; what it says while the run goes on is its `stderr`."""
        command = ["docker", "compose", "exec", "-T", "controller", "edgebed", "watch", run]
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, cwd=self.folder, env=self._environment(), **pipes) as process:
            yield process
            process.kill()

    def up(self, *services: str, **environment: str) -> None:
        """Start it, or these services alone, and wait until it is up."""
        done = self.compose("up", "--detach", "--wait", *services, **environment)
        assert done.returncode == 0, done.stderr

    def down(self, *options: str) -> None:
        """Take it away: nothing is left of it but empty networks in which an old engine has miscounted, and says so."""
        done = self.compose("down", *options)
        left = self.left()
        assert (done.returncode, left) == (0, []) or "has active endpoints" in done.stderr, done.stderr
        for each in left:  # no container, or this fails
            assert self._docker("network", "inspect", "--format", "{{len .Containers}}", each) == ["0"], done.stderr

    def kill_node(self, node: str) -> None:
        """As a crash: its container, by SIGKILL."""
        filters = (f"label=edgebed.node={node}", f"label=com.docker.compose.project={self.name}")
        found = self._docker("ps", "-q", *(word for one in filters for word in ("--filter", one)))
        self._docker("kill", *found)

    def prometheus(self) -> Prometheus:
        """The project's."""
        return Prometheus(self.compose("port", "prometheus", "9090").stdout.strip())

    def targets(self) -> dict[str, str]:
        """Node: health, of every target that Prometheus was told of."""
        found = self.prometheus().get("targets", state="active")["activeTargets"]
        return {target["labels"].get("node", target["labels"]["job"]): target["health"] for target in found}

    def left(self) -> list[str]:
        """Containers and networks of the project that there are."""
        only = ("ls", "-q", "--filter", f"label=com.docker.compose.project={self.name}")
        return self._docker("container", *only, "--all") + self._docker("network", *only)

    @staticmethod
    def _docker(*arguments: str) -> list[str]:
        """The words that the command prints."""
        done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=True)
        return done.stdout.split()


@contextlib.contextmanager
def composed(folder: Path, scenario: str) -> Iterator[Project]:
    """A project with that scenario as the one that `up` runs; gone afterwards."""
    project = Project(folder, scenario)
    yield project
    project.compose("stop", "controller")  # it removes its nodes, and Compose stumbles over what somebody else removes
    project.down("--volumes", "--remove-orphans", "--timeout", "60")
