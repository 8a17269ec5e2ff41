"""Random faults from a seed, for tests in all runtimes: the scenario, and which faults its journal must name.

A seed gives the same scenario, and so the same plan, everywhere. In virtual time a fault is asked for exactly when it
is due; in wall-clock time the end of a trial is less sharp, so that near it a fault may be there or not (`slack_s`).
"""

import math
import os
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import soaking
from shuffled import check_shuffled

from edgebed.core import chance, records
from edgebed.core.plan import TrainingPlan
from edgebed.core.planned.fault import FaultPlan, FaultStep
from edgebed.core.units import format_duration
from edgebed.journal.accounts.ledger import Accounting
from edgebed.journal.accounts.update_accounts import UpdateAccounting
from edgebed.journal.folds import Timeline
from edgebed.journal.journal import Entry
from edgebed.planning.planning import plan_trials
from edgebed.roles.control.fault_text import change_text
from edgebed.scenario.load import load_scenario

POINTS = ({"before": "push"}, {"during": "push"}, {"after": "push"}, {"during": "pull"}, {"after": "pull"})
METHODS: tuple[Any, ...] = (
    "asgd",
    "adacomp",
    "sync-sgd",
    {"preset": "sync-sgd", "aggregation": {"quorum": 0.6, "deadline_s": 0.5}},
)
HOLDING: tuple[Any, ...] = (
    {"preset": "ssp", "aggregation": {"bound": 1}},
    {"preset": "softsync", "aggregation": {"count": 3}, "compression": {"name": "int8"}},
    {"preset": "fedbuff", "aggregation": {"count": 2}, "local_work": {"steps": 2}},
    {"preset": "dgc", "aggregation": {"momentum": 0.5}},
    {"preset": "fedavg", "local_work": {"steps": 2}, "aggregation": {"quorum": 0.6, "deadline_s": 0.5}},
)
"""Others, most of which hold pushes or workers for a while."""
DOWNLINK: tuple[Any, ...] = ({"preset": "sync-sgd", "downlink": {"name": "int8"}},)
SERVED: tuple[Any, ...] = (
    *METHODS,
    *HOLDING,
    *DOWNLINK,
    {"preset": "asgd", "aggregation": {"schedule": "plateau", "patience": 0}},
    {"preset": "sync-sgd", "aggregation": {"quorum": 0.6, "deadline_s": 0.5, "momentum": 0.5}},
)
"""All of these, and more of what a server remembers: for storms that it is in."""
REMEMBERING: tuple[Any, ...] = (
    {"preset": "scaffold", "local_work": {"steps": 2}, "downlink": {"name": "int8"}},
    {"preset": "feddyn", "local_work": {"steps": 2}, "aggregation": {"quorum": 0.6, "deadline_s": 0.5}},
    {"preset": "streaming-diloco", "local_work": {"steps": 4, "fragments": 2, "overlap": 1}},
    {"preset": "fednova", "local_work": {"epochs": 1.0}},
    {"preset": "fedasync", "local_work": {"steps": 2}},
    {"preset": "dc-asgd", "aggregation": {"adaptive": True}},
)
"""Those whose workers or server remember more than a model."""
SEEDS = "EDGEBED_RANDOM_FAULTS"


def seeds(few: int, many: int) -> range:
    """Those to run: `few` in the suite, `many` in a soak; or as the variable says: `17-17` for that of 17 alone."""
    first, _, last = os.environ.get(SEEDS, "").partition("-")
    return range(int(first), int(last) + 1) if first else soaking.seeds(few, many)


def scenario_of(
    seed: int, *, memory: bool = True, methods: Sequence[Any] = METHODS, hubs: bool = False
) -> dict[str, Any]:
    """A small fleet, of which some have links, and up to six faults of any kind, with what they take back.

    Up to four faults more are of the server and of the evaluator: where the policy restarts these, or with `hubs`
    whatever the policy is. Without `memory`, where nothing holds memory caps, a worker is killed instead of running
    into its own.
    """
    draw = random.Random(seed)
    fast, slow = draw.randint(2, 3), 2
    faults = [_fault(draw, fast, slow) for _ in range(draw.randint(1, 6))]
    faults += [
        {do: fault[undo], "after": "push", "step": draw.randint(0, 12)}  # perhaps before, perhaps never
        for undo, do in (("thaw", "freeze"), ("heal", "cut"))
        for fault in faults
        if undo in fault
    ]
    method, pull = draw.choice(methods), draw.choice(("full", "changed-since"))
    if isinstance(method, dict) and "downlink" in method:
        pull = "full"
    scenario: dict[str, Any] = {
        "name": "random-faults",
        "question": "Is every update accounted for?",
        "seed": seed,
        "task": {"data": "digits", "model": "small", "batch_size": 10, "gradient_time": "20ms"},
        "method": method,
        "pull": pull,
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
        "stop": {"updates": draw.randint(60, 120), "time": "8s"},
        "deadlines": {"silence": f"{draw.choice((1, 4, 60))}s", "check": f"{draw.choice((0.3, 1))}s", "stall": "30s"},
        "on_failure": draw.choice(("ignore", "ignore", "restart", "stop")),
        "restart_delay": f"{draw.choice((0, 1))}s",
        "detector": draw.choice(("network", "network", "oracle")),
        "restart_time": {"server": f"{draw.choice((0, 0.7))}s", "others": f"{draw.choice((0, 1.3))}s"},
    }
    if hubs or scenario["on_failure"] == "restart":
        draw_hub = random.Random(f"{seed} hubs")
        faults += [_hub_fault(draw_hub) for _ in range(draw_hub.randint(1, 4))]
    return scenario | {"faults": faults if memory else [_without_memory(fault) for fault in faults]}


