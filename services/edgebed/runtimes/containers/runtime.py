"""The docker runtime."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from edgebed.core.runtimes import Runtime
from edgebed.planning.memory import container_bytes, needs_of
from edgebed.runtimes.containers.engine import connect
from edgebed.runtimes.containers.launcher import ContainerLauncher
from edgebed.runtimes.containers.server_volume import discard_volume, recorded
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
        folder = assignment.folder
        plan, needs = assignment.planned.plan, needs_of(assignment.planned)
        memory_bytes = {node.node: container_bytes(node, needs[node.node]) for node in plan.nodes}
        return ContainerLauncher(plan, memory_bytes, assignment.run, folder.logs, folder.server_log)

    def discard_log(self, folder: Path) -> None:
        """Remove the log's volume, too."""
        if recorded(folder):
            with closing(connect()) as client:
                discard_volume(client, folder)
        super().discard_log(folder)

    def close(self) -> None:
        """No container outlives its trial."""
