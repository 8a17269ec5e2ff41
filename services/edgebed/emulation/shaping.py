"""Holds the links of nodes while a trial runs, and changes them when their time has come.

As a program it holds the link of the network namespace that it is started in. It is told, and answers, in JSON lines:

    <-- {"subnet": "172.18.0.0/16", "netem": false, "link": {"uplink_bit_s": 10000000, …}}
    --> {"interface": "eth1"}               the kernel holds the link as it is at the beginning
    <-- {"began": 81234.5}                  training began then, on the machine's monotonic clock
    --> {"problem": "this kernel has …"}    instead of any answer, or later; exit code 3

A link that never changes needs nobody who changes it: after the first answer the program ends. Otherwise it ends when
its standard input closes. Asked `--probe`, it says `{"netem": false}`: what this kernel can do.
"""

import math
import os
import select
import sys
import time

import msgspec
from pyroute2 import IPRoute

from edgebed.emulation.conditions import Timeline
from edgebed.emulation.netlink import LinkReader
from edgebed.emulation.orders import Answer, Began, Order
from edgebed.emulation.readback import deviation
from edgebed.emulation.tc import Features, Shaper, probe_here
from edgebed.errors import EdgebedError, InfrastructureError
from edgebed.observe.resources import own_address
from edgebed.scenario.plan import Link

WAIT_S_MAX = 3600.0  # then it looks again; select takes no infinity


class Shaping:
    """Links by name, and what they are to be; changed by `tick`, which is to be called at `due_s`."""

    def __init__(self) -> None:
        self.links: dict[str, tuple[Shaper, Timeline]] = {}
        self.next_s: dict[str, float] = {}
        """When a link changes next, in seconds of the machine's monotonic clock; only those that ever do."""

    def add(self, name: str, shaper: Shaper, link: Link) -> None:
        """Hold a link, as it is when training begins, from now on. Raises InfrastructureError where that fails."""
        timeline = Timeline(link)
        shaper.apply(timeline.at(0.0))
        self.links[name] = shaper, timeline

    def began(self, monotonic_s: float) -> None:
        """Training began then: from here on links follow their timelines."""
        self.began_s = monotonic_s
        self.next_s = {name: monotonic_s for name, (_, timeline) in self.links.items() if timeline.times_s}

    def due_s(self) -> float:
        """When something is to be changed next; infinity if nothing is."""
        return min(self.next_s.values(), default=math.inf)

    def tick(self) -> None:
        """Change what is due."""
        now_s = time.monotonic()
        for name in [name for name, due_s in self.next_s.items() if due_s <= now_s]:
            shaper, timeline = self.links[name]
            shaper.apply(timeline.at(now_s - self.began_s))
            self.next_s[name] = self.began_s + timeline.next_change_s(now_s - self.began_s)
            if self.next_s[name] == math.inf:
                del self.next_s[name]


def main() -> int:
    """Hold the link that standard input asks for; return the exit code."""
    try:
        if sys.argv[1:] == ["--probe"]:
            _say(Answer(netem=probe_here().netem))
        else:
            _serve()
    except EdgebedError as error:
        _say(Answer(problem=str(error)))
        return error.exit_code
    return 0


def _serve() -> None:
    lines = Lines(0)
    order = msgspec.json.decode(lines.read(math.inf) or b"", type=Order)
    reader = LinkReader(own_address(order.subnet))
    shaping = Shaping()
    shaping.add("own", Shaper(IPRoute(), reader.interface, Features(order.netem)), order.link)
    conditions = Timeline(order.link).at(0.0)
    problem = deviation(conditions, *reader.queues(), netem=order.netem)
    if problem:
        raise InfrastructureError(f"the link was not set as asked: {problem}")
    _say(Answer(interface=reader.interface))
    while order.link.changes:
        line = lines.read(shaping.due_s())
        if line == b"":
            return
        if line:
            shaping.began(msgspec.json.decode(line, type=Began).began)
        shaping.tick()


class Lines:
    """Lines from a file descriptor, with a time to wait for each."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.pending = b""

    def read(self, until_s: float) -> bytes | None:
        """The next line; nothing at the end; None if it has not come until then, by the machine's monotonic clock."""
        while b"\n" not in self.pending:
            wait_s = max(0.0, min(until_s - time.monotonic(), WAIT_S_MAX))
            if not select.select([self.descriptor], [], [], wait_s)[0]:
                return None
            data = os.read(self.descriptor, 1 << 16)
            if not data:
                return b""
            self.pending += data
        line, _, self.pending = self.pending.partition(b"\n")
        return line


def _say(answer: Answer) -> None:
    os.write(1, msgspec.json.encode(answer) + b"\n")


if __name__ == "__main__":
    sys.exit(main())
