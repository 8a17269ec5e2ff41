"""Holds the links of nodes while a trial runs, and changes them when their time has come, or a fault asks for it.

As a program it holds the link of the network namespace that it is started in. Input and answers are JSON lines:

    <-- {"subnet": "172.18.0.0/16", "netem": false, "link": {"uplink_bit_s": 10000000, …}}
    --> {"interface": "eth1"}               the kernel holds the link as it is at the beginning
    <-- {"clock": {"offset_s": -1000.1, …}} the controller's monotonic clock is another, on another host: so it differs
    <-- {"began": 81234.5}                  training began then, on the controller's monotonic clock
    <-- {"change": {"node": "edge-0", "action": "cut"}, "number": 7}
    --> {"done": 7}                         and a "problem" if the kernel refuses that
    --> {"problem": "this kernel has …"}    instead of any answer, or later; exit code 3

A link that never changes needs nobody who changes it: after the first answer the program ends, unless it is asked to
stay. Otherwise it ends when its standard input closes. Asked `--probe`, it says `{"netem": false}`: what this kernel
can do.
"""

import math
import os
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

import msgspec
from pyroute2 import IPRoute

from edgebed.core.errors import EdgebedError, InfrastructureError
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkPlan
from edgebed.emulation.conditions import EffectiveLink
from edgebed.emulation.netlink import LinkReader
from edgebed.emulation.orders import ClockLine, HelperCommand, HelperReply, HelperSetup, Lines
from edgebed.emulation.readback import deviation
from edgebed.emulation.resources import own_address
from edgebed.emulation.tc import Features, Shaper, probe_here


