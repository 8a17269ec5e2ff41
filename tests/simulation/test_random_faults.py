"""Random faults from a seed: every run ends, its books close exactly, and the journal names each fault that was due.

`EDGEBED_RANDOM_FAULTS=1000` runs so many, `EDGEBED_RANDOM_FAULTS=17-17` the one of that seed alone.
"""

import os
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from edgebed import chance
from edgebed.roles import records
from edgebed.scenario.plan import Fault, FaultStep
from edgebed.scenario.units import format_duration

Outcome = Any  # conftest.py
Simulate = Callable[..., Outcome]

POINTS = ({"before": "push"}, {"during": "push"}, {"after": "push"}, {"during": "pull"}, {"after": "pull"})
METHODS: tuple[Any, ...] = (
    "asgd",
    "adacomp",
    "sync-sgd",
    {"preset": "sync-sgd", "aggregation": {"quorum": 0.6, "deadline_s": 0.5}},
)


def blocks() -> list[range]:
    """The seeds to run, a test for each fifty of them."""
    first, _, last = os.environ.get("EDGEBED_RANDOM_FAULTS", "200").rpartition("-")
    begin, end = int(first or 1), int(last) + 1
    return [range(k, min(k + 50, end)) for k in range(begin, end, 50)]


def scenario_of(seed: int) -> dict[str, Any]:
    """A small fleet, of which some have links, and up to six faults of any kind, several at a time."""
    draw = random.Random(seed)
    fast, slow = draw.randint(2, 4), draw.randint(2, 4)
    return {
        "name": "random-faults",
        "question": "Is every update accounted for?",
        "seed": seed,
        "task": {"data": "digits", "model": "small", "batch_size": 10, "gradient_time": "20ms"},
        "method": draw.choice(METHODS),
        "pull": draw.choice(("full", "changed-since")),
        "fleet": {
            "fast": {"count": fast, "waiting": {"exponential": "200ms"}, "memory": "400MiB"},
            "slow": {
                "count": slow,
                "waiting": "50ms",
                "uplink": "2mbit",
                "downlink": "4mbit",
                "latency": "20ms",
                "memory": "400MiB",
            },
        },
        "server": {"uplink": "20mbit", "downlink": "20mbit"} if draw.random() < 0.3 else {},
        "evaluation": {"every": f"{draw.choice((10, 50))} updates"},
        "stop": {"updates": draw.randint(60, 200)},
        "deadlines": {"silence": f"{draw.choice((1, 4, 60))}s", "check": f"{draw.choice((0.3, 1))}s", "stall": "30s"},
        "on_failure": draw.choice(("ignore", "ignore", "restart", "stop")),
        "restart_delay": f"{draw.choice((0, 1))}s",
        "detector": draw.choice(("network", "network", "oracle")),
        "faults": [fault_of(draw, fast, slow) for _ in range(draw.randint(1, 6))],
    }


def fault_of(draw: random.Random, fast: int, slow: int) -> dict[str, Any]:
    """Any kind, of any targets but the server, by any trigger that the kind has."""
    kind = draw.choice(
        ("kill", "freeze", "thaw", "restart", "cut", "heal", "flap", "link", "cpus", "memory", "partition", "churn")
    )
    duration = {"for": f"{draw.choice((0.5, 2, 3, 4, 6))}s"}
    at = {"at": f"{draw.uniform(0, 5):.3f}s"}
    target = draw.choice(
        (f"fast-{draw.randrange(fast)}", f"slow-{draw.randrange(slow)}", {"class": "slow", "count": 2}, {"random": 2})
    )
    if kind == "partition":
        return {"partition": [["server", "slow-0"], ["fast", "slow-1"]], **at, **duration}
    if kind == "churn":
        return {"churn": 20, "of": "fast", **at, "for": "6s", "absent": "1s"}
    settings: dict[str, Any] = {kind: target}
    if kind in ("freeze", "cut") and draw.random() < 0.7:
        settings |= duration
    elif kind == "restart":
        settings |= {"delay": f"{draw.choice((0, 1, 3))}s"}
    elif kind == "flap":
        settings |= {"for": "6s", "up": "1s", "down": f"{draw.choice((0.3, 3.5))}s"}
    elif kind == "link":
        settings |= {"uplink": "1mbit", "latency": "5ms"} | duration
    elif kind == "cpus":
        settings |= {"to": 0.1} | duration
    trigger = draw.random()
    if trigger < 0.4 or kind in ("thaw", "heal", "flap"):
        return settings | at
    if trigger < 0.6:
        return settings | {"at_update": draw.randint(1, 80)}
    how = draw.choice(({}, {"step": draw.randint(0, 12)}, {"probability": 0.05}))
    return settings | draw.choice(POINTS) | how


def check(outcome: Outcome) -> None:
    """What must hold of every run."""
    assert outcome.ended.outcome in ("completed", "failed")
    assert outcome.ended.reason
    check_books(outcome)
    check_faults(outcome)


