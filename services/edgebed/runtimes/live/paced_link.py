"""What a node's shell itself holds of its link, where the kernel does not: rates, latency, and cuts.

    heart ---> leave() ... due(): it has left ---> socket
    socket ---> arrive() ... due(): it is there ---> heart

Messages to several nodes share the uplink fairly, those from several the downlink (emulation/model/flows.py). How busy
the other end is a node does not know: who receives lets a message pass its downlink from the moment on in which its
first byte left. Without a link to hold, a message leaves and arrives at once. While the link is cut nothing does:
emulation/outage.py says what becomes of it.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from edgebed.core.plan import TrainingNode
from edgebed.core.planned.fault import Injection
from edgebed.emulation.model.flows import Course, Flow, Flows
from edgebed.emulation.model.lane import Lane, lane_between
from edgebed.emulation.model.link_model import LinkModel, later
from edgebed.emulation.outage import Outage
from edgebed.roles.events import MessageReceived, Send
from edgebed.runtimes import timestamps
from edgebed.runtimes.live.authentication import node_of
from edgebed.runtimes.live.timers import Timers
from edgebed.runtimes.timestamps import Arriving, Leaving

HAND_OVER_S = 0.0002  # what it takes at least from one shell to another through ZeroMQ's threads
ARRIVING_BYTES_MAX = 64 << 20  # some dozens of large models


class PacedLink:
    """A link held by the shell. Times are those of the trial."""

    def __init__(self, plan: TrainingNode, passage: LinkModel | None = None, *, by_kernel: bool = False) -> None:
        """`passage`: what is held here from the beginning. `by_kernel`: the kernel does what faults do to the link."""
        self.plan = plan
        self.passage = passage
        self.by_kernel = by_kernel
        self.began_s = math.inf
        self.between: dict[str, Lane] = {}
        """Lanes to single nodes, where less is to pass than the link lets through."""
        self.cut_from: set[str] = set()
        """The only other end of the link, where it is the way there that is cut; empty for the link itself."""
        self.outage = Outage()
        self.healed_s = -math.inf
        self.goes_on_s = math.inf
        """When messages pass a link again that is healed."""
        self.has_asked = False
        """Whether the last message was sent, so that an answer may be on its way."""
        self.flows: Flows[Passing] = Flows()
        self.courses: dict[tuple[str, str], Course[Passing]] = {}
        """What passes, and waits for that, by direction and peer."""
        self.model_s = 0.0
        """Latest time that something passed."""
        self.sent: Flow[Passing] | None = None
        """The message sent last, once it has come to the link."""
        self.on_way: Timers[_Entering | Leaving | Arriving] = Timers()
        self.stalled: list[Send] = []
        """Messages sent while the link is cut."""
        self.arriving_bytes = 0

    @property
    def next_s(self) -> float:
        """When the next message has left, or arrived; infinity if none will."""
        if self.outage.is_cut:
            return self.goes_on_s
        return min(self.on_way.next_s, self.flows.next_s - HAND_OVER_S)

    @property
    def is_closed(self) -> bool:
        """Whether peers have to wait with what they send: nothing passes, or too much waits already."""
        return self.outage.is_cut or self.arriving_bytes >= ARRIVING_BYTES_MAX

    @property
    def leaving_s(self) -> tuple[float, float]:
        """When the first and the last byte of the message sent last leave, as far as is known now."""
        return (self.sent.first_s, self.sent.end_s) if self.sent else (math.inf, math.inf)

    def began(self, began_s: float) -> None:
        """Note when training began: the link's changes count from there."""
        self.began_s = began_s
        if self.passage:
            self.passage.began(began_s)
            self._change(began_s)

    def leave(self, effect: Send, now: float) -> bool:
        """Send a message; return whether it leaves at once."""
        self.sent, self.has_asked = None, True
        if self.outage.is_cut:
            self.outage.stall(now)
            self.stalled.append(effect)
            return False
        if self.passage is None:
            return True
        entering = _Entering(effect, now, self.passage.leaves_s(now))
        if entering.enters_s > now:
            self.on_way.add(entering.enters_s - HAND_OVER_S, entering)
        else:
            self._enter(entering)
        return False

    def arrive(self, event: MessageReceived, now: float) -> bool:
        """Take a message from the network; return whether it arrives at once."""
        self.has_asked = False
        if self.passage is None:
            return True
        first_s = timestamps.sent_s(event.message)
        if 0.0 <= first_s < self.healed_s:
            first_s = self.healed_s  # the message was sent while nothing passed
        self.arriving_bytes += event.bytes
        self._add(("down", event.peer), event.bytes, event, now, first_s)
        return False

    def due(self, now: Callable[[], float]) -> Iterator[Leaving | Arriving]:
        """Messages that have left or arrived by the clock `now`, which runs on meanwhile."""
        if self.outage.is_cut:
            if now() < self.goes_on_s:
                return
            self._resume(now())
        self._go_on(now() + HAND_OVER_S)
        for passed in self.on_way.due(now):
            if isinstance(passed, _Entering):
                self._enter(passed)
                continue
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
                if not self.by_kernel and not self.passage.limits:  # the link may have been planned without any
                    self.courses.clear()
                if not self.by_kernel:
                    self.passage.hold(limits=True, delays=True)
                self._go_on(now)
                self.passage.inject(now, injection)
                if injection.peer and not self.by_kernel:
                    self._narrow(injection, max(now, self.model_s))
                self._change(now)
        elif injection.action == "cut" and not self.by_kernel:
            self.cut_from.add(injection.peer)
            self._cut(now)
        elif injection.action == "heal":
            self.cut_from.discard(injection.peer)
            return not self.cut_from and self._heal(now)
        return False

    def lose(self, now: float) -> None:
        """Drop all that is on its way: the connection broke."""
        self._stop(now)
        self.courses.clear()
        self.sent = None
        self.on_way.take()
        self.stalled.clear()
        self.arriving_bytes = 0
        if self.passage:
            self.passage.clear(now)

    def _cut(self, now: float) -> None:
        self.goes_on_s = math.inf
        if self.outage.is_cut:
            return
        self._go_on(now)
        self._stop(now)
        is_passing = self.on_way.next_s < math.inf or any(each.flows for each in self.courses.values())
        self.outage.cut(now, stalls=is_passing or self.has_asked)

    def _narrow(self, injection: Injection, now: float) -> None:
        """Let less pass to a node, or as much as the link lets through."""
        self.between.pop(injection.peer, None)
        if injection.change:
            self.between[injection.peer] = lane_between(injection.change.uplink_bit_s)
        for key, course in self.courses.items():
            if _node(key[1]) == injection.peer:
                if course.flows and not self.outage.is_cut:
                    self.flows.leave(course.flows[0], now)
                course.reroute(*self._lanes(key))
                if course.flows and not self.outage.is_cut:
                    self.flows.join(course.flows[0], now)

    def _stop(self, now: float) -> None:
        """Let nothing pass."""
        for course in self.courses.values():
            if course.flows:
                self.flows.leave(course.flows[0], max(now, self.model_s))

    def _heal(self, now: float) -> bool:
        if not self.outage.is_cut:
            return False
        self.goes_on_s = self.outage.goes_on_s(now)
        if self.goes_on_s == math.inf:
            self.healed_s = now
            self.outage.end(now)
            self.lose(now)
            return True
        if self.goes_on_s <= now:
            self._resume(now)
        return False

    def _resume(self, now: float) -> None:
        """Let messages pass again."""
        since_s, later_s = self.outage.since_s, self.outage.end(now)
        assert since_s is not None
        self.healed_s, self.goes_on_s = now, math.inf
        for due_s, passing in self.on_way.take():
            self.on_way.add(later(due_s, since_s, later_s), passing)
        if self.passage:
            self.passage.stand_still(since_s, later_s)
        for course in self.courses.values():
            if course.flows:
                self.flows.join(course.flows[0], max(now, self.model_s))
        self._change(now)
        stalled, self.stalled = self.stalled, []
        for effect in stalled:
            if self.leave(effect, now):
                self.on_way.add(now, Leaving(effect, now, now, now))

    # --- what passes, in the time of the model: never before what it has seen already ---------------------------

    def _enter(self, entering: "_Entering") -> None:
        size = timestamps.payload_bytes(entering.effect)
        self.sent = self._add(("up", entering.effect.to), size, entering, entering.enters_s)

    def _add(
        self, key: tuple[str, str], size: int, passing: "Passing", now: float, since_s: float = math.inf
    ) -> "Flow[Passing]":
        """Let a message pass behind those of its connection; `since_s`: when its first byte came, if that is known."""
        self._go_on(now)
        at_s = self.model_s = max(now, self.model_s)
        flow = self._course(key).add(size, passing)
        if flow is flow.course.flows[0]:
            self._begin(flow, at_s, since_s if 0.0 <= since_s <= now else at_s)
            self.flows.settle(at_s)
        return flow

    def _begin(self, flow: "Flow[Passing] | None", at_s: float, since_s: float = math.inf) -> None:
        while flow and self.flows.begin(flow, at_s, since_s):
            flow, since_s = self._pass(flow), math.inf

    def _go_on(self, until_s: float) -> None:
        """Let pass what passes until a time, each thing at its own."""
        while (at_s := self.flows.next_s) <= until_s:
            for flow in self.flows.over(at_s):
                self._begin(self._pass(flow), at_s)
            self.flows.settle(at_s)
            self.model_s = at_s

    def _pass(self, flow: "Flow[Passing]") -> "Flow[Passing] | None":
        """Note that a message has passed; return the one behind it."""
        passing, waiting = flow.subject, flow.course.flows
        assert self.passage is not None
        waiting.popleft()
        if isinstance(passing, _Entering):
            self.on_way.add(
                flow.end_s - HAND_OVER_S, Leaving(passing.effect, flow.first_s, passing.asked_s, flow.end_s)
            )
        else:
            self.on_way.add(self.passage.arrives_s(flow.end_s), Arriving(passing))
        return waiting[0] if waiting else None

    def _course(self, key: tuple[str, str]) -> "Course[Passing]":
        if key not in self.courses:
            self.courses[key] = Course(*self._lanes(key))
        return self.courses[key]

    def _lanes(self, key: tuple[str, str]) -> tuple[tuple[Lane, ...], tuple[Lane, ...]]:
        """Return the lanes of what passes, and of its acknowledgements; what is between two is held by who sends."""
        assert self.passage is not None
        between = self.between.get(_node(key[1]))
        up, down = self.passage.lanes[:1], self.passage.lanes[1:]
        up = (between, *up) if between else up
        return (up, down) if key[0] == "up" else (down, up)

    def _change(self, now: float) -> None:
        """Compute rates anew, since the link is another one."""
        if self.passage:
            self.flows.change(self.passage.lanes)
        self.flows.settle(max(now, self.model_s))


def _node(peer: str) -> str:
    """Return the node that a peer is, by its name or the identity of its connection."""
    return node_of(peer) or peer


class _Entering(NamedTuple):
    """A message that is sent, until it has left."""

    effect: Send
    asked_s: float
    enters_s: float
    """When its first byte may leave: after the sender's latency."""


Passing = _Entering | MessageReceived
