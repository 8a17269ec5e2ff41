"""What the controller knows of each node of a trial, and tells it; the states that a node goes through.

expected --> started --> joined --> ready --> running <--> unresponsive
^           |           |          |          |              |
|           +-----------+----------+----------+--------------+--> died, stopped
+-- launched again -- missing, died, stopped
"""

import enum
from collections.abc import Mapping
from typing import cast

import msgspec

from edgebed.core.plan import Plan, TrainingNode
from edgebed.core.records import Node
from edgebed.roles.events import Effect, Journal, MessageReceived, Send
from edgebed.wire import messages


class State(enum.StrEnum):
    """How a node stands; the values are those of the journal's record `node`."""

    EXPECTED = "expected"
    """The node is to be launched, or has been."""
    STARTED = "started"
    """Its process or container runs."""
    JOINED = "joined"
    """The node has said hello, and builds its heart and work."""
    READY = "ready"
    """The node waits for the training to start."""
    RUNNING = "running"
    UNRESPONSIVE = "unresponsive"
    """The node missed two checks."""
    MISSING = "missing"
    """The node was not ready in time."""
    DIED = "died"
    STOPPED = "stopped"
    """The node ended in order."""


ENDS = frozenset((State.DIED, State.STOPPED))
TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.EXPECTED: ENDS | {State.STARTED, State.JOINED, State.MISSING},
    State.STARTED: ENDS | {State.JOINED, State.READY, State.MISSING},
    State.JOINED: ENDS | {State.READY, State.MISSING},
    State.READY: ENDS | {State.RUNNING},
    State.RUNNING: ENDS | {State.UNRESPONSIVE},
    State.UNRESPONSIVE: ENDS | {State.RUNNING},
    State.MISSING: ENDS | {State.EXPECTED, State.JOINED, State.READY},
    State.DIED: frozenset((State.EXPECTED, State.JOINED)),
    State.STOPPED: frozenset((State.EXPECTED, State.JOINED)),
}
"""State -> those that may follow it; a node that is gone comes back by a launch, or by its own hello. A program of the
user's says no hello: once it is ready that is seen."""

PRESENT = frozenset((State.JOINED, State.READY, State.RUNNING, State.UNRESPONSIVE))
"""The states of a node that can be talked to."""
COMING = frozenset((State.EXPECTED, State.STARTED, State.JOINED))
"""The states of a node that is waited for before training starts."""
GONE = ENDS | {State.MISSING}
BUILDING = (State.JOINED, State.MISSING)
"""The states of a node that may become ready."""


class Member(msgspec.Struct):
    """A node, whichever of its incarnations it is in."""

    plan: TrainingNode
    state: State = State.EXPECTED
    peer: str = ""
    """Connection to it; empty: it has none, as a program of the user's never has."""
    incarnation: int = 0
    ready: messages.Ready | None = None
    begins_at: int = 0
    """Version, or step, of the model or backup that it was given."""
    missed: int = 0
    """Checks in a row without a heartbeat."""

    def become(self, state: State) -> None:
        """Change its state; AssertionError where that does not follow, which is a mistake of the controller's."""
        if state not in TRANSITIONS[self.state]:
            raise AssertionError(f"{self.plan.role} {self.plan.node} cannot become {state}: it is {self.state}")
        self.state = state

    @property
    def health(self) -> str:
        """`coming`, `good`, `late` where it missed the last check, `failed` after two or when it is gone, `over`."""
        if self.state is State.STOPPED:
            return "over"
        if self.state in GONE or self.state is State.UNRESPONSIVE:
            return "failed"
        if self.state is not State.RUNNING:
            return "coming"
        return "late" if self.missed else "good"

    @property
    def is_reached(self) -> bool:
        """Whether other nodes can connect to this one."""
        return self.ready is not None and self.state in (State.READY, State.RUNNING, State.UNRESPONSIVE)

    @property
    def is_there(self) -> bool:
        """Whether it has a process or container."""
        return self.state in PRESENT or self.state is State.STARTED


class Members(dict[str, Member]):
    """All nodes of a trial by name."""

    def __init__(self, plan: Plan, incarnations: Mapping[str, int] | None = None) -> None:
        """`incarnations` of a resumed trial's nodes: the highest that each had."""
        lives = incarnations or {}
        nodes = cast("tuple[TrainingNode, ...]", plan.nodes)  # or programs, of which only what all nodes have is asked
        super().__init__({node.node: Member(node, incarnation=lives.get(node.node, 0)) for node in nodes})

    def knows(self, event: MessageReceived) -> bool:
        """Whether a message comes from a node of this trial, in its present incarnation."""
        member = self.get(event.message.sender)
        return member is not None and member.peer == event.peer

    def become(self, name: str, state: State, reason: str = "", pid: int = 0) -> list[Effect]:
        """Change a node's state, and journal that it has changed."""
        member = self[name]
        if member.state == state:
            return []
        member.become(state)
        record = Node(name=name, state=state.value, incarnation=member.incarnation, pid=pid, reason=reason)
        return [Journal(record)]

    def send(self, name: str, message: messages.ManagementMessage) -> list[Effect]:
        """Send to a node that is there; do nothing for others."""
        member = self[name]
        return [Send(member.peer, message)] if member.state in PRESENT and member.peer else []
