"""Random faults of layer-wise training from a seed, and what the simulation knows of each step.

The truth is told by the hearts themselves: what each leads to is looked at as it happens, and which backup a history
began from is known, not concluded.
"""

import random
from collections import Counter
from typing import Any, NamedTuple

from edgebed.core import records
from edgebed.journal.accounts.ledger import Ledger
from edgebed.journal.accounts.step_accounts import FATES
from edgebed.journal.accounts.step_fates import NEVER
from edgebed.roles.events import Compute, Effect, Event, Journal
from edgebed.roles.layerwise.histories import HISTORIES
from edgebed.roles.layerwise.layer_shard import LayerShard
from edgebed.roles.layerwise.shard_server import ShardServer
from edgebed.roles.layerwise.shard_work import ForwardJob
from edgebed.runtimes.simulation.simulated_node import SimulatedIncarnation
from edgebed.runtimes.simulation.simulation import Simulation
from edgebed.wire.messages import Configure

METHODS: tuple[dict[str, Any], ...] = (
    {"preset": "back-propagation"},
    {"preset": "back-propagation", "learning": {"micro_batches": 3}},
    {"preset": "synthetic-gradients", "learning": {"hidden": 4}},
    {"preset": "synthetic-gradients", "learning": {"hidden": 4, "target": "back-propagated"}},
    {"preset": "synthetic-gradients", "learning": {"hidden": 4, "blend": 0.5}},
    {"preset": "synthetic-gradients", "learning": {"hidden": 4, "send_every": 3}},
    {"preset": "synthetic-inputs", "learning": {"hidden": 4, "input_hidden": 4}},
    {"preset": "synthetic-inputs", "learning": {"hidden": 4, "send_every": 2}},
    {"preset": "synthetic-inputs", "learning": {"hidden": 4, "match": "batch"}},
    {"preset": "synthetic-inputs", "learning": {"hidden": 4, "match": "batch", "send_every": 2}},
    {"preset": "direct-minimisation", "learning": {"hidden": 4}},
    {"preset": "decoupled-greedy"},
    {"preset": "decoupled-greedy", "learning": {"send_every": 3}},
)
APART = METHODS[2:3]
"""Their modules may lie apart."""


def scenario_of(seed: int) -> dict[str, Any]:
    """A method of all, its shards on slow and fast devices, and up to five faults of any node but the evaluator."""
    draw = random.Random(seed)
    method = METHODS[seed % len(METHODS)]
    shards = {"cuts": "even", "traffic": draw.choice(("direct", "store")), "queue": draw.choice((1, 2, 4))}
    if method in APART and draw.random() < 0.5:
        shards |= {"traffic": "direct", "modules": "apart"}
    return {
        "name": "random-shards",
        "question": "Is every step accounted for?",
        "seed": seed,
        "task": {"data": "digits", "model": "four-layer", "width": 2, "batch_size": 20, "gradient_time": "40ms"},
        "method": method,
        "fleet": {
            "fast": {"count": 2},
            "slow": {"count": 1, "cpus": 0.5, "uplink": "4mbit", "downlink": "8mbit", "latency": "10ms"},
        },
        "shards": shards,
        "evaluation": {"every": f"{draw.choice((2, 5, 10))} updates"},
        "checkpoints": {"every": f"{draw.choice((1, 4, 5, 10))} updates"},
        "stop": {"updates": draw.randint(15, 40), "time": f"{draw.choice((5, 15))}s"},
        "deadlines": {"silence": f"{draw.choice((1, 4))}s", "check": f"{draw.choice((0.3, 1))}s", "stall": "10s"},
        "on_failure": draw.choice(("ignore", "restart", "restart", "restart")),
        "restart_delay": f"{draw.choice((0, 1))}s",
        "faults": [_fault(draw, shards) for _ in range(draw.randint(0, 5))],
        "restart_time": {"server": f"{draw.choice((0, 0.7))}s", "others": f"{draw.choice((0, 1.3))}s"},
    }


def _fault(draw: random.Random, shards: dict[str, Any]) -> dict[str, Any]:
    """At a time or at an update; most are over by themselves."""
    kind = draw.choice(("kill", "kill", "freeze", "restart", "cut", "link", "churn"))
    others = ["server"] + ["store"] * (shards["traffic"] == "store") + ["modules"] * ("modules" in shards)
    target = draw.choice(("fast-0", "fast-1", "slow-0", draw.choice(others)))
    at = {"at": f"{draw.uniform(0, 4):.3f}s"}
    if kind == "churn":
        return {"churn": 20, "of": "fast", "at": "1s", "for": "3s", "absent": "1s"}
    settings: dict[str, Any] = {kind: target}
    if kind in ("freeze", "cut") and draw.random() < 0.8:
        settings |= {"for": f"{draw.choice((0.5, 2, 3, 4))}s"}
    elif kind == "restart":
        settings |= {"delay": f"{draw.choice((0, 1, 3))}s"}
    elif kind == "link":
        settings |= {"uplink": "2mbit", "latency": "20ms", "for": "2s"}
    return settings | (at if draw.random() < 0.6 else {"at_update": draw.randint(1, 15)})


