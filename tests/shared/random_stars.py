"""Random fleets whose nodes all talk with one server, both ways, and what the model of links makes of them."""

import random
from dataclasses import dataclass

from passing import Passed, Sent, passed

from edgebed.core.planned.link import LinkPlan
from edgebed.emulation.conditions import EffectiveLink
from edgebed.emulation.model.flows import Course
from edgebed.emulation.model.lane import Lane, LinkClock

WORKERS = (2, 30)
LASTS_S = 5.0
"""About how long a message takes."""


@dataclass(frozen=True)
class Said:
    """A message between a worker and the server, behind those of its direction that come before it."""

    worker: int
    is_up: bool
    at_s: float
    size: int
    """Payload."""


@dataclass(frozen=True)
class Star:
    """Rates of everybody's links in bits a second, as (uplink, downlink), and what is said."""

    server: tuple[int, int]
    workers: tuple[tuple[int, int], ...]
    said: tuple[Said, ...]


def star(seed: int, *, two_way: bool) -> Star:
    """The fleet of that seed: links of a few mbit, the server's from a third up to a little more than all others'.

    All send to the server, or all hear from it; or both at the same time.
    """
    draw = random.Random(f"star {seed}")
    count = draw.randint(*WORKERS)
    workers = tuple((round(draw.uniform(2, 8) * 1e6), round(draw.uniform(3, 12) * 1e6)) for _ in range(count))
    up, down = (sum(rates) for rates in zip(*workers, strict=True))
    server = round(draw.uniform(0.3, 1.1) * down), round(draw.uniform(0.3, 1.1) * up)
    said = []
    for worker, (own_up, own_down) in enumerate(workers):
        for is_up in (True, False) if two_way else (seed % 2 == 0,):
            rate = min(own_up, server[1] / count) if is_up else min(own_down, server[0] / count)
            for _ in range(draw.randint(1, 2)):
                size = round(draw.uniform(0.3, 1) * LASTS_S * rate / 8)
                said.append(Said(worker, is_up, round(draw.uniform(0, LASTS_S / 2), 3), size))
    return Star(server, workers, tuple(sorted(said, key=lambda each: each.at_s)))


def classes(seed: int) -> tuple[Star, tuple[int, ...]]:
    """The fleet of that seed in two or three classes, all of which send to the server, and the class of each worker.

    Class 0 is the slowest. Rates of classes are up to 100 times apart, sizes of messages up to ten times; the server's
    downlink lies between the slowest class's uplink and all of theirs together. Half of the fleets send in rounds, all
    at once, as a synchronous method does. The first messages of all open TCP's windows.
    """
    draw = random.Random(f"classes {seed}")
    num_classes = draw.randint(2, 3)
    slowest = 10 ** draw.uniform(6, 7)
    spread = 10 ** draw.uniform(0.5, 2)
    rates = [min(2e8, slowest * spread ** (number / (num_classes - 1))) for number in range(num_classes)]
    class_of = tuple(number for number in range(num_classes) for _ in range(draw.randint(1, 4)))
    workers = tuple((round(rates[number]), round(max(rates))) for number in class_of)
    total = sum(up for up, _ in workers)
    server_down = round(1.2 * slowest * (total / slowest) ** draw.uniform(0, 1))
    size = slowest / 8 * LASTS_S * draw.uniform(0.05, 0.4)
    sizes = [round(size * 10 ** draw.uniform(0, 1)) if number else round(size) for number in range(num_classes)]
    in_rounds, said = draw.random() < 0.5, []
    apart_s = 1.5 * max(8 * sum(sizes[number] for number in class_of) / server_down, 8 * size / slowest)
    for k in range(3):
        for worker, number in enumerate(class_of):
            at_s = k * apart_s + (0.0 if in_rounds or not k else draw.uniform(0, apart_s / 3))
            said.append(Said(worker, True, round(at_s, 3), sizes[number]))
    server = max(server_down, round(max(rates))), server_down
    return Star(server, workers, tuple(sorted(said, key=lambda each: each.at_s))), class_of


class FluidLane(Lane):
    """A lane without a bucket that fills, and without a queue in which a message could be ahead of others."""

    def gather(self, now: float) -> float:
        """Return what may pass at once: nothing."""
        self.tokens, self.at_s = 0.0, now
        return 0.0

    def room(self, now: float) -> float:
        """Return the bytes that find room: none."""
        return 0.0


def modelled(given: Star, *, bare: bool = False) -> list[Passed]:
    """How each message passes, by the model; `bare`: without bursts, queues and acknowledgements."""
    links = [LinkPlan(uplink_bit_s=up, downlink_bit_s=down) for up, down in (given.server, *given.workers)]
    lanes = [_lanes(link, FluidLane if bare else Lane) for link in links]
    (server_up, server_down), *workers = lanes
    courses = {}
    for worker, (up, down) in enumerate(workers):
        courses[worker, True] = Course[int]((up, server_down), () if bare else (server_up, down))
        courses[worker, False] = Course[int]((server_up, down), () if bare else (up, server_down))
    return passed([Sent(each.at_s, courses[each.worker, each.is_up], each.size) for each in given.said])


def _lanes(link: LinkPlan, kind: type[Lane]) -> tuple[Lane, Lane]:
    clock = LinkClock(EffectiveLink(link))
    clock.began_s = 0.0
    return (
        kind(clock, lambda conditions: conditions.uplink_bit_s),
        kind(clock, lambda conditions: conditions.downlink_bit_s),
    )
