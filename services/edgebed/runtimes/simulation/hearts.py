"""Hearts of simulated nodes: built from the plan, and for a server from what is kept of the one before."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from edgebed.core.actions import ENDS_LIFE, FREEZES
from edgebed.core.plan import TrainingNode, TrainingPlan
from edgebed.journal.checkpoints import CheckpointStore
from edgebed.roles.control.admission import NodeInputs
from edgebed.roles.events import Append, Heart
from edgebed.roles.server.parameter_server import ParameterServer
from edgebed.runtimes.log_file import FolderInMemory
from edgebed.runtimes.node_building import ServerStart, heart_of
from edgebed.runtimes.server_log import ServerLog
from edgebed.runtimes.simulation.arena import Arena
from edgebed.wire import messages
from edgebed.wire.messages import Tensor
from edgebed.wire.tensors import Buffer, cut_by


class Hearts:
    """Builds hearts whose models lie in the arena, where every process sees them."""

    def __init__(self, plan: TrainingPlan, checkpoints: CheckpointStore, arena: Arena) -> None:
        self.checkpoints = checkpoints
        self.arena = arena
        self.log_folder = FolderInMemory() if _may_lose_server(plan) else None
        """Folder of the server's log, which outlasts the server; None: nothing ends it before the trial."""
        self.log: ServerLog | None = None

    def inputs(self, node: TrainingNode) -> NodeInputs:
        """What a node is given, with the version of the server's first model, which no message has."""
        if node.role != "server":
            return NodeInputs()
        backup = self.checkpoints.backup
        return NodeInputs(version=self.checkpoints.latest.version, backup_step=backup.step if backup else 0)

    def go_on(self, heart: Heart, ready: messages.Ready, now: float) -> messages.Ready:
        """Let a server go on from its log, which has all that the journal has; return what it then says."""
        if self.log_folder is None or not isinstance(heart, ParameterServer):
            return ready
        self.log = ServerLog(heart, self.log_folder)
        self.log.begin(now)
        self.log.untold.clear()
        return self.log.tell(ready)

    def append(self, entry: Append) -> None:
        """Append an entry of a server to its log, if it has one."""
        if self.log:
            self.log.take(entry)

    def turn(self, heart: Heart) -> None:
        """Let the server's log begin anew if it has grown too large."""
        if self.log and self.log.heart is heart:
            self.log.turn()

    def build(self, configure: messages.Configure) -> Heart:
        """Build the heart of a node that was configured."""
        plan = configure.plan

        def snapshot(row: NDArray[np.float32], tensors: Sequence[Tensor]) -> Sequence[Buffer]:
            return cut_by(tensors, self.arena.copy(row).data.cast("B"))

        def server_start() -> ServerStart:
            if plan.shard:
                return ServerStart(self.checkpoints.initial.copy(), backup=self.checkpoints.backup)
            return ServerStart(self.checkpoints.latest.theta.copy(), self.checkpoints.latest.state)

        return heart_of(configure, plan, server_start, snapshot, self.arena.copy)


def _may_lose_server(plan: TrainingPlan) -> bool:
    """Whether a fault may end a server that keeps a log; one that is frozen is ended by a policy of restarting."""
    server = plan.server
    ending = ENDS_LIFE | FREEZES if plan.on_failure == "restart" else ENDS_LIFE
    ends = any(each.node == server.node and each.action in ending for each in plan.injections())
    return ends and server.durability != "none"
