"""Draws scenarios at the edges of what is usual, where virtual time has most to get wrong.

    (seed, number) ---> regime, the number's turn ---> setting: task, fleet, server, methods ---> document

Four regimes take turns:

- *classes far apart*: two classes, 10 to 100 times apart in rate, behind one server link that the fast one fills;
- *pushes near silence*: a class whose whole push takes most of `deadlines.silence`, in half of these scenarios with a
  fault that makes it take longer;
- *large model*: of 1 to 50 MB, whose messages take 0.2 to 5 s;
- *coming and going*: workers that leave and come back again and again, two faults at once of different nodes, or both.

Two methods are compared in each, of which neither should be more than so many times faster than the other: else the
training of the one would be over before anything happens, or that of the other take minutes.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from edgebed.core.units import format_duration, parse_duration, parse_rate
from validation.ranking.drawn_methods import METHODS, MODEL_BYTES, four_layer_bytes
from validation.ranking.draws import Document, Drawn, Draws
from validation.ranking.estimate import FRAMED, rate
from validation.ranking.generate import document_of, faults_of_a_worker

SCENARIO_METHODS = 2
"""Number of methods in a scenario."""
APART_MAX = 3.0
"""Times that one of the two methods is faster than the other at most, by the estimate, where there is such a choice."""
PACED_BY_SLOWEST = ("ssp",)
"""Methods whose fast workers wait for the slow ones, though they are none of rounds."""
WHOLE_PUSH = tuple(name for name, method in METHODS.items() if method.push == 1.0)
"""Methods that push as many bytes as the model has."""
MODELS: Mapping[str, float] = {"small": 0.6, "mlp": 0.25, "cnn": 0.15}
"""How likely each of the usual models is."""


class Setting(NamedTuple):
    """What a regime draws."""

    task: Document
    size: int
    """Bytes of the model."""
    fleet: Document
    server: Document
    methods: Sequence[str]
    """Methods of which two are drawn."""
    training_s: float
    """Time that a training is to take, between the faster and the slower method."""
    updates_a_worker_min: int
    traits: tuple[str, ...]
    deadlines: Document | None = None


def name_of(seed: int, number: int) -> str:
    """The name of a scenario, e.g. `ranks-7-edges-012`."""
    return f"ranks-{seed}-edges-{number:03}"


def draw_scenario(seed: int, number: int) -> Drawn:
    """The scenario with this number, from 0 on, of a seed; always the same."""
    draws = Draws(seed, number, "ranks-edges")
    regime, setting_of, faults_of = REGIMES[number % len(REGIMES)]
    setting = setting_of(draws)
    rates = {name: _rate(name, setting) for name in setting.methods}
    methods = _two(draws, rates)
    updates = _updates(setting, [rates[name] for name in methods])
    document = document_of(
        name_of(seed, number), setting.task, setting.fleet, setting.server, updates, methods
    )  # fmt: skip
    if setting.deadlines:
        document["deadlines"] = setting.deadlines
    faults = faults_of(draws, setting, updates, updates / max(rates[name] for name in methods))
    if faults:
        document["faults"] = faults
        document["on_failure"] = "restart"
    kinds = dict.fromkeys(f"fault: {next(iter(fault))}" for fault in faults)
    at_once = len({fault.get("at_update") for fault in faults} - {None}) < sum("at_update" in each for each in faults)
    traits = (regime, *setting.traits, *kinds, *(("two faults at once",) if at_once else ()))
    return Drawn(document["name"], document, traits)


def _rate(name: str, setting: Setting) -> float:
    """Updates a second, roughly; for one method more than the estimate knows of it."""
    method = METHODS[name]
    if name in PACED_BY_SLOWEST:
        method = method._replace(in_rounds=True)
    return rate(method, setting.fleet, setting.server, setting.size)


def _two(draws: Draws, rates: Mapping[str, float]) -> list[str]:
    """Two methods, in the order of the table: one, and the first of the others that is not too far from it."""
    first, *others = draws.shuffled("methods", tuple(rates))

    def apart(name: str) -> float:
        return max(rates[name] / rates[first], rates[first] / rates[name])

    near = [name for name in others if apart(name) <= APART_MAX]
    return sorted((first, near[0] if near else min(others, key=apart)), key=tuple(METHODS).index)


def _updates(setting: Setting, rates: Sequence[float]) -> int:
    """The number of updates, the same for both methods."""
    workers = sum(int(section["count"]) for section in setting.fleet.values())
    return max(setting.updates_a_worker_min * workers, round(setting.training_s * math.sqrt(math.prod(rates))))


def _model(draws: Draws) -> tuple[Document, int, float]:
    """The task with one of the usual models, its bytes, and the bits on the wire of all of it."""
    model = draws.weighted("model", MODELS)
    size = MODEL_BYTES[model]
    return {"model": model, "batch_size": draws.one("batch", (10, 32))}, size, 8 * FRAMED * size


def _far_apart(draws: Draws) -> Setting:
    """A slow class whose push takes about a second, and one 10 to 100 times as fast that fills the server's link.

    The fast class has two devices at least, since one alone sends while it does not receive.
    """
    task, size, bits = _model(draws)
    counts = {"fast": draws.one("fast/count", (2, 3)), "slow": draws.one("slow/count", (1, 2, 3))}
    slow_bit_s = bits / draws.between("slow/push", 0.4, 2.0)
    apart = draws.between("apart", 10, 100)
    downlink = draws.between("downlink", 1, 4)
    fast_bit_s = apart * slow_bit_s
    server_bit_s = min(draws.between("server/share", 0.3, 0.8) * counts["fast"] * fast_bit_s, SERVER_PUSHES_S * bits)
    asked_s = counts["fast"] * bits / server_bit_s / draws.between("asked", 2, 3)
    pause_s = max(PAUSE_MIN_S, asked_s - bits / fast_bit_s * (1 + 1 / downlink))
    fleet = {
        "fast": {"count": counts["fast"], **_link(fast_bit_s, fast_bit_s * downlink), "waiting": _exponential(pause_s)},
        "slow": {
            "count": counts["slow"],
            **_link(slow_bit_s, slow_bit_s * downlink),
            "waiting": _exponential(draws.between("slow/pause", 0.05, 0.5)),
        },
    }
    server = _link(server_bit_s, server_bit_s)
    return Setting(task, size, fleet, server, tuple(METHODS), 24.0, 4, ("two classes", "link of the server"))


SERVER_PUSHES_S = 15.0
"""Whole models a second that pass the server's link at most, since a live run may find two cores."""
PAUSE_MIN_S = 0.005


