"""What a push and its answer take on this machine beside link and computation, for each method: measured live.

Sockets, the encoding of messages, the server's work and the wait for a core take a few milliseconds, which virtual time
has no model of. So three workers without links train for a second as a study runs live, and what their iterations take
longer than pause, gradients and compression is the exchange. With a large model, whose bytes take longer than anything
else, they make fewer iterations with long pauses, so that they do not wait for each other.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from edgebed.algorithms.registry import batches_a_push
from edgebed.core.runtimes import Emulation, Runtime
from edgebed.planning.planning import plan_trials
from edgebed.scenario.load import load_scenario
from edgebed.studies.ranking.drawn_methods import model_bytes
from edgebed.studies.ranking.short_runs import series_of
from edgebed.studies.sweep.costs import rounded

WORKERS = 3
PAUSE_S = 0.02
LARGE_BYTES = 500_000
"""Bytes from which on a model is a large one."""


class Pace(NamedTuple):
    """How workers iterate that are measured."""

    pause_s: float
    warm_up: int
    """Iterations of each worker that are left out."""
    iterations: int
    """Iterations of each worker that are measured."""


USUAL, LARGE = Pace(PAUSE_S, 10, 40), Pace(1.0, 1, 4)


def exchange_s(task: Mapping[str, Any], variant: Mapping[str, Any], runtime: Runtime, emulation: Emulation) -> float:
    """Seconds that a push and its answer take; 0 where nothing is left of them.

    `task` has the data, the model and the times of gradient and compression as measured here, `variant` the method, all
    as a scenario writes them. InfrastructureError where this machine cannot run it.
    """
    pace = LARGE if (model_bytes(task) or 0) >= LARGE_BYTES else USUAL
    updates = WORKERS * (pace.warm_up + pace.iterations)
    scenario = {
        "name": "exchange",
        "task": dict(task),
        "fleet": {"edge": {"count": WORKERS, "waiting": f"{1000 * pace.pause_s:g}ms"}},
        "evaluation": {"every": f"{updates} updates"},
        "stop": {"updates": updates, "time": "1m"},
        **{key: value for key, value in variant.items() if key != "task"},
    }
    (planned,) = plan_trials(load_scenario(scenario, ()))
    worker = planned.plan.workers()[0]
    known_s = pace.pause_s + batches_a_push(worker) * worker.task.gradient_time_s + worker.task.compression_time_s
    at_s = series_of(scenario, runtime, emulation).updates.t
    first, last = at_s[WORKERS * pace.warm_up - 1], at_s[updates - 1]
    return max(0.0, rounded(float(last - first) / pace.iterations - known_s))
