"""Messages that pass links by the model, with nothing around it: sent at given times, until all are through."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from edgebed.emulation.model.flows import AT_ONCE_S, Course, Flow, Flows


class Sent(NamedTuple):
    """A message that is sent."""

    at_s: float
    course: Course[int]
    size: int
    """Payload."""
    since_s: float = math.inf
    """When its first byte came, if that is past."""


class Passed(NamedTuple):
    """How a message passed."""

    first_s: float
    end_s: float


def passed(
    sent: Sequence[Sent],
    events: Iterable[tuple[float, Callable[[Flows[int], float], None]]] = (),
    watch: Callable[[Flows[int], float, float], None] = lambda _flows, _since_s, _until_s: None,
) -> list[Passed]:
    """Return how each message passed, in the order given; `events` are done at their times.

    `watch` is called for each time in which rates stay as they are, before it passes; for none of a nanosecond.
    """
    flows, found = Flows[int](), dict[int, Passed]()
    waiting = sorted(
        [(each.at_s, 1, number, None) for number, each in enumerate(sent)]
        + [(at_s, 0, number, event) for number, (at_s, event) in enumerate(events)],
        key=lambda entry: entry[:3],
    )

    def begin(flow: Flow[int] | None, at_s: float, since_s: float = math.inf) -> None:
        while flow and flows.begin(flow, at_s, since_s):
            flow = through(flow)

    def through(flow: Flow[int]) -> Flow[int] | None:
        found[flow.subject] = Passed(flow.first_s, flow.end_s)
        flow.course.flows.popleft()
        return flow.course.flows[0] if flow.course.flows else None

    now = 0.0
    while waiting or flows.next_s < math.inf:
        at_s = min(waiting[0][0] if waiting else math.inf, flows.next_s)
        if at_s - now > AT_ONCE_S:
            watch(flows, now, at_s)
        now = at_s
        for flow in flows.over(now):
            begin(through(flow), now)
        while waiting and waiting[0][0] <= now:
            _, _, number, event = waiting.pop(0)
            if event:
                event(flows, now)
                continue
            flow = sent[number].course.add(sent[number].size, number)
            if flow is flow.course.flows[0]:
                begin(flow, now, sent[number].since_s)
        flows.settle(now)
    return [found[number] for number in range(len(sent))]


def one(course: Course[int], at_s: float, size: int, since_s: float = math.inf) -> Passed:
    """Return how a message passes alone."""
    return passed([Sent(at_s, course, size, since_s)])[0]