def _fault(draw: random.Random, fast: int, slow: int) -> dict[str, Any]:
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
        return settings | {"at_update": draw.randint(1, 60)}
    how = draw.choice(({}, {"step": draw.randint(0, 12)}, {"probability": 0.05}))
    return settings | draw.choice(POINTS) | how


def _hub_fault(draw: random.Random) -> dict[str, Any]:
    """Mostly the server is started anew; what an evaluator cannot be the target of does not befall it."""
    trigger = draw.choice(({"at": f"{draw.uniform(0, 3):.3f}s"}, {"at_update": draw.randint(1, 60)}))
    target = draw.choice(("server", "server", "server", "evaluator"))
    kind = draw.choice(("restart", "restart", "restart", "kill", "freeze", "cut", "link"))
    if target == "evaluator" and kind in ("cut", "link"):
        kind = "freeze"
    settings: dict[str, Any] = {kind: target} | trigger
    if kind == "restart":
        settings |= {"delay": f"{draw.choice((0, 0.3))}s"}
    elif kind == "link":
        settings |= {"uplink": "10mbit", "latency": "5ms"}
    return settings | ({"for": f"{draw.choice((0.5, 3))}s"} if kind in ("freeze", "cut", "link") else {})


def _without_memory(fault: dict[str, Any]) -> dict[str, Any]:
    return {("kill" if key == "memory" else key): value for key, value in fault.items()}


def plan_of(scenario: dict[str, Any]) -> TrainingPlan:
    """The plan of its only trial."""
    (planned,) = plan_trials(load_scenario(scenario, []))
    return planned.plan


class Told(NamedTuple):
    """What a trial's journal tells."""

    plan: TrainingPlan
    entries: Sequence[Entry]

    def of(self, kind: type, node: str | None = None) -> list[tuple[float, Any]]:
        """(time, record) of a kind, by one node or by all."""
        return [(t, record) for t, who, record in self.entries if isinstance(record, kind) and node in (None, who)]

    @property
    def ended(self) -> tuple[float, records.Ended]:
        """When and how the trial ended."""
        ((t, ended),) = self.of(records.Ended)
        return t, ended

    @property
    def accounting(self) -> Accounting:
        """The books, closed."""
        accounting = UpdateAccounting(Timeline()).add_all(self.entries).close()
        assert accounting is not None
        return accounting


def check_journal(told: Told, slack_s: float = 0.0) -> None:
    """What must hold of every run: it has ended, its books close, and it names each fault that was due, and no other.

    `slack_s`: so long before training is over a fault may be asked for and never done; 0 in virtual time.
    """
    _, ended = told.ended
    assert ended.outcome in ("completed", "failed")
    assert ended.reason
    books = told.accounting
    assert books.closes, books.problems
    assert books.total.unexplained == 0
    _check_faults(told, slack_s)
    check_shuffled(told.entries, told.plan.seed)


def _check_faults(told: Told, slack_s: float) -> None:
    over_s, ended_s = _over_s(told, slack_s), told.ended[0]
    done = Journaled(told)
    for k, fault in enumerate(told.plan.faults):
        for trigger, began_s in _occasions(told, done, k, over_s, slack_s):
            for step in fault.steps:
                asked_s = began_s + step.after_s
                if asked_s < over_s:
                    done.take(fault, step, trigger, asked_s)
                elif asked_s <= ended_s + 2e-6:
                    done.may_take(fault, step, trigger, asked_s)
    assert not done.left, f"journaled, but not due: {done.left}"


def _over_s(told: Told, slack_s: float) -> float:
    """Until when each fault that comes due must be done: until training ends, as soon as anything tells of that."""
    ended_s, _ = told.ended
    signs = [t for t, _ in told.of(records.Finished)]
    if not slack_s:
        return min(signs, default=ended_s)
    signs += [t for t, record in told.of(records.Node) if record.state == "stopped"]
    return min(signs, default=ended_s) - slack_s


