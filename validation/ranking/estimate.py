"""How fast methods train, estimated in a line: what a worker's push, pull and pause take, within the server's link.

Scenarios are drawn by it, so that their trainings take about as long as they are to; and it is the null model of a
ranking study: what virtual time knows more than this estimate is what it is for. It knows nothing of faults, of queues,
of workers that wait for each other outside rounds, or of what computing takes beside a guess.
"""

import math
from collections.abc import Mapping
from typing import Any

from edgebed.core.units import parse_duration, parse_rate
from validation.ranking.drawn_methods import METHODS, DrawnMethod, model_bytes
from validation.ranking.draws import Document

FRAMED = 1.06
"""Bytes on the wire for each of the payload, acknowledgements of the other direction included."""
GRADIENT_S = 0.002
"""Rough time of a gradient, which the estimate goes by."""


def estimated_times(document: Mapping[str, Any]) -> dict[str, float]:
    """Seconds that each variant of a scenario takes for the updates at which it stops.

    Variants, models and scenarios that are none of those that are drawn are left out.
    """
    size, updates = model_bytes(document["task"]), document["stop"].get("updates")
    if size is None or updates is None:
        return {}
    return {
        name: updates / rate(METHODS[name], document["fleet"], document.get("server", {}), size)
        for name, variant in document.get("variants", {}).items()
        if name in METHODS and {key: each for key, each in variant.items() if key != "task"} == METHODS[name].settings
    }


def rate(method: DrawnMethod, fleet: Document, server: Document, size: int) -> float:
    """Updates a second, roughly: the sum over workers, or in rounds that of the slowest, within the server's link.

    `size` is that of the model in bytes.
    """
    up_bit, down_bit = (8 * FRAMED * size * share for share in (method.push, method.pull))
    steps_s = {name: step_s(section, up_bit, down_bit) for name, section in fleet.items()}
    counts = {name: int(section["count"]) for name, section in fleet.items()}
    found = sum(counts[name] / steps_s[name] for name in fleet)
    if method.in_rounds:
        found = sum(counts.values()) / max(steps_s.values())
    return min(found, bit_s(server, "downlink") / up_bit, bit_s(server, "uplink") / down_bit)


def step_s(section: Document, up_bit: float, down_bit: float) -> float:
    """Seconds between two pushes of a worker whose server has no limit."""
    compute_s = GRADIENT_S / float(section.get("cpus", 1.0) * section.get("compute_speed", 1.0))
    return compute_s + link_s(section, up_bit, down_bit) + pause_s(section.get("waiting", "0s"))


def link_s(section: Document, up_bit: float, down_bit: float) -> float:
    """Seconds that a push and a model take on a worker's link."""
    rates_s = up_bit / bit_s(section, "uplink") + down_bit / bit_s(section, "downlink")
    return rates_s + 2 * parse_duration(section.get("latency", "0s"))


def pause_s(waiting: Any) -> float:
    """Seconds of a pause, the mean."""
    if isinstance(waiting, str):
        return parse_duration(waiting)
    if "exponential" in waiting:
        return parse_duration(waiting["exponential"])
    low, high = map(parse_duration, waiting["uniform"])
    return (low + high) / 2


def bit_s(section: Document, key: str) -> float:
    """A rate as drawn, in bit/s; infinite where there is none."""
    return parse_rate(section[key]) if key in section else math.inf
