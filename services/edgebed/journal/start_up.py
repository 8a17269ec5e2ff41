"""How long a live trial took to get going, from its journal alone: seconds since the launch, phase by phase.

launch --every node started--> --joined--> --ready, training begins--> every worker has contributed
"""

from collections.abc import Iterator

import msgspec
import numpy as np

from edgebed.core.plan import TrainingPlan
from edgebed.core.quantities import seconds_text
from edgebed.core.runtimes import is_virtual
from edgebed.journal.series import Series


class StartUp(msgspec.Struct, frozen=True, kw_only=True):
    """When each phase of a trial's start was over, in seconds since the launch.

    None: never, in a trial that ended before, or ran without some of its nodes.
    """

    nodes: int
    """Number of nodes expected."""
    started_s: float | None
    """When every node's process or container ran."""
    joined_s: float | None
    """When every node had said hello."""
    training_s: float | None
    """When every node that came was ready, and training began."""
    contributed_s: float | None
    """When an update of every worker had been applied."""


def start_up_of(plan: TrainingPlan, series: Series) -> StartUp | None:
    """The start-up phases of a trial; None where nothing is started: in the simulation, and in an empty journal."""
    if not series.nodes or (series.trial is not None and is_virtual(series.trial.runtime)):
        return None
    joined = series.reached_s.get("joined", {})
    started = joined | series.reached_s.get("started", {})  # a hello may be faster than the word of the start
    nodes = {node.node for node in plan.nodes}
    return StartUp(
        nodes=len(nodes),
        started_s=max(started.values()) if started.keys() >= nodes else None,
        joined_s=max(joined.values()) if joined.keys() >= nodes else None,
        training_s=series.training_s,
        contributed_s=_contributed_s(plan, series),
    )


def start_up_lines(start_up: StartUp) -> Iterator[str]:
    """Sentences such as `22 nodes started in 6.10 s, joined in 11.2 s, ready in 13.0 s`, then on contributions."""
    phases = (
        ("started", start_up.started_s),
        ("joined", start_up.joined_s),
        ("ready", start_up.training_s),
    )
    reached = [f"{word} in {seconds_text(after_s)}" for word, after_s in phases if after_s is not None]
    yield f"{start_up.nodes} nodes {', '.join(reached) or 'did not all start'}"
    if start_up.contributed_s is not None:
        yield f"every worker had an accepted update after {seconds_text(start_up.contributed_s)}"


def _contributed_s(plan: TrainingPlan, series: Series) -> float | None:
    """When the last worker's first update was applied; None if one has none."""
    if series.training_s is None or not set(series.workers) >= {node.node for node in plan.workers()}:
        return None
    _, first = np.unique(series.updates.worker, return_index=True)
    return series.training_s + float(series.updates.t[first].max())