class Journaled:
    """The journal's faults, those of the policy left out; what is taken is no longer there."""

    def __init__(self, told: Told) -> None:
        self.left = Counter(
            (record.name, record.target, record.action, record.change, record.trigger, round(record.asked_s, 6))
            for _, record in told.of(records.Fault)
            if record.name != "on_failure"
        )

    def take(self, fault: FaultPlan, step: FaultStep, trigger: str, asked_s: float) -> None:
        """It must be there."""
        what = f"{fault.name}: {step.injection.action} {step.injection.node} ({trigger}, {asked_s:.6f} s)"
        assert self.may_take(fault, step, trigger, asked_s), f"{what} is not journaled"

    def may_take(self, fault: FaultPlan, step: FaultStep, trigger: str, asked_s: float) -> bool:
        """Whether it was there."""
        wanted = _key(fault, step, trigger)
        found = [entry for entry in self.left if entry[:-1] == wanted and abs(entry[-1] - asked_s) < 2e-6]
        self.left -= Counter(found[:1])
        return bool(found)

    def asked_s(self, fault: FaultPlan, trigger: str) -> list[float]:
        """When its first steps were asked for."""
        wanted = _key(fault, fault.steps[0], trigger)
        return sorted(entry[-1] for entry, count in self.left.items() for _ in range(count) if entry[:-1] == wanted)


def _key(fault: FaultPlan, step: FaultStep, trigger: str) -> tuple[str, ...]:
    """What the journal says of a step, but when; the end of a fault in the next life of its node may look like one."""
    injection = step.injection
    return fault.name, injection.node, injection.action, change_text(injection), trigger


def _occasions(told: Told, done: Journaled, k: int, over_s: float, slack_s: float) -> list[tuple[str, float]]:
    """(trigger as the journal has it, when) of all times that the k-th fault was triggered."""
    fault, trigger = told.plan.faults[k], told.plan.faults[k].trigger
    if trigger.at_s is not None:
        return [_at(told, done, fault, slack_s)]
    if trigger.at_update is not None:
        return _at_update(told, done, fault, over_s)
    found: list[tuple[str, float]] = []
    for life, step in places(told.plan, k, _lives(told, fault.node)):
        text = f"{trigger.point} {step}"
        asked_s = Counter(t for t in done.asked_s(fault, text) if life.since_s <= t <= life.until_s)
        asked_s -= Counter(t for other, t in found if other == text)  # in the life before, which ended at that moment
        if asked_s:
            found.append((text, min(asked_s)))
            if trigger.probability is None:
                break
        else:
            assert not _has_passed(told, fault, life.incarnation, step), f"{fault.name}: {text} is not journaled"
    return found


def _at(told: Told, done: Journaled, fault: FaultPlan, slack_s: float) -> tuple[str, float]:
    """Asked for so long after training began, which the journal's clock, where it is a real one, tells a bit later."""
    (began_s, _), *_ = told.of(records.Trial)
    due_s, text = began_s + fault.trigger.at_s, f"at {format_duration(fault.trigger.at_s)}"
    asked_s = [t for t in done.asked_s(fault, text) if abs(t - due_s) <= slack_s]
    return text, min(asked_s, key=lambda t: abs(t - due_s), default=due_s)


def _at_update(told: Told, done: Journaled, fault: FaultPlan, over_s: float) -> list[tuple[str, float]]:
    """Asked for as soon as the controller hears of the update."""
    text = f"at update {fault.trigger.at_update}"
    applied_s = [t for t, record in told.of(records.Update) if record.version == fault.trigger.at_update]
    asked_s = done.asked_s(fault, text)[:1]
    assert asked_s or not applied_s or applied_s[0] >= over_s, f"{fault.name}: {text} is not journaled"
    assert not asked_s or asked_s[0] >= applied_s[0], f"{fault.name}: {text} came before that update"
    return [(text, t) for t in asked_s]


class Life(NamedTuple):
    """A life of a worker."""

    incarnation: int
    since_s: float
    until_s: float
    pushes: int
    """So many at most."""


def _lives(told: Told, node: str) -> list[Life]:
    """Those that began; what one has pushed since its last report may not be known."""
    joined = [round(t, 6) for t, record in told.of(records.Node) if (record.name, record.state) == (node, "joined")]
    begun = {life.incarnation: life.begun for life in told.accounting.lives if life.worker == node}
    until_s = [*joined[1:], math.inf]
    return [Life(k, *times, begun.get(k, 0) + 5) for k, times in enumerate(zip(joined, until_s, strict=False), 1)]


def places(plan: TrainingPlan, k: int, lives: Sequence[Life]) -> list[tuple[Life, int]]:
    """(life, push) at which the k-th fault waits: anybody can tell them from the seed."""
    fault, found = plan.faults[k], []
    for life in lives:
        name = chance.draw_name(fault.node, life.incarnation)
        for step in range(life.pushes):
            if fault.trigger.probability is not None:
                is_drawn = chance.uniform(plan.seed, f"fault/{k}", name, step) < fault.trigger.probability
            else:
                is_drawn = life.incarnation == 1 and fault.trigger.step in (None, step)
            found += [(life, step)] * is_drawn
    return found


def _has_passed(told: Told, fault: FaultPlan, incarnation: int, step: int) -> bool:
    """Whether a life has certainly been at the point, and gone on, while training went on."""
    applied, seen = (
        {r.step for _, r in told.of(kind) if (r.worker, r.incarnation) == (fault.node, incarnation)}
        for kind in (records.Update, records.Refused)
    )
    if fault.trigger.point in ("during-pull", "after-pull"):
        return max(applied, default=-1) >= step
    return step in applied | seen and max(applied, default=-1) > step
