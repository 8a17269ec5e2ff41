"""The process runtime."""

from collections.abc import Callable
from typing import Any

from edgebed.core.runtimes import Emulation, Runtime
from edgebed.runtimes.live.runtime import LiveRuntime
from edgebed.runtimes.processes.launcher import ProcessLauncher
from edgebed.runtimes.runtime import Assignment

LOOPBACK = "127.0.0.1"


class ProcessRuntime(LiveRuntime):
    """Each node is a process of this machine."""

    name: Runtime = "process"

    def __init__(self, emulation: Emulation) -> None:
        self.emulation = emulation

    def prepare(self, say: Callable[[str], None]) -> tuple[str, dict[str, Any]]:
        """Pages are for this machine alone."""
        return LOOPBACK, {}

    def launcher(self, assignment: Assignment) -> ProcessLauncher:
        """What forks the trial's nodes."""
        folder = assignment.folder
        return ProcessLauncher(assignment.planned.plan, folder.logs, self.emulation, folder.server_log)
