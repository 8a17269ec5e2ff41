"""What the runtimes have in common whose nodes are processes, in containers or not: real time, and a controller."""

import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from edgebed.core.console import say
from edgebed.core.errors import InfrastructureError
from edgebed.core.imports import sources
from edgebed.core.linux import monotonic_clock
from edgebed.core.package import fingerprint
from edgebed.core.runtimes import TRAITS, Runtime
from edgebed.roles.control.admission import Admission
from edgebed.roles.control.controller import Controller
from edgebed.roles.programs.controller import ProgramController
from edgebed.runtimes.live.control import Control
from edgebed.runtimes.live.live_controller import Launcher, LiveController
from edgebed.runtimes.live.payload import backups_of, payload_of
from edgebed.runtimes.programs.shell import ProgramLauncher, ProgramShell
from edgebed.runtimes.runtime import Assignment, ProgramAssignment


class LiveRuntime(ABC):
    """A controller in this process, and nodes that a launcher starts."""

    name: Runtime

    @abstractmethod
    def prepare(self, say: Callable[[str], None]) -> tuple[str, dict[str, Any]]:
        """As `Runtime.prepare`."""

    @abstractmethod
    def launcher(self, assignment: Assignment) -> Launcher:
        """What starts the trial's nodes; InfrastructureError where that is impossible."""

    @abstractmethod
    def close(self) -> None:
        """As `Runtime.close`."""

    def discard_log(self, assignment: Assignment) -> None:
        """Remove the server's log: the trial is complete, or goes on without."""
        shutil.rmtree(assignment.folder.server_log, ignore_errors=True)

    def run(self, assignment: Assignment) -> bool:
        """Run a trial to its end; whether the user asked for an end that the trial had come to by itself."""
        plan, traits = assignment.planned.plan, TRAITS[self.name]
        admission = Admission(
            plan,
            payload_of(assignment.planned, assignment.checkpoints, assignment.beginning),
            time.monotonic_ns() - round(assignment.until_s * 1e9),
            clock=monotonic_clock(),
            code=fingerprint(),
            other_code_remedy=traits.other_code_remedy,
            sources=sources(plan.nodes[0].task.python_path) if traits.has_containers else (),
        )
        heart = Controller(
            plan,
            admission,
            self.name,
            linger_s=assignment.linger_s,
            past=assignment.past,
            backup_at=backups_of(assignment.checkpoints),
        )
        watch = assignment.watch(heart)
        if assignment.past and assignment.past.from_checkpoint:
            self.discard_log(assignment)
        with _control_in(assignment.folder.path.parent) or nullcontext() as control:
            launcher = self.launcher(assignment)
            durable = assignment.past.durable if assignment.past else 0
            LiveController(
                heart, launcher, assignment.journal, assignment.checkpoints, watch, control, durable=durable
            ).run()
        if heart.ending.outcome == "completed":
            assignment.journal.sync()  # as the log has what the journal may lack
            self.discard_log(assignment)
        return watch.interrupted and heart.ending.outcome != "interrupted"


def run_programs(
    assignment: ProgramAssignment, runtime: Runtime, launcher: Callable[[], ProgramLauncher]
) -> tuple[str, bool]:
    """As `ProgramRuntime.run_programs`, with what starts the programs."""
    heart = ProgramController(assignment.plan, runtime)
    watch, folder = assignment.watch(heart), assignment.folder
    with _control_in(folder.path.parent) or nullcontext() as control:
        ProgramShell(heart, launcher(), assignment.journal, watch, control, folder.logs).run()
    return heart.outcome, watch.interrupted and heart.outcome != "interrupted"


def _control_in(folder: Path) -> Control | None:
    """The run's control socket; None where its folder cannot have one, which is no reason not to train."""
    try:
        return Control(folder)
    except InfrastructureError as error:
        say(f"nobody can act on the nodes of this run by hand: {error}")
        return None
