"""Hearts of simulated nodes: built from the plan, and for a server from what is kept of the one before."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from edgebed.core.plan import NodePlan
from edgebed.journal.checkpoints import CheckpointStore
from edgebed.roles.control.admission import NodeInputs
from edgebed.roles.events import Heart
from edgebed.runtimes.node_building import Kept, heart_of
from edgebed.runtimes.simulation.arena import Arena
from edgebed.wire import messages
from edgebed.wire.tensors import Buffer, cut


class Hearts:
    """Builds hearts whose models lie in the arena, where every process sees them."""

    def __init__(self, checkpoints: CheckpointStore, arena: Arena) -> None:
        self.checkpoints = checkpoints
        self.arena = arena

    def inputs(self, node: NodePlan) -> NodeInputs:
        """What a node is given, with the version of the server's first model, which no message has."""
        if node.role != "server":
            return NodeInputs()
        backup = self.checkpoints.backup
        return NodeInputs(version=self.checkpoints.latest.version, backup_step=backup.step if backup else 0)

    def build(self, configure: messages.Configure) -> Heart:
        """Build the heart of a node that was configured."""
        plan = configure.plan

        def snapshot(theta: NDArray[np.float32]) -> Sequence[Buffer]:
            return cut(self.arena.copy(theta).data)

        def kept() -> Kept:
            if plan.shard:
                return Kept(self.checkpoints.initial.copy(), backup=self.checkpoints.backup)
            return Kept(self.checkpoints.latest.theta.copy(), self.checkpoints.latest.state)

        return heart_of(configure, plan, kept, snapshot, self.arena.copy)
