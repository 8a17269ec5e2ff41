"""A node's passage to the data network where no kernel holds it: rates, latency and jitter as a pure model.

    sender's heart -> latency -> first byte … last byte, through uplink and downlink at once -> latency -> receiver's

The simulation asks it in virtual time, the live shell in real time. Each direction is a lane (lane.py): a token bucket
like the kernel's tbf, which what passes at a time shares as TCP would (flows.py, fair_share.py). A message is as fast
as the slower of two links lets it be, at each moment. Acknowledgements of what passes one way take their share of the
other, and keep the message waiting where that is very slow.

What it simplifies: rates are exact, as if TCP's window were open from the first byte on; nothing is lost.

Times are seconds of the trial, sizes are payload of whole messages; a rate is what the wire carries (see framing.py).
"""

import math

from edgebed.core import chance
from edgebed.core.plan import TrainingNode
from edgebed.core.planned.fault import Injection
from edgebed.emulation.conditions import EffectiveLink
from edgebed.emulation.model.lane import Lane, LinkClock
from edgebed.emulation.readback import Delay, Mechanism


class DelayLine:
    """One direction of a link's latency: a message that enters comes out later, in the same order."""

    def __init__(self, clock: LinkClock, seed: int, direction: str, node: str) -> None:
        self.clock = clock
        self.seed = seed
        self.purpose = f"jitter {direction}"
        self.node = node
        self.count = 0
        self.last_s = -math.inf

    def out_s(self, now_s: float) -> float:
        """Return when what enters now comes out; the k-th message's jitter depends on nothing but k."""
        conditions = self.clock.at(now_s)
        delay_s = conditions.latency_s
        if conditions.jitter_s:
            draw = chance.uniform(self.seed, self.purpose, self.node, self.count)
            delay_s += conditions.jitter_s * (2.0 * draw - 1.0)
        self.count += 1
        self.last_s = max(self.last_s, now_s + max(0.0, delay_s))
        return self.last_s


class LinkModel:
    """A node's link in both directions, as far as they are held here."""

    def __init__(self, plan: TrainingNode, *, limits: bool, delays: bool) -> None:
        """`limits`: the link's rates are held here; `delays`: its latency is."""
        self.plan = plan
        self.clock = LinkClock(EffectiveLink(plan.link))
        self.uplink = Lane(self.clock, lambda conditions: conditions.uplink_bit_s)
        self.downlink = Lane(self.clock, lambda conditions: conditions.downlink_bit_s)
        self.limits = self.delays = False
        self.outward = DelayLine(self.clock, self.plan.seed, "up", self.plan.node)
        self.inward = DelayLine(self.clock, self.plan.seed, "down", self.plan.node)
        self.hold(limits=limits, delays=delays)

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """Lanes of both directions, if their rates are held here."""
        return (self.uplink, self.downlink) if self.limits else ()

    def hold(self, *, limits: bool, delays: bool) -> None:
        """Hold the rates, or the latency, as well from now on."""
        self.limits = self.limits or limits
        self.delays = self.delays or delays

    def began(self, began_s: float) -> None:
        """Note that training began at `began_s`: the link's changes count from there."""
        self.clock.began_s = began_s

    def inject(self, now_s: float, injection: Injection) -> None:
        """Change rates or latency from now on; whoever has its lanes tells the flows (`Flows.change`)."""
        self.clock.effective.inject(now_s - self.clock.began_s, injection)

    def stand_still(self, from_s: float, later_s: float) -> None:
        """Note that the link was cut from `from_s` on for `later_s`: what was on its way comes so much later."""
        for line in (self.outward, self.inward):
            line.last_s = later(line.last_s, from_s, later_s)

    def clear(self, now_s: float) -> None:
        """Drop all that is on its way, which makes room."""
        for line in (self.outward, self.inward):
            line.last_s = min(line.last_s, now_s)

    def leaves_s(self, now_s: float) -> float:
        """Return when a message that is sent now reaches the uplink."""
        return self.outward.out_s(now_s) if self.delays else now_s

    def arrives_s(self, now_s: float) -> float:
        """Return when the heart has a message that has passed the downlink now."""
        return self.inward.out_s(now_s) if self.delays else now_s

    def begins_s(self, first_s: float) -> float:
        """Return when the first byte of a message is here that left its sender at `first_s`."""
        return first_s + (self.clock.at(first_s).latency_s if self.delays else 0.0)


def later(due_s: float, from_s: float, later_s: float) -> float:
    """Return when something is due that was due at `due_s`, where time stood still from `from_s` on for `later_s`."""
    return due_s + later_s if due_s > from_s else due_s


def link_model_of(plan: TrainingNode, mechanism: Mechanism, delay: Delay) -> LinkModel | None:
    """Return what the transport itself has to hold of a node's link; None where messages never wait for its rates."""
    limits = mechanism == "model" and (plan.link.limited or plan.changeable)
    delays = delay == "line" and (plan.link.delayed or plan.changeable)
    return LinkModel(plan, limits=limits, delays=delays) if limits or delays else None
