"""The docker runtime."""

from collections.abc import Callable, Sequence
from typing import Any

from edgebed.core.planned.hosts import EngineAddress
from edgebed.core.runtimes import Runtime
from edgebed.planning.memory import container_bytes, needs_of
from edgebed.runtimes.containers.engines import Engines
from edgebed.runtimes.containers.launcher import ContainerLauncher
from edgebed.runtimes.containers.programs.launcher import ContainedPrograms
from edgebed.runtimes.containers.server_volume import discard_volume, recorded
from edgebed.runtimes.containers.site import prepare
from edgebed.runtimes.live.runtime import LiveRuntime, run_programs
from edgebed.runtimes.runtime import Assignment, ProgramAssignment


class ContainerRuntime(LiveRuntime):
    """Each node is a container."""

    name: Runtime = "docker"

    def __init__(self, hosts: Sequence[EngineAddress] = ()) -> None:
        """`hosts` have the engines that a run's nodes are on, the controller's first; none: the user's own engine."""
        self.hosts = hosts

    def prepare(self, say: Callable[[str], None]) -> tuple[str, dict[str, Any]]:
        """Pages are served where Prometheus reaches them; the facts are those of the engines."""
        return prepare(say, self.hosts)

    def launcher(self, assignment: Assignment) -> ContainerLauncher:
        """What starts the trial's containers."""
        folder = assignment.folder
        plan, needs = assignment.planned.plan, needs_of(assignment.planned)
        memory_bytes = {node.node: container_bytes(node, needs[node.node]) for node in plan.nodes}
        return ContainerLauncher(plan, memory_bytes, assignment.run, folder.logs, folder.server_log)

    def run_programs(self, assignment: ProgramAssignment) -> tuple[str, bool]:
        """Run a trial's programs in containers, in the places of their nodes."""
        plan, folder = assignment.plan, assignment.folder
        return run_programs(assignment, self.name, lambda: ContainedPrograms(plan, assignment.run, folder.path))

    def discard_log(self, assignment: Assignment) -> None:
        """Remove the log's volume, too."""
        plan, folder = assignment.planned.plan, assignment.folder.server_log
        if recorded(folder):
            with Engines([host.address for host in plan.hosts if host.name == plan.server.host]) as engines:
                discard_volume(engines.first, folder)
        super().discard_log(assignment)

    def close(self) -> None:
        """No container outlives its trial."""
