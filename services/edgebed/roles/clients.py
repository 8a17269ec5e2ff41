"""What is measured client by client, on its way from a node's work to the journal."""

import math
from collections.abc import Iterator, Sequence

from edgebed.core.measures.task import Sums
from edgebed.core.planned.clients import ByClient
from edgebed.core.records import Clients
from edgebed.learning.objectives.objective import Objective
from edgebed.roles.work import ClientsResult

CLIENTS_AT_ONCE = 100
"""Clients of a job, and so of a line of the journal, at most."""
ROUNDING = 1e-9
"""Share of an interval by which a time may be short of its end."""


class DueByClient:
    """Which models are measured client by client: the first at or beyond each interval's end, and the final one."""

    def __init__(self, plan: ByClient | None) -> None:
        self.plan = plan
        self.last = -1
        """Interval in which a model was measured last."""

    def is_due(self, version: int, at_s: float = 0.0, *, final: bool) -> bool:
        """Whether the model of a version, and of a time, is due; each is asked for once."""
        if self.plan is None:
            return False
        if self.plan.every_updates is not None:
            count = version // self.plan.every_updates
        elif self.plan.every_s is not None:
            count = int(at_s / self.plan.every_s + ROUNDING)
        else:
            return final
        last, self.last = self.last, count
        return final or count > last


def batched(clients: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Some clients at a time."""
    return (tuple(clients[k : k + CLIENTS_AT_ONCE]) for k in range(0, len(clients), CLIENTS_AT_ONCE))


def clients_record(objective: Objective, result: ClientsResult) -> Clients:
    """The record of what was measured."""
    return Clients(
        version=result.version,
        clients=result.clients,
        measured=_by_measure(objective, result.sums),
        tuned=_by_measure(objective, result.tuned) if any(result.tuned) else {},
        final=result.final,
    )


def _by_measure(objective: Objective, sums: Sequence[Sums | None]) -> dict[str, tuple[float, ...]]:
    values = [{} if each is None else objective.measured(each) for each in sums]
    return {each.name: tuple(of.get(each.name, math.nan) for of in values) for each in objective.measures}
