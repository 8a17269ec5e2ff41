"""Draws scenarios from a seed: methods, links, caps, devices and faults, small enough for a live run of seconds.

    (seed, number) ---> document of a scenario, with the traits that it has

Every setting is a draw with a key of its own, so a setting that is drawn besides changes none of the others. The first
scenario is not drawn: it is the saturated server, where whole gradients fill the server's link in both directions.

A scenario's number of updates follows from a rough estimate of how fast its methods make them, so that a training takes
about TRAINING_S; its faults come at a share of these updates, so that none is missed. What a worker computes is little
and what the fleet asks for together is bounded, since a live run may find two cores.
"""

import math
from collections.abc import Sequence

from validation.ranking.drawn_methods import METHODS, MODEL_BYTES
from validation.ranking.draws import Document, Drawn, Draws
from validation.ranking.estimate import FRAMED, link_s, rate

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
EVALUATIONS = 10
"""Number of evaluations of a training."""
SATURATED = ("asgd", "adacomp", "sync-sgd")
"""Methods of the saturated server."""


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
    task = {"model": model, "batch_size": draws.one("batch", (10, 32))}
    document = document_of(name_of(seed, number), task, fleet, server, updates, methods)
    if faults:
        document["faults"] = faults
        document["on_failure"] = "restart"
    assert workers >= 2, "a fleet of one has no order of pushes"
    return Drawn(document["name"], document, _traits(fleet, server, faults))


def _saturated(seed: int) -> Drawn:
    """Whole gradients of six workers, which ask for ten times what the server's link carries in either direction."""
    fleet: Document = {"edge": {"count": 6, "waiting": {"exponential": "20ms"}}}
    server = {"uplink": "4mbit", "downlink": "4mbit"}
    updates = 180
    name = name_of(seed, 0)
    return Drawn(
        name,
        document_of(name, {"model": "small", "batch_size": 10}, fleet, server, updates, SATURATED),
        _traits(fleet, server, (), saturated=True),
    )


def document_of(
    name: str, task: Document, fleet: Document, server: Document, updates: int, methods: Sequence[str]
) -> Document:
    """A scenario without faults as its file has it, whose variants are these methods."""
    return {
        "name": name,
        "question": "Does virtual time rank these methods as a live run does?",
        "seed": 1,
        "task": {"data": "digits", **task},
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
    pause_ms = 1000 * max(step_s / 3, step_s - link_s(section, bits, bits))
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
    rates = [rate(METHODS[method], fleet, server, model_bytes) for method in methods]
    middle = TRAINING_S * math.sqrt(min(rates) * max(rates))
    workers = sum(int(section["count"]) for section in fleet.values())
    return max(UPDATES_A_WORKER_MIN * workers, round(max(middle, FASTER_MIN * TRAINING_S * max(rates))))


def _faults(draws: Draws, fleet: Document, updates: int) -> list[Document]:
    """No fault, or one after a fifth to two fifths of the updates, of the first worker of a class or of the server."""
    if not draws.chance("fault?", 0.4):
        return []
    worker = f"{draws.one('fault/class', tuple(fleet))}-0"
    at = {"at_update": max(1, round(updates * (0.2 + 0.2 * draws.share("fault/at"))))}
    lasts = {"for": f"{draws.between('fault/for', 500, 2000):.0f}ms"}
    kinds = faults_of_a_worker(worker, at, lasts) | {
        "cpus": {"cpus": worker} | at | {"to": 0.1} | lasts,
        "restart": {"restart": "server"} | at | {"delay": "500ms"},
    }
    return [kinds[draws.one("fault/kind", tuple(kinds))]]


def faults_of_a_worker(worker: str, at: Document, lasts: Document) -> dict[str, Document]:
    """What may be done to a worker at a time, by kind; but for a kill it lasts for a while."""
    return {
        "freeze": {"freeze": worker} | at | lasts,
        "cut": {"cut": worker} | at | lasts,
        "kill": {"kill": worker} | at,
        "link": {"link": worker} | at | {"uplink": "500kbit", "downlink": "1mbit"} | lasts,
    }


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
