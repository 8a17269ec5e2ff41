"""Draws scenarios from a seed: methods, links, caps, devices and faults, small enough for a live run of seconds.

    (seed, number) ---> document of a scenario, with the traits that it has

Every setting is a draw with a key of its own, so a setting that is drawn besides changes none of the others. The first
scenario is not drawn: it is the saturated server, where whole gradients fill the server's link in both directions.

A scenario's number of updates follows from a rough estimate of how fast its methods make them, so that a training takes
about TRAINING_S; its faults come at a share of these updates, so that none is missed. What a worker computes is little
and what the fleet asks for together is bounded, since a live run may find two cores.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from edgebed.core import chance
from edgebed.core.units import parse_duration, parse_rate

T = TypeVar("T")
Document = dict[str, Any]

SCENARIO_METHODS = 3
"""Number of methods in a scenario."""
TRAINING_S = 8.0
"""Time that a training is to take, between the fastest and the slowest method."""
FASTER_MIN = 0.35
"""Least share of TRAINING_S that the fastest method is to take."""
FLEET_UPDATES_PER_S = 40.0
"""Updates a second that a whole fleet makes at most with whole gradients, and three times as many with small pushes."""
UPDATES_A_WORKER_MIN = 8
TIME_LIMIT = "3m"
"""End of a training that is much slower than was estimated; it is then left out, and named."""
FRAMED = 1.06
"""Bytes on the wire for each of the payload, acknowledgements of the other direction included."""
GRADIENT_S = 0.002
"""Rough time of a gradient, which the estimate goes by."""
EVALUATIONS = 10
"""Number of evaluations of a training."""


class DrawnMethod(NamedTuple):
    """A method that may be drawn, and its rough traffic as shares of the model's bytes."""

    settings: Mapping[str, Any]
    push: float
    pull: float = 1.0
    in_rounds: bool = False


METHODS: Mapping[str, DrawnMethod] = {
    "asgd": DrawnMethod({"method": "asgd"}, 1.0),
    "float16": DrawnMethod({"method": {"preset": "asgd", "compression": {"values": "float16"}}}, 0.5),
    "comp-asgd": DrawnMethod(
        {"method": {"preset": "comp-asgd", "compression": {"fraction": 0.05}}, "pull": "changed-since"}, 0.07, 0.3
    ),
    "adacomp": DrawnMethod(
        {"method": {"preset": "adacomp", "compression": {"fraction": 0.1}}, "pull": "changed-since"}, 0.12, 0.4
    ),
    "ssp": DrawnMethod({"method": {"preset": "ssp", "aggregation": {"bound": 2}}}, 1.0),
    "softsync": DrawnMethod({"method": {"preset": "softsync", "aggregation": {"count": 3}}}, 1.0),
    "fedbuff": DrawnMethod(
        {"method": {"preset": "fedbuff", "aggregation": {"count": 3}, "local_work": {"steps": 4}}}, 1.0
    ),
    "sync-sgd": DrawnMethod({"method": "sync-sgd"}, 1.0, in_rounds=True),
    "top-k": DrawnMethod(
        {
            "method": {
                "preset": "sync-sgd",
                "compression": {"name": "top-k", "fraction": 0.05, "residual": True},
            }
        },
        0.07,
        in_rounds=True,
    ),
    "int8": DrawnMethod({"method": {"preset": "sync-sgd", "compression": {"name": "int8"}}}, 0.25, in_rounds=True),
    "fedavg": DrawnMethod({"method": {"preset": "fedavg", "local_work": {"steps": 4}}}, 1.0, in_rounds=True),
}
"""Methods that are drawn, by the name of their variant."""
MODEL_BYTES = {"small": 19_240, "mlp": 68_904, "cnn": 109_480}
"""Bytes of the models on the digits."""

SATURATED = ("asgd", "adacomp", "sync-sgd")
"""Methods of the saturated server."""


class Drawn(NamedTuple):
    """A drawn scenario."""

    name: str
    document: Document
    """The scenario as its file has it."""
    traits: tuple[str, ...]
    """What is special about it, e.g. `server's link`, `freeze`."""


def name_of(seed: int, number: int) -> str:
    """The name of a scenario, e.g. `ranks-7-012`."""
    return f"ranks-{seed}-{number:03}"


def draw_scenario(seed: int, number: int) -> Drawn:
    """The scenario with this number, from 0 on, of a seed; always the same."""
    if number == 0:
        return _saturated(seed)
    draws = Draws(seed, number)
    methods = draws.some("methods", tuple(METHODS), SCENARIO_METHODS)
    model = draws.weighted("model", {"small": 0.6, "mlp": 0.25, "cnn": 0.15})
    fleet = _fleet(draws, MODEL_BYTES[model])
    server = _server(draws)
    workers = sum(section["count"] for section in fleet.values())
    updates = _updates(methods, fleet, server, MODEL_BYTES[model])
    faults = _faults(draws, fleet, updates)
    document = _document(name_of(seed, number), model, draws.one("batch", (10, 32)), fleet, server, updates, methods)
    if faults:
        document["faults"] = faults
        document["on_failure"] = "restart"
    assert workers >= 2, "a fleet of one has no order of pushes"
    return Drawn(document["name"], document, _traits(fleet, server, faults))


