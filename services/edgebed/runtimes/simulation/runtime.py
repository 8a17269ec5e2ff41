"""The simulation as a runtime."""

from collections.abc import Callable
from typing import Any

from edgebed.core.runtimes import Runtime
from edgebed.runtimes.runtime import Assignment
from edgebed.runtimes.simulation.jobs import jobs_of
from edgebed.runtimes.simulation.simulation import Simulation


class SimulationRuntime:
    """Virtual time: all nodes in this process, their work in several."""

    name: Runtime = "simulation"

    def __init__(self, processes: int) -> None:
        self.processes = processes

    def prepare(self, say: Callable[[str], None]) -> tuple[None, dict[str, Any]]:
        """Serve nothing: there are no nodes to be discovered, and a process that forks has no threads."""
        return None, {}

    def run(self, assignment: Assignment) -> bool:
        """Run a trial to its end; whether the user asked for an end that the trial had come to by itself."""
        simulation = Simulation(
            assignment.planned.plan,
            assignment.checkpoints,
            jobs_of(assignment.planned, assignment.beginning),
            self.processes,
            assignment.journal,
            assignment.watch,
            assignment.past,
            assignment.until_s,
        )
        simulation.run()
        return simulation.interruptions > 0 and simulation.controller.ending.outcome != "interrupted"

    def close(self) -> None:
        """Nothing outlives a trial."""
