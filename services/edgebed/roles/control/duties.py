"""What the controller takes from which role, and from no other, such as a worker whose own code turns against the run.

Whatever a result or a verdict is made of is owed by one role; what a node measures of itself, any node may say.
"""

import math

from edgebed.core import records
from edgebed.wire.messages import Checkpoint, Keep, Message

CLOCK_S = 60.0
"""By how many seconds a node's clock may be ahead of the controller's, or behind the launch."""
NODES = frozenset({"server", "worker", "store", "modules", "evaluator"})
NOBODY = frozenset[str]()
"""The controller journals these itself."""
SERVER, WORKER, EVALUATOR = (frozenset({role}) for role in ("server", "worker", "evaluator"))
OWED: dict[type[records.Record | Message], frozenset[str]] = {
    records.Trial: NOBODY,
    records.Node: NOBODY,
    records.Fault: NOBODY,
    records.Restored: NOBODY,
    records.Continued: NOBODY,
    records.Ended: NOBODY,
    records.HostLoad: NOBODY,
    records.Seen: NOBODY,
    records.Update: SERVER,
    records.Joined: SERVER,
    records.Left: SERVER,
    records.AtWork: SERVER,
    records.Finished: SERVER,
    records.Resumed: SERVER,
    records.Appended: SERVER,
    records.BackedUp: SERVER,
    Checkpoint: SERVER,
    Keep: SERVER,
    records.Refused: SERVER | {"store"},
    records.Step: WORKER,
    records.Progress: WORKER,
    records.Pushes: WORKER,
    records.Unanswered: WORKER,
    records.Taught: WORKER | {"modules"},
    records.Evaluated: EVALUATOR,
    records.Diverged: WORKER | EVALUATOR,
    records.Clock: NODES,
    records.Dropped: NODES,
    records.Link: NODES,
    records.Messages: NODES,
    records.Note: NODES,
    records.Phases: NODES,
    records.Received: NODES,
    records.Sent: NODES,
    records.ShardPhases: NODES,
    records.Traffic: NODES,
    records.Transfers: NODES,
    records.Unauthenticated: NODES,
    records.Usage: NODES,
}
"""The roles that owe a kind of record, or a message that the controller keeps."""


def is_owed(said: records.Record | Message, role: str) -> bool:
    """Whether a node of this role may say that; messages that change nothing but their sender's state, any may."""
    return role in OWED.get(type(said), NODES)


def is_timely(t: float, now: float) -> bool:
    """Whether a node may report something of `t`, in seconds since the launch, when the controller has `now`."""
    return math.isfinite(t) and -CLOCK_S <= t <= now + CLOCK_S