class Draws:
    """The draws of one scenario, each by a name."""

    def __init__(self, seed: int, number: int) -> None:
        self.seed = seed
        self.number = number

    def share(self, what: str) -> float:
        """A number from 0 to 1."""
        return chance.uniform(self.seed, f"ranks/{what}", k=self.number)

    def chance(self, what: str, probability: float) -> bool:
        """Whether something is so, with this probability."""
        return self.share(what) < probability

    def one(self, what: str, choices: Sequence[T]) -> T:
        """One of the choices, each as likely."""
        return choices[int(self.share(what) * len(choices))]

    def some(self, what: str, choices: Sequence[T], count: int) -> list[T]:
        """Some of the choices, in their order."""
        ranked = sorted(range(len(choices)), key=lambda place: self.share(f"{what}/{place}"))
        return [choices[place] for place in sorted(ranked[:count])]

    def weighted(self, what: str, weights: Mapping[str, float]) -> str:
        """One of the keys, as likely as its weight says; the weights sum to 1."""
        share = self.share(what)
        for choice, weight in weights.items():
            share -= weight
            if share < 0:
                return choice
        return choice

    def between(self, what: str, low: float, high: float) -> float:
        """A number between two, each ratio as likely."""
        return low * math.exp(math.log(high / low) * self.share(what))


def _saturated(seed: int) -> Drawn:
    """Whole gradients of six workers, which ask for ten times what the server's link carries in either direction."""
    fleet: Document = {"edge": {"count": 6, "waiting": {"exponential": "20ms"}}}
    server = {"uplink": "4mbit", "downlink": "4mbit"}
    updates = 180
    name = name_of(seed, 0)
    return Drawn(
        name,
        _document(name, "small", 10, fleet, server, updates, SATURATED),
        _traits(fleet, server, (), saturated=True),
    )


def _document(
    name: str,
    model: str,
    batch_size: int,
    fleet: Document,
    server: Document,
    updates: int,
    methods: Sequence[str],
) -> Document:
    return {
        "name": name,
        "question": "Does virtual time rank these methods as a live run does?",
        "seed": 1,
        "task": {"data": "digits", "model": model, "batch_size": batch_size},
        "fleet": fleet,
        **({"server": server} if server else {}),
        "evaluation": {"every": f"{max(1, updates // EVALUATIONS)} updates"},
        "stop": {"updates": updates, "time": TIME_LIMIT},
        "variants": {method: dict(METHODS[method].settings) for method in methods},
    }


def _fleet(draws: Draws, model_bytes: int) -> Document:
    """One class of devices or two, with two to six workers together."""
    names = ("edge", "slow")[: 1 + draws.chance("two classes", 0.4)]
    counts = [draws.one(f"{name}/count", (1, 2, 3) if len(names) == 2 else (2, 3, 4, 5, 6)) for name in names]
    workers = sum(counts)
    steps_s = [draws.between(f"{name}/step", 1, 3) * workers / FLEET_UPDATES_PER_S for name in names]
    return {
        name: _device(draws, name, count, step_s, model_bytes)
        for name, count, step_s in zip(names, counts, steps_s, strict=True)
    }


def _device(draws: Draws, name: str, count: int, step_s: float, model_bytes: int) -> Document:
    """A class: its devices, their link, and pauses of what whole gradients leave of a step, a third of it at least."""
    section: Document = {"count": count}
    if draws.chance(f"{name}/cpus?", 0.5):
        section["cpus"] = draws.one(f"{name}/cpus", (0.1, 0.25, 0.5))
    if draws.chance(f"{name}/speed?", 0.4):
        section["compute_speed"] = draws.one(f"{name}/speed", (0.1, 0.25, 0.5))
    if draws.chance(f"{name}/link?", 0.75):
        up_kbit = draws.between(f"{name}/uplink", 400, 20_000) / (4 if name == "slow" else 1)
        down_kbit = up_kbit * draws.between(f"{name}/downlink", 1, 8)
        section |= {"uplink": f"{up_kbit:.0f}kbit", "downlink": f"{down_kbit:.0f}kbit"}
    if draws.chance(f"{name}/latency?", 0.5):
        section["latency"] = f"{draws.between(f'{name}/latency', 2, 60):.0f}ms"
    bits = 8 * FRAMED * model_bytes
    pause_ms = 1000 * max(step_s / 3, step_s - _link_s(section, bits, bits))
    kind = draws.weighted(f"{name}/waiting", {"exponential": 0.5, "uniform": 0.3, "constant": 0.2})
    section["waiting"] = {
        "exponential": {"exponential": f"{pause_ms:.0f}ms"},
        "uniform": {"uniform": [f"{0.5 * pause_ms:.0f}ms", f"{1.5 * pause_ms:.0f}ms"]},
        "constant": f"{pause_ms:.0f}ms",
    }[kind]
    return section