def _near_silence(draws: Draws) -> Setting:
    """A class whose push, with all that is before it since the answer, takes 0.5 to 0.9 of `silence`."""
    task, size, bits = _model(draws)
    silence_s = round(draws.between("silence", 8, 15))
    slow_s = silence_s * (0.5 + 0.4 * draws.share("push"))
    pull_s, pause_s = slow_s * draws.between("slow/pull", 0.05, 0.2), slow_s * draws.between("slow/pause", 0.02, 0.1)
    fast_s = slow_s * draws.between("fast", 0.2, 0.4)
    fast_push_s = fast_s * draws.between("fast/push", 0.05, 0.4)
    fleet = {
        "fast": {
            "count": draws.one("fast/count", (2, 3)),
            **_link(bits / fast_push_s, 4 * bits / fast_push_s),
            "waiting": _exponential(fast_s - 1.25 * fast_push_s),
        },
        "slow": {
            "count": draws.one("slow/count", (1, 2)),
            **_link(bits / (slow_s - pull_s - pause_s), bits / pull_s),
            "waiting": _duration(pause_s),
        },
    }
    deadlines = {"silence": f"{silence_s}s"}
    return Setting(task, size, fleet, {}, WHOLE_PUSH, 40.0, 3, ("two classes",), deadlines)


def _large_model(draws: Draws) -> Setting:
    """Two or three workers that exchange megabytes, in some scenarios over a server's link in which they meet."""
    width = round(draws.between("width", 64, 2_900))
    size = four_layer_bytes(width, KERNEL)
    bits = 8 * FRAMED * size
    push_s = draws.between("push", max(MESSAGE_MIN_S, bits / LINK_MAX_BIT_S), 4.0)
    pull_s = max(MESSAGE_MIN_S, bits / LINK_MAX_BIT_S, push_s / draws.between("downlink", 1, 4))
    section: Document = {"count": draws.one("count", (2, 3)), **_link(bits / push_s, bits / pull_s)}
    if draws.chance("latency?", 0.5):
        section["latency"] = f"{draws.between('latency', 2, 60):.0f}ms"
    section["waiting"] = _exponential(draws.between("pause", 0.1, 1.0))
    server: Document = {}
    if draws.chance("server/link?", 0.4):
        shared = draws.between("server/link", 1, 1.6)
        server = _link(bits / pull_s * shared, bits / push_s * shared)
    task = {"model": "four-layer", "width": width, "kernel": KERNEL, "batch_size": 10}
    traits = tuple(
        name
        for name, holds in {"link of the server": bool(server), "latency": "latency" in section}.items()
        if holds
    )  # fmt: skip
    return Setting(task, size, {"edge": section}, server, tuple(METHODS), 22.0, 4, traits)


