"""What a runtime is: how a planned trial is run to its end, and by whom its nodes are started."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from edgebed.core.plan import ProgramsPlan
from edgebed.core.runtimes import Runtime as RuntimeName
from edgebed.journal.checkpoints import CheckpointStore
from edgebed.journal.journal import JournalWriter
from edgebed.journal.run_folder import TrialFolder
from edgebed.learning.beginning import Beginning
from edgebed.planning.planning import PlannedTraining
from edgebed.roles.control.controller import Controller, ResumedTrial
from edgebed.roles.programs.controller import ProgramController
from edgebed.runtimes.watch import StatusFeed


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """A trial to be run."""

    planned: PlannedTraining
    beginning: Beginning
    """The initial model."""
    run: str
    """The run's name, `<scenario>/<number>`."""
    folder: TrialFolder
    journal: JournalWriter
    checkpoints: CheckpointStore
    past: ResumedTrial | None
    """What was before, where the trial is resumed."""
    watch: Callable[[Controller], StatusFeed]
    """What shows the controller's heart to the user and to Prometheus."""
    linger_s: Callable[[], float]
    """How long a node may have to wait at its end until Prometheus has read its last metrics."""

    @property
    def until_s(self) -> float:
        """The time at which the trial's clock starts, in seconds."""
        return self.past.until_s if self.past else 0.0


@dataclass(frozen=True, kw_only=True)
class ProgramAssignment:
    """A trial of programs to be run."""

    plan: ProgramsPlan
    run: str
    """The run's name, `<scenario>/<number>`."""
    folder: TrialFolder
    journal: JournalWriter
    watch: Callable[[ProgramController], StatusFeed]
    """What shows the controller's heart to the user."""


class Runtime(Protocol):
    """One of the ways to run the nodes of a trial."""

    name: RuntimeName

    def prepare(self, say: Callable[[str], None]) -> tuple[str | None, dict[str, Any]]:
        """Make ready for a run; InfrastructureError where that is impossible.

        Returns the address at which the controller's pages are to be served, None where no node has any, and the facts
        of what the nodes run in. `say` is told what was found and done.
        """
        ...

    def run(self, assignment: Assignment) -> bool:
        """Run a trial to its end; whether the user asked for an end that the trial had come to by itself."""
        ...

    def close(self) -> None:
        """End what was started for all trials of a run."""
        ...


@runtime_checkable
class ProgramRuntime(Protocol):
    """A runtime that runs programs of the user's, too."""

    def run_programs(self, assignment: ProgramAssignment) -> tuple[str, bool]:
        """Run a trial of programs to its end; return its outcome, and whether the user asked for an end besides."""
        ...