def _server(draws: Draws) -> Document:
    """The server's link, if it has one of its own, and its cap."""
    section: Document = {}
    if draws.chance("server/link?", 0.4):
        up_kbit = draws.between("server/uplink", 2_000, 40_000)
        section |= {"uplink": f"{up_kbit:.0f}kbit", "downlink": f"{up_kbit:.0f}kbit"}
    if draws.chance("server/cpus?", 0.2):
        section["cpus"] = 0.5
    return section


def _updates(methods: Sequence[str], fleet: Document, server: Document, model_bytes: int) -> int:
    """The number of updates for a training of about TRAINING_S, the same for all methods."""
    rates = [_rate(METHODS[method], fleet, server, model_bytes) for method in methods]
    middle = TRAINING_S * math.sqrt(min(rates) * max(rates))
    workers = sum(int(section["count"]) for section in fleet.values())
    return max(UPDATES_A_WORKER_MIN * workers, round(max(middle, FASTER_MIN * TRAINING_S * max(rates))))


def _rate(method: DrawnMethod, fleet: Document, server: Document, model_bytes: int) -> float:
    """Updates a second, roughly: the sum over workers, or in rounds that of the slowest, within the server's link."""
    up_bit, down_bit = (8 * FRAMED * model_bytes * share for share in (method.push, method.pull))
    steps_s = {name: _step_s(section, up_bit, down_bit) for name, section in fleet.items()}
    counts = {name: int(section["count"]) for name, section in fleet.items()}
    rate = sum(counts[name] / steps_s[name] for name in fleet)
    if method.in_rounds:
        rate = sum(counts.values()) / max(steps_s.values())
    return min(rate, _bit_s(server, "downlink") / up_bit, _bit_s(server, "uplink") / down_bit)


def _step_s(section: Document, up_bit: float, down_bit: float) -> float:
    """Seconds between two pushes of a worker whose server has no limit."""
    compute_s = GRADIENT_S / float(section.get("cpus", 1.0) * section.get("compute_speed", 1.0))
    return compute_s + _link_s(section, up_bit, down_bit) + _pause_s(section["waiting"])


def _link_s(section: Document, up_bit: float, down_bit: float) -> float:
    """Seconds that a push and a model take on a worker's link."""
    rates_s = up_bit / _bit_s(section, "uplink") + down_bit / _bit_s(section, "downlink")
    return rates_s + 2 * parse_duration(section.get("latency", "0s"))


def _pause_s(waiting: Any) -> float:
    if isinstance(waiting, str):
        return parse_duration(waiting)
    if "exponential" in waiting:
        return parse_duration(waiting["exponential"])
    low, high = map(parse_duration, waiting["uniform"])
    return (low + high) / 2


def _bit_s(section: Document, key: str) -> float:
    """A rate as drawn, in bit/s; infinite where there is none."""
    return parse_rate(section[key]) if key in section else math.inf


def _faults(draws: Draws, fleet: Document, updates: int) -> list[Document]:
    """No fault, or one after a fifth to two fifths of the updates, of the first worker of a class or of the server."""
    if not draws.chance("fault?", 0.4):
        return []
    worker = f"{draws.one('fault/class', tuple(fleet))}-0"
    at = {"at_update": max(1, round(updates * (0.2 + 0.2 * draws.share("fault/at"))))}
    lasts = {"for": f"{draws.between('fault/for', 500, 2000):.0f}ms"}
    kinds: dict[str, Document] = {
        "freeze": {"freeze": worker} | at | lasts,
        "cut": {"cut": worker} | at | lasts,
        "kill": {"kill": worker} | at,
        "link": {"link": worker} | at | {"uplink": "500kbit", "downlink": "1mbit"} | lasts,
        "cpus": {"cpus": worker} | at | {"to": 0.1} | lasts,
        "restart": {"restart": "server"} | at | {"delay": "500ms"},
    }
    return [kinds[draws.one("fault/kind", tuple(kinds))]]


def _traits(
    fleet: Document, server: Document, faults: Sequence[Document], *, saturated: bool = False
) -> tuple[str, ...]:
    """What is special about a scenario, for tables of where virtual time is wrong."""
    sections = [*fleet.values(), server]
    found = {
        "saturated server": saturated,
        "link of the server": "uplink" in server and not saturated,
        "links of workers": any("uplink" in section for section in fleet.values()),
        "latency": any("latency" in section for section in sections),
        "CPU caps": any("cpus" in section for section in sections),
        "slow devices": any("compute_speed" in section for section in sections),
        "two classes": len(fleet) > 1,
        **{f"fault: {next(iter(fault))}": True for fault in faults},
    }
    return tuple(trait for trait, holds in found.items() if holds) or ("nothing special",)
