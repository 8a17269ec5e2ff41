"""The process runtime."""

from collections.abc import Callable
from typing import Any

from edgebed.core.runtimes import Emulation, Runtime
from edgebed.runtimes.live.runtime import LiveRuntime, run_programs
from edgebed.runtimes.processes.forking import ForkServer
from edgebed.runtimes.processes.launcher import ProcessLauncher
from edgebed.runtimes.runtime import Assignment, ProgramAssignment

LOOPBACK = "127.0.0.1"


class ProcessRuntime(LiveRuntime):
    """Each node is a process of this machine."""

    name: Runtime = "process"

    def __init__(self, emulation: Emulation) -> None:
        self.emulation = emulation
        self.forker: ForkServer | None = None
        """What forks the nodes of all trials, once there is one."""

    def prepare(self, say: Callable[[str], None]) -> tuple[str, dict[str, Any]]:
        """Pages are for this machine alone."""
        return LOOPBACK, {}

    def launcher(self, assignment: Assignment) -> ProcessLauncher:
        """What forks the trial's nodes."""
        folder, logs = assignment.folder, assignment.folder.logs
        if self.forker is None or not self.forker.is_alive:
            self.forker = ForkServer(logs / "fork-server.log")
        return ProcessLauncher(assignment.planned.plan, logs, self.forker, self.emulation, folder.server_log)

    def run_programs(self, assignment: ProgramAssignment) -> tuple[str, bool]:
        """Run a trial's programs in namespaces and cgroups of their nodes."""
        from edgebed.runtimes.processes.program_launcher import ProgramLauncher  # its pyroute2 takes a while

        plan, folder = assignment.plan, assignment.folder
        return run_programs(assignment, self.name, lambda: ProgramLauncher(plan, folder.path, folder.logs))

    def close(self) -> None:
        """End the fork server."""
        if self.forker:
            self.forker.close()
