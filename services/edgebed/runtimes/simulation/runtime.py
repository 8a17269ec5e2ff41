"""The simulation as a runtime."""

from collections.abc import Callable
from typing import Any

from edgebed.core.runtimes import Runtime
from edgebed.learning import torch_device
from edgebed.runtimes.runtime import Assignment
from edgebed.runtimes.simulation.jobs import jobs_of
from edgebed.runtimes.simulation.simulation import Simulation


class SimulationRuntime:
    """Virtual time: all nodes in this process, their work in several, or on the torch device that the user chose."""

    name: Runtime = "simulation"

    def __init__(self, processes: int) -> None:
        self.device = torch_device.chosen()
        self.processes = processes if self.device == torch_device.CPU else 1  # a process that forks has no other device

    def prepare(self, say: Callable[[str], None]) -> tuple[None, dict[str, Any]]:
        """Serve nothing: there are no nodes to be discovered, and a process that forks has no threads."""
        other = self.device != torch_device.CPU
        return None, {"torch_device": torch_device.describe(self.device)} if other else {}

    def run(self, assignment: Assignment) -> bool:
        """Run a trial to its end; whether the user asked for an end that the trial had come to by itself."""
        simulation = Simulation(
            assignment.planned.plan,
            assignment.checkpoints,
            jobs_of(assignment.planned, assignment.beginning, self.device),
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
