"""What a node's shell itself holds of its link, where the kernel does not: rates, latency, and cuts.

    heart ---> leave() ... due(): it has left ---> socket
    socket ---> arrive() ... due(): it is there ---> heart

Without a link to hold, a message leaves and arrives at once. While the link is cut nothing does: emulation/outage.py
says what becomes of it.
"""

import math
from collections.abc import Callable, Iterator

from edgebed.core.plan import Injection, NodePlan
from edgebed.emulation.link_model import LinkModel, later
from edgebed.emulation.outage import Outage
from edgebed.roles.events import MessageReceived, Send
from edgebed.runtimes import timestamps
from edgebed.runtimes.live.timers import Timers
from edgebed.runtimes.timestamps import Arriving, Leaving

HAND_OVER_S = 0.0002  # what it takes at least from one shell to another through ZeroMQ's threads
ARRIVING_BYTES_MAX = 64 << 20  # some dozens of large models


class PacedLink:
    """A link held by the shell. Times are those of the trial."""

    def __init__(self, plan: NodePlan, passage: LinkModel | None = None, *, by_kernel: bool = False) -> None:
        """`passage`: what is held here from the beginning. `by_kernel`: the kernel does what faults do to the link."""
        self.plan = plan
        self.passage = passage
        self.by_kernel = by_kernel
        self.began_s = math.inf
        self.outage = Outage()
        self.healed_s = -math.inf
        self.on_way: Timers[Leaving | Arriving] = Timers()
        self.stalled: list[Send] = []
        """Messages sent while the link is cut."""
        self.arriving_bytes = 0
        self.leaving_s = (math.inf, math.inf)
        """When the first and the last byte of the message sent last leave, as far as is known."""

    @property
    def next_s(self) -> float:
        """When the next message has left, or arrived; infinity if none will."""
        return math.inf if self.outage.is_cut else self.on_way.next_s

    @property
    def is_closed(self) -> bool:
        """Whether peers have to wait with what they send: nothing passes, or too much waits already."""
        return self.outage.is_cut or self.arriving_bytes >= ARRIVING_BYTES_MAX

    def began(self, began_s: float) -> None:
        """Note when training began: the link's changes count from there."""
        self.began_s = began_s
        if self.passage:
            self.passage.began(began_s)

    def leave(self, effect: Send, now: float) -> bool:
        """Send a message; return whether it leaves at once."""
        if self.outage.is_cut:
            self.stalled.append(effect)
            self.leaving_s = (math.inf, math.inf)
            return False
        if self.passage is None:
            return True
        self.leaving_s = first_s, gone_s = self.passage.leave(now, timestamps.payload_bytes(effect))
        self.on_way.add(gone_s - HAND_OVER_S, Leaving(effect, first_s, now, gone_s))
        return False

    def arrive(self, event: MessageReceived, now: float) -> bool:
        """Take a message from the network; return whether it arrives at once."""
        if self.passage is None:
            return True
        first_s = timestamps.sent_s(event.message)
        if 0.0 <= first_s < self.healed_s:
            first_s = self.healed_s  # the message was sent while nothing passed
        self.on_way.add(self.passage.arrive(first_s, now, event.bytes), Arriving(event))
        self.arriving_bytes += event.bytes
        return False

    def due(self, now: Callable[[], float]) -> Iterator[Leaving | Arriving]:
        """Messages that have left or arrived by the clock `now`, which runs on meanwhile."""
        if self.outage.is_cut:
            return
        for passed in self.on_way.due(now):
            if isinstance(passed, Arriving):
                self.arriving_bytes -= passed.event.bytes
            yield passed

    def inject(self, injection: Injection, now: float) -> bool:
        """Do what the kernel does not for a fault of the link; return whether the connection is dead and has to end."""
        if injection.action == "link":
            if self.passage is None and not self.by_kernel:
                self.passage = LinkModel(self.plan, limits=True, delays=True)
                self.passage.began(self.began_s)
            if self.passage:
                if not self.by_kernel:
                    self.passage.hold(limits=True, delays=True)  # the link may have been planned without limits
                self.passage.inject(now, injection)
        elif injection.action == "cut" and not self.by_kernel:
            self.outage.cut(now)
        elif injection.action == "heal":
            return self._heal(now)
        return False

    def lose(self, now: float) -> None:
        """Drop all that is on its way: the connection broke."""
        self.on_way.take()
        self.stalled.clear()
        self.arriving_bytes = 0
        if self.passage:
            self.passage.clear(now)

    def _heal(self, now: float) -> bool:
        since_s = self.outage.since_s
        if since_s is None:
            return False
        self.healed_s = now
        later_s = self.outage.heal(now)
        if later_s is None:
            self.lose(now)
            return True
        for due_s, passing in self.on_way.take():
            self.on_way.add(later(due_s, since_s, later_s), passing)
        if self.passage:
            self.passage.stand_still(since_s, later_s)
        stalled, self.stalled = self.stalled, []
        for effect in stalled:
            if self.leave(effect, now):
                self.on_way.add(now, Leaving(effect, now, now, now))
        return False