KERNEL = 3
"""Side of the filters of the large model, whose bytes are in its dense layers."""
MESSAGE_MIN_S = 0.2
"""Least time of a message with a large model."""
LINK_MAX_BIT_S = 200e6
"""Rate of a link of large models at most."""


def _coming_and_going(draws: Draws) -> Setting:
    """A class whose workers leave and come back, and one of two that faults hit; pauses take most of the time."""
    task, size, bits = _model(draws)
    counts = {"edge": draws.one("edge/count", (4, 5)), "hub": 2}
    fleet = {}
    for name, count in counts.items():
        section: Document = {"count": count}
        if draws.chance(f"{name}/link?", 0.6):
            bit_s = bits / draws.between(f"{name}/push", 0.05, 0.4)
            section |= _link(bit_s, bit_s * draws.between(f"{name}/downlink", 1, 4))
        fleet[name] = section | {"waiting": _exponential(draws.between(f"{name}/pause", 0.3, 0.8))}
    linked = any("uplink" in section for section in fleet.values())
    traits = ("two classes", *(("links of workers",) if linked else ()))
    return Setting(task, size, fleet, {}, tuple(METHODS), 20.0, 8, traits)


def _no_faults(*_: object) -> list[Document]:
    return []


def _slowed_beyond_silence(draws: Draws, setting: Setting, updates: int, _: float) -> list[Document]:
    """In half of the scenarios a slow worker's uplink is slower for a while: its push takes longer than `silence`."""
    if not draws.chance("fault?", 0.5):
        return []
    assert setting.deadlines is not None
    lasts_s = parse_duration(setting.deadlines["silence"]) * draws.between("fault/for", 1.2, 2)
    bit_s = max(RATE_MIN_BIT_S, parse_rate(setting.fleet["slow"]["uplink"]) / draws.between("fault/slower", 2, 4))
    uplink = f"{bit_s / 1000:.0f}kbit"
    return [{"link": "slow-0", "at_update": _at_update(draws, updates), "uplink": uplink, "for": _duration(lasts_s)}]


RATE_MIN_BIT_S = 8_000
"""Rate of a link at least."""


def _churn(draws: Draws, setting: Setting, updates: int, fastest_s: float) -> list[Document]:
    """Workers that leave and come back, two faults of the others at once, or both."""
    kind = draws.one("fault/kind", ("churn", "two at once", "both"))
    faults: list[Document] = []
    if kind != "two at once":
        lasts_s = round(CHURN_SHARE * fastest_s)
        leaving = draws.one("churn/leaving", (4, 5, 6))
        absent_s = draws.between("churn/absent", 1.5, 2.5) * lasts_s / leaving  # so two or three are away at a time
        churn = {"churn": math.ceil(60 * leaving / lasts_s), "of": "edge", "at": "2s", "for": f"{lasts_s}s"}
        faults.append(churn | {"absent": _duration(absent_s)})
    if kind != "churn":
        at = {"at_update": _at_update(draws, updates)}
        faults += [_fault(draws, node, at) for node in ("hub-0", "hub-1")]
    return faults


CHURN_SHARE = 0.6
"""Share of the faster method's training in which workers leave."""


def _fault(draws: Draws, node: str, at: Document) -> Document:
    """One of the faults that a worker survives, or comes back from."""
    lasts = {"for": f"{draws.between(f'{node}/for', 1000, 4000):.0f}ms"}
    kinds = faults_of_a_worker(node, at, lasts) | {"restart": {"restart": node} | at | {"delay": "1s"}}
    return kinds[draws.one(f"{node}/kind", tuple(kinds))]


def _at_update(draws: Draws, updates: int) -> int:
    """After a fifth to two fifths of the updates, so that no fault is missed."""
    return max(1, round(updates * (0.2 + 0.2 * draws.share("fault/at"))))


def _link(up_bit_s: float, down_bit_s: float) -> Document:
    return {"uplink": f"{up_bit_s / 1000:.0f}kbit", "downlink": f"{down_bit_s / 1000:.0f}kbit"}


def _duration(seconds: float) -> str:
    """A duration in whole milliseconds."""
    return format_duration(round(seconds, 3))


def _exponential(mean_s: float) -> Document:
    return {"exponential": _duration(mean_s)}


REGIMES = (
    ("classes far apart", _far_apart, _no_faults),
    ("pushes near silence", _near_silence, _slowed_beyond_silence),
    ("large model", _large_model, _no_faults),
    ("coming and going", _coming_and_going, _churn),
)
"""Name, setting and faults of each regime."""