class Shaping:
    """Links by name, and what is asked of them; changed by `inject`, and by `tick`, to be called at `due_s`."""

    def __init__(self, make: Callable[[str], Shaper]) -> None:
        """`make` gives the shaper of a link by its name; it is asked for one only when there is something to hold."""
        self.make = make
        self.courses: dict[str, EffectiveLink] = {}
        self.shapers: dict[str, Shaper] = {}
        self.addresses: dict[str, str] = {}
        """Addresses of nodes by their names, as far as they are needed."""
        self.next_s: dict[str, float] = {}
        """Times of the links' next changes, in seconds of the controller's monotonic clock; only of links that ever
        change."""
        self.began_s = math.inf
        self.clock = ClockLine()

    def add(self, name: str, link: LinkPlan, injected: Iterable[Injection] = (), *, changeable: bool = False) -> None:
        """Hold a link from now on, as it is when training begins; be prepared where faults will change it.

        Raises InfrastructureError where that fails.
        """
        effective = self.courses[name] = EffectiveLink(link)
        for injection in injected:
            effective.inject(-math.inf, injection)
        if link.shaped or effective.injected_s:
            self._hold(name, 0.0)
        if changeable:
            self._shaper(name).prepare()

    def began(self, monotonic_s: float) -> None:
        """Note that training began: from here on links follow their timelines."""
        self.began_s = monotonic_s
        self.next_s = {name: monotonic_s for name, effective in self.courses.items() if effective.times_s}

    def follow(self, clock: ClockLine) -> None:
        """Note how the controller's clock is had from one's own; what was done at another time is looked at anew."""
        self.clock = clock
        if self.began_s < math.inf:
            self.began(self.began_s)

    def due_s(self) -> float:
        """Return when something is to be changed next, by one's own monotonic clock; infinity if nothing is."""
        own_s = time.monotonic()
        return min(self.next_s.values(), default=math.inf) - (self.clock.controller_s(own_s) - own_s)

    def tick(self) -> None:
        """Make the changes that are due."""
        now_s = self._now_s()
        for name in [name for name, due_s in self.next_s.items() if due_s <= now_s]:
            time_s = now_s - self.began_s
            self._hold(name, time_s)
            self.next_s[name] = self.began_s + self.courses[name].next_change_s(time_s)
            if self.next_s[name] == math.inf:
                del self.next_s[name]

    def inject(self, injection: Injection) -> None:
        """Change a node's link now, or both that it is about, of those held here.

        Raises InfrastructureError where the kernel refuses it: then a link is as before.
        """
        ends = [own for name in self.courses if (own := injection.at(name))]
        if not ends:
            raise InfrastructureError(f"{injection.node} has no link to the data network")
        for own in ends:
            self._inject(own)

    def _inject(self, injection: Injection) -> None:
        time_s = self._now_s() - self.began_s
        effective = self.courses[injection.node]
        before = effective.overrides[-1]
        effective.inject(time_s, injection)
        hold = self._hold_between if injection.peer else self._hold
        try:
            hold(injection.node, time_s)
        except InfrastructureError:
            effective.take_back(before)  # else every later change would be refused with it
            with suppress(InfrastructureError):
                hold(injection.node, time_s)
            raise

    def close(self, name: str) -> None:
        """Let go of the shaper of a link, which stays as it is; another one is made when it is needed."""
        if shaper := self.shapers.pop(name, None):
            shaper.ip.close()

    def obey(self, line: bytes) -> HelperReply | None:
        """Do what a line says; return the answer to it, if any. See orders.py."""
        told = msgspec.json.decode(line, type=HelperCommand)
        if told.clock is not None:
            self.follow(told.clock)
        if told.began is not None:
            self.began(told.began)
        self.addresses.update(told.addresses)
        if told.change is None:
            return None
        try:
            self.inject(told.change)
        except InfrastructureError as error:
            return HelperReply(done=told.number, problem=str(error))
        return HelperReply(done=told.number)

    def _now_s(self) -> float:
        """The controller's monotonic clock."""
        return self.clock.controller_s(time.monotonic())

    def _hold(self, name: str, time_s: float) -> None:
        self._shaper(name).apply(self.courses[name].at(time_s))

    def _hold_between(self, name: str, time_s: float) -> None:
        state, shaper = self.courses[name].at(time_s), self._shaper(name)
        if unknown := [each for each in (*state.apart, *dict(state.narrowed)) if each not in self.addresses]:
            raise InfrastructureError(f"{', '.join(unknown)} has no address yet")
        shaper.bar([self.addresses[each] for each in state.apart])
        shaper.narrow({self.addresses[each]: rate_bit_s for each, rate_bit_s in state.narrowed})

    def _shaper(self, name: str) -> Shaper:
        if name not in self.shapers:
            self.shapers[name] = self.make(name)
        return self.shapers[name]


def main() -> int:
    """Hold the link that standard input asks for; return the exit code."""
    try:
        if sys.argv[1:] == ["--probe"]:
            _say(HelperReply(netem=probe_here().netem))
        else:
            _serve()
    except EdgebedError as error:
        _say(HelperReply(problem=str(error)))
        return error.exit_code
    return 0


def _serve() -> None:
    lines = Lines(0)
    order = msgspec.json.decode(lines.read(math.inf) or b"", type=HelperSetup)
    reader = LinkReader(own_address(order.subnet))
    shaping = Shaping(lambda _: Shaper(IPRoute(), reader.interface, Features(order.netem)))
    shaping.add(order.node, order.link, order.injected, changeable=order.stays)
    problem = deviation(shaping.courses[order.node].at(0.0), *reader.queues(), netem=order.netem, mtu=reader.mtu)
    if problem:
        raise InfrastructureError(f"the link was not set as asked: {problem}")
    _say(HelperReply(interface=reader.interface))
    while order.link.changes or order.stays:
        line = lines.read(shaping.due_s())
        if line == b"":
            return
        if line and (answer := shaping.obey(line)):
            _say(answer)
        shaping.tick()


def _say(answer: HelperReply) -> None:
    os.write(1, msgspec.json.encode(answer) + b"\n")


if __name__ == "__main__":
    sys.exit(main())