class Known(NamedTuple):
    """A step that a shard has begun."""

    shard: str
    incarnation: int
    history: int
    step: int


Place = tuple[int, int]
"""A history, and a step in it."""


class Truth:
    """Looks at the hearts of a simulation; what became of every step is known when that is over."""

    def __init__(self, simulation: Simulation) -> None:
        self.begun: set[Known] = set()
        self.made: set[Known] = set()
        self.cut_off: set[Known] = set()
        """In progress when their shard died, or when the trial ended without a word of it."""
        self.origins: dict[int, Place | None] = {}
        """Of each history, the backup that it began from."""
        self.sent: dict[int, Place] = {}
        """By step, the newest backup that a server sent to be written."""
        self.written: Place | None = None
        """The newest backup that is."""
        self.model: Place | None = None
        """Where the final model was made; (0, 0): it has the initial weights."""
        self.hearts: list[LayerShard] = []
        self.goodbyes: set[SimulatedIncarnation] = set()
        make, end, goodbye = simulation.hearts.build, simulation._end, simulation._say_goodbye
        keep = simulation.checkpoints.keep_backup

        def make_known(configure: Configure) -> Any:
            heart = make(configure)
            if isinstance(heart, LayerShard):
                self._follow_shard(heart)
            elif isinstance(heart, ShardServer):
                self._follow_server(heart)
            return heart

        def say_goodbye(life: SimulatedIncarnation, reason: str) -> None:
            self.goodbyes.add(life)
            goodbye(life, reason)

        def end_known(life: SimulatedIncarnation) -> None:
            if isinstance(life.heart, LayerShard) and life not in self.goodbyes:
                self.cut_off |= self._in_progress(life.heart)
            end(life)

        def keep_known(step: int, *rest: Any) -> None:
            self.written = self.sent[step]
            keep(step, *rest)

        simulation.hearts.build, simulation._end, simulation._say_goodbye = make_known, end_known, say_goodbye
        simulation.launcher.end, simulation.checkpoints.keep_backup = end_known, keep_known

    def _in_progress(self, heart: LayerShard) -> set[Known]:
        now = heart.plan.node, heart.incarnation, heart.history
        return {known for known in self.begun - self.made if known[:3] == now}

    def _follow_shard(self, heart: LayerShard) -> None:
        handle = heart.handle

        def followed(event: Event, now: float) -> list[Effect]:
            effects = handle(event, now)
            for effect in effects:
                if isinstance(effect, Compute) and isinstance(effect.job, ForwardJob) and effect.job.at.micro == 0:
                    known = Known(heart.plan.node, heart.incarnation, heart.history, effect.job.at.step)
                    assert known not in self.begun
                    self.begun.add(known)
                elif isinstance(effect, Journal) and isinstance(effect.record, records.Step):
                    self.made.add(Known(heart.plan.node, heart.incarnation, heart.history, effect.record.step))
            return effects

        heart.handle = followed

    def _follow_server(self, heart: ShardServer) -> None:
        handle, kept, theta, model = heart.handle, self.written, heart.theta, (0, 0)

        def followed(event: Event, now: float) -> list[Effect]:
            nonlocal kept, theta, model
            effects = handle(event, now)
            if heart.theta is not theta:
                theta, model = heart.theta, (heart.history, heart.version)
            for effect in effects:
                record = effect.record if isinstance(effect, Journal) else None
                if isinstance(record, records.BackedUp):
                    kept = self.sent[record.step] = heart.history, record.step
                elif isinstance(record, records.Resumed):
                    self.origins[record.history] = kept
                elif isinstance(record, records.Finished):
                    self.model = model
            return effects

        heart.handle = followed

    def counts(self) -> dict[tuple[str, int], Counter[str]]:
        """By shard and life, what became of how many of its steps."""
        found: dict[tuple[str, int], Counter[str]] = {}
        for known in self.begun:
            found.setdefault(known[:2], Counter())[self._fate(known)] += 1
        return found

    def _fate(self, known: Known) -> str:
        is_made = known in self.made
        if is_made and (self.model is None or self._leads_to(known, *self.model)):
            later = [history for history in self.origins if history > known.history]
            if self.model or all(self._leads_to(known, history, NEVER) for history in later):
                return "applied"
        if known in self.cut_off:
            return "lost_with_worker"
        for history in sorted(self.origins):
            if history > known.history and not (is_made and self._leads_to(known, history, NEVER)):
                is_another_life = history // HISTORIES != known.history // HISTORIES
                return "lost_with_server" if is_another_life else "rolled_back"
        return "unfinished"

    def _leads_to(self, known: Known, history: int, step: int) -> bool:
        """Whether a step was learnt in what a history had come to at another step."""
        place: Place | None = history, step
        while place:
            if place[0] == known.history:
                return known.step < place[1]
            place = self.origins.get(place[0])
        return False


def counts_of(ledger: Ledger) -> Counter[str]:
    """What became of how many steps, as the books have it."""
    return +Counter({name: getattr(ledger, name) for name in FATES})
