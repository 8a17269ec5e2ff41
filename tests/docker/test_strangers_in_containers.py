"""Strangers at the sockets of a run in containers, from the machine that the bridges are on: as in processes."""

import os
from pathlib import Path

from staged_trial import StagedTrial, Telling
from strangers import SCENARIO, attack, check

from edgebed.journal.run_folder import TrialFolder
from edgebed.planning.memory import container_bytes, needs_of
from edgebed.planning.planning import PlannedTraining
from edgebed.runtimes.containers.launcher import ContainerLauncher


class TellingContainers(Telling, ContainerLauncher):
    """Starts containers."""

    by_environment = True

    @classmethod
    def of(cls, planned: PlannedTraining, folder: TrialFolder) -> "TellingContainers":
        """The launcher of a trial."""
        needs = needs_of(planned)
        memory_bytes = {node.node: container_bytes(node, needs[node.node]) for node in planned.plan.nodes}
        return cls(planned.plan, memory_bytes, f"strangers-{os.getpid()}/0001", folder.logs, folder.server_log)

    @property
    def pids(self) -> dict[str, int]:
        """The process of each node, as this machine knows it."""
        inspect = self.engines.first.api.inspect_container
        return {node: inspect(container.id)["State"]["Pid"] for node, container in self.containers.items()}


def test_strangers_are_refused_before_a_frame_is_read_and_the_run_goes_on(tmp_path: Path) -> None:
    """Without the secret, with another one, with a worker's identity; raw bytes, half a handshake, half a message."""
    stage = StagedTrial(tmp_path, SCENARIO, launcher=TellingContainers)

    check(stage, stage.run(attack))
