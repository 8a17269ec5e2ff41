"""The docker runtime."""

from collections.abc import Callable
from typing import Any

from edgebed.core.runtimes import Runtime
from edgebed.runtimes.containers.launcher import ContainerLauncher
from edgebed.runtimes.containers.site import prepare
from edgebed.runtimes.live.runtime import LiveRuntime
from edgebed.runtimes.runtime import Assignment


class ContainerRuntime(LiveRuntime):
    """Each node is a container."""

    name: Runtime = "docker"

    def prepare(self, say: Callable[[str], None]) -> tuple[str, dict[str, Any]]:
        """Pages are served where Prometheus reaches them; the facts are the engine's."""
        return prepare(say)

    def launcher(self, assignment: Assignment) -> ContainerLauncher:
        """What starts the trial's containers."""
        return ContainerLauncher(assignment.planned.plan, assignment.run, assignment.folder.logs)

    def close(self) -> None:
        """No container outlives its trial."""