def check_books(outcome: Outcome) -> None:
    """What the journal tells of each update is what the simulation did with it."""
    books = outcome.accounting
    assert books.closes, books.problems
    pushed = {
        (node, record.incarnation, step)
        for _, node, record in outcome.entries
        if isinstance(record, records.Pushes)
        for step in range(record.pushed)
    }
    seen = Counter(
        (record.worker, record.incarnation, record.step)
        for _, record in outcome.of(records.Update) + outcome.of(records.Refused)
        if record.step >= 0
    )
    assert max(seen.values(), default=1) == 1
    assert pushed - seen.keys() == outcome.lost.keys() | outcome.under_way
    assert seen.keys() <= pushed
    begun = sum(record.begun for _, record in outcome.of(records.Pushes))
    total = books.total
    assert total.begun == begun
    assert total.applied + sum(total.refused.values()) == len(seen)
    assert total.lost + total.unfinished == begun - len(seen)


def check_faults(outcome: Outcome) -> None:
    """Each that was due is there, and no other."""
    over_s, _ = outcome.of(records.Ended)[0]
    done = Journaled(outcome)
    for k, fault in enumerate(outcome.plan.faults):
        for trigger, began_s in occasions(outcome, done, k, fault):
            for step in fault.steps:
                if began_s + step.after_s < over_s:
                    done.take(fault, step, trigger, began_s + step.after_s)
                elif began_s + step.after_s == over_s:
                    done.may_take(fault, step, trigger, over_s)
    assert not done.left, f"not due: {list(done.left)}"


class Journaled:
    """The journal's faults, those of the policy left out; what is taken is no longer there."""

    def __init__(self, outcome: Outcome) -> None:
        self.left = Counter(
            (record.name, record.target, record.action, record.trigger, round(record.asked_s, 6))
            for _, record in outcome.of(records.Fault)
            if record.name != "on_failure"
        )

    def take(self, fault: Fault, step: FaultStep, trigger: str, asked_s: float) -> None:
        """It must be there."""
        assert self.may_take(fault, step, trigger, asked_s), f"{fault.name} of {fault.node}, {trigger}: not journaled"

    def may_take(self, fault: Fault, step: FaultStep, trigger: str, asked_s: float) -> bool:
        """Whether it was there."""
        entry = (fault.name, step.injection.node, step.injection.action, trigger, round(asked_s, 6))
        self.left -= (was := Counter([entry]) & self.left)
        return bool(was)

    def asked_s(self, fault: Fault, trigger: str) -> list[float]:
        """When its first steps were asked for."""
        first = fault.steps[0].injection
        wanted = (fault.name, first.node, first.action, trigger)
        return sorted(entry[-1] for entry, count in self.left.items() for _ in range(count) if entry[:-1] == wanted)


def occasions(outcome: Outcome, done: Journaled, k: int, fault: Fault) -> list[tuple[str, float]]:
    """(trigger as the journal has it, when) of all times that a fault was triggered."""
    began_s, _ = outcome.of(records.Trial)[0]
    trigger = fault.trigger
    if trigger.at_s is not None:
        return [(f"at {format_duration(trigger.at_s)}", began_s + trigger.at_s)]
    if trigger.at_update is not None:
        times = [t for t, record in outcome.of(records.Update) if record.version == trigger.at_update]
        return [(f"at update {trigger.at_update}", t) for t in times]
    found: list[tuple[str, float]] = []
    for incarnation, step in places(outcome, fault, k):
        text = f"{trigger.point} {step}"
        asked_s = done.asked_s(fault, text)
        before = sum(other == text for other, _ in found)  # at the same push of an earlier life
        if before < len(asked_s):
            found.append((text, asked_s[before]))
            if trigger.probability is None:
                break
        else:
            assert not has_passed(outcome, fault, incarnation, step), f"{fault.name}: {text} not journaled"
    return found


def places(outcome: Outcome, fault: Fault, k: int) -> list[tuple[int, int]]:
    """(incarnation, push) at which a fault waits: anybody can tell them from the seed."""
    trigger, found = fault.trigger, []
    for _, life in outcome.of(records.Pushes, fault.node):
        name = chance.life(fault.node, life.incarnation)
        for step in range(life.begun + 1):
            if trigger.probability is not None:
                is_drawn = chance.uniform(outcome.plan.seed, f"fault/{k}", name, step) < trigger.probability
            else:
                is_drawn = life.incarnation == 1 and trigger.step in (None, step)
            found += [(life.incarnation, step)] * is_drawn
    return found


def has_passed(outcome: Outcome, fault: Fault, incarnation: int, step: int) -> bool:
    """Whether a life has certainly been at the point, and gone on, while training went on."""
    applied, seen = (
        {r.step for _, r in outcome.of(kind) if (r.worker, r.incarnation) == (fault.node, incarnation)}
        for kind in (records.Update, records.Refused)
    )
    if fault.trigger.point in ("during-pull", "after-pull"):
        return max(applied, default=-1) >= step
    return step in applied | seen and max(applied, default=-1) > step


@pytest.mark.parametrize("seeds", blocks(), ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_the_books_close_whatever_happens(simulate: Simulate, seeds: range) -> None:
    """One run after another; the first that fails is named with the way to repeat it."""
    for seed in seeds:
        try:
            check(simulate(scenario_of(seed)))
        except Exception as error:  # noqa: BLE001 - whatever it is, the seed is what to look at
            again = f"EDGEBED_RANDOM_FAULTS={seed}-{seed} pytest {__file__}"
            pytest.fail(f"seed {seed}: {error!r}; again with {again}")
