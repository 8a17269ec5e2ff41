"""`churn`: workers leave and come back all the time, so many a minute.

Its time is divided into as many slots as workers are to leave. In each of them one leaves, at a moment that the seed
draws, and who that is is drawn among those present. So the number is exact, and nobody leaves who is away.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, ClassVar

from pydantic import Field, WithJsonSchema

from edgebed.core import units
from edgebed.core.planned.fault import FaultPlan, FaultStep, Trigger
from edgebed.core.quantities import count_text
from edgebed.scenario.faults.settings.entry import FaultSection, step
from edgebed.scenario.faults.settings.targets import Draw, Roster, Target, nodes_of, size_of
from edgebed.scenario.mistakes.problems import Problem, show
from edgebed.scenario.names import WORKERS
from edgebed.scenario.section import Duration, Form

ONLY_WORKERS = "only workers leave and come back; see restart"


@dataclass(frozen=True)
class PerMinute:
    """A rate: so many a minute, or such a share of all."""

    count: int | None = None
    share: float | None = None

    def times(self, size: int, duration_s: float) -> int:
        """Return how often one of `size` leaves in a time, rounded to the nearest whole number."""
        a_minute = self.count if self.count is not None else (self.share or 0.0) * size
        return math.floor(a_minute * duration_s / 60.0 + 0.5)


def _read(given: object) -> PerMinute:
    if isinstance(given, int) and not isinstance(given, bool) and given >= 1:
        return PerMinute(count=given)
    if isinstance(given, str) and given.endswith("%") and (share := units.parse_percentage(given)):
        return PerMinute(share=share)
    raise ValueError(f"not how many a minute: {show(given)}; a number, e.g. 3, or a share of them, e.g. 20%")


def _write(rate: PerMinute) -> int | str:
    return units.format_percentage(rate.share) if rate.share is not None else rate.count or 0


Rate = Annotated[
    PerMinute,
    Form(
        _read,
        _write,
        WithJsonSchema(
            {
                "anyOf": [
                    {"type": "integer", "minimum": 1},
                    {"type": "string", "title": "percentage", "pattern": units.PERCENTAGE_PATTERN},
                ]
            }
        ),
    ),
]


class Churn(FaultSection):
    """Workers leave, as by `kill`, and come back as new ones that know nothing of before."""

    kind: ClassVar[str] = "churn"
    example: ClassVar[str] = "{ churn: 6, of: edge, at: 30s, for: 60s, absent: 3s }"
    triggers: ClassVar[tuple[str, ...]] = ("at",)
    repeats: ClassVar[bool] = False
    not_for = MappingProxyType({"server": ONLY_WORKERS, "evaluator": ONLY_WORKERS})
    not_here = MappingProxyType(
        {
            "at_update": "its moments are drawn by the seed before training; give at",
            "every": "churn recurs by itself; for says how long",
            "until": "churn recurs by itself; for says how long",
        }
    )

    churn: Rate
    """Workers that leave in a minute: a number, or a share of them."""
    of: Target = WORKERS
    """Target workers."""
    duration: Duration = Field(alias="for")
    """How long workers keep leaving; the last ones come back after it."""
    absent: Duration = 10.0
    """How long a worker is away."""

    @property
    def target(self) -> Target:
        """Return the workers concerned, which do not stand at the kind's key."""
        return self.of

    def steps(self, node: str) -> tuple[FaultStep, ...]:
        """Return the steps: the worker leaves, and comes back."""
        return step(0.0, node, "kill"), step(self.absent, node, "launch")

    def resolve(self, name: str, roster: Roster, draw: Draw) -> Iterator[FaultPlan]:
        """Yield one fault for each time that a worker leaves."""
        members = nodes_of(self.of, roster, draw)
        leaving = self.churn.times(len(members), self.duration)
        back_s = dict.fromkeys(members, 0.0)
        for k in range(leaving):
            slot_s = self.duration / leaving
            within_s = math.ceil(1000 * (k * slot_s + draw("", k) * (slot_s - 0.001))) / 1000  # whole milliseconds
            at_s = round((self.at or 0.0) + within_s, 3)
            present = [node for node in members if back_s[node] <= at_s]
            node = min(present, key=lambda node: (draw(node, k + 1), node))
            back_s[node] = round(at_s + self.absent, 6)
            yield FaultPlan(name=name, node=node, trigger=Trigger(at_s=at_s), steps=self.steps(node), recurs=True)

    def problems(self, roster: Roster) -> Iterator[Problem]:
        """Yield a problem where nobody leaves, or where at some time nobody is left who can."""
        found = list(self.target_problems("of", self.of, roster))
        yield from found
        if found:
            return
        size = size_of(self.of, roster)
        leaving = self.churn.times(size, self.duration)
        if leaving == 0:
            yield Problem((self.kind,), f"nobody leaves: {_write(self.churn)} a minute of {count_text(size, 'worker')}")
            return
        away = math.ceil(self.absent * leaving / self.duration) + 1
        if away > size:
            message = f"up to {away} are away at once, of {count_text(size, 'worker')}; let fewer leave, or come sooner"
            yield Problem(("absent",), message)
