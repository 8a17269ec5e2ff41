"""The end of a trial: every node is told to stop, may linger for Prometheus, and says goodbye."""

from collections.abc import Callable

from edgebed.core.records import Ended
from edgebed.roles.control.director import Director
from edgebed.roles.control.fault_text import UNSTOPPED
from edgebed.roles.control.members import PRESENT, Members, State
from edgebed.roles.control.name import NAME
from edgebed.roles.events import Effect, EndNode, Journal, Wake
from edgebed.wire import messages

GRACE_S = 5.0  # for nodes to say goodbye, after they may have lingered; one that was frozen or killed never does
GRACE_A_NODE_S = 0.02  # hundreds of nodes on two cores cannot all have said it in five seconds
BY_USER = "the user ended the run"
"""Why a trial was interrupted."""


class Ending:
    """Stops the nodes; knows how the trial ended and why, empty before that."""

    def __init__(self, members: Members, director: Director, linger_s: Callable[[], float]) -> None:
        """`linger_s` is asked for how long a node may have to wait until Prometheus has read its last metrics."""
        self.members = members
        self.director = director
        self.linger_s = linger_s
        self.grace_s = GRACE_S
        self.outcome = ""
        self.reason = ""

    def begin(self, outcome: str, reason: str, now: float) -> list[Effect]:
        """Tell every node to end; the server hands its model over before."""
        self.outcome, self.reason = outcome, reason
        finish = self.members.send("server", messages.Finish(sender=NAME, reason=reason))
        closed = self.director.close()
        return [*finish, *closed, *self.stop_all(self.linger_s() if outcome == "completed" else 0.0, now)]

    def stop_all(self, linger_s: float, now: float) -> list[Effect]:
        """Tell every node to end, within `linger_s` and the grace for goodbyes."""
        stop = messages.Stop(sender=NAME, reason=self.reason, linger_s=linger_s)
        stops = [effect for name in self.members for effect in self.members.send(name, stop)]
        if not self.is_awaited:
            return stops
        self.grace_s = linger_s + max(GRACE_S, GRACE_A_NODE_S * len(self.members))
        return [*stops, Wake(now + self.grace_s, "grace")]

    @property
    def is_awaited(self) -> bool:
        """Whether somebody can still say goodbye."""
        return any(
            member.state in PRESENT and not self.director.is_frozen(name) for name, member in self.members.items()
        )

    def close(self) -> list[Effect]:
        """Give up whoever has not said goodbye, and end the trial."""
        late: list[Effect] = []
        for name, member in self.members.items():
            if member.state in PRESENT and self.director.is_frozen(name):
                late += self.members.become(name, State.STOPPED, "frozen until the end")
            elif member.state in PRESENT:
                late += self.members.become(name, State.DIED, f"{UNSTOPPED} within {self.grace_s:g} s")
        return [*late, Journal(Ended(outcome=self.outcome, reason=self.reason)), EndNode(self.reason)]
