"""What virtual time has no model of, measured live: what a push and its answer take beside all else, and a restart.

Sockets, the encoding of messages, the server's work and the wait for a core take a few milliseconds. So three workers
without links train for a second, and what their iterations take longer than pause, gradients and compression is the
exchange. With a large model, whose bytes take longer than anything else, they make fewer iterations with long pauses,
so that they do not wait for each other.

An end is noticed late, a container or a process has to come up, and most nodes load torch. So the server and workers of
a small training are killed a few times, and what passes from each kill until the next incarnation runs, beside the
delay that is asked for, is a restart.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from statistics import median
from typing import Any, NamedTuple

from edgebed.algorithms.registry import batches_a_push
from edgebed.core.errors import InfrastructureError
from edgebed.core.records import Node
from edgebed.core.runtimes import Emulation, Runtime
from edgebed.emulation.calibration import Beside
from edgebed.journal.series import Series
from edgebed.planning.planning import plan_trials
from edgebed.running.run import run, without_report
from edgebed.scenario.load import load_scenario
from edgebed.studies.sweep.costs import Costs, rounded, times_of, with_costs

WORKERS = 3
PAUSE_S = 0.02
KILLED = ("server", "edge-0", "server", "edge-1", "server", "edge-2")
EVERY_S = 6
"""Time from one kill to the next, in which a restart must be over."""
RESTARTS_S = 1 + EVERY_S * len(KILLED)
"""Time of the training whose nodes are killed."""


class Pace(NamedTuple):
    """How workers iterate that are measured."""

    pause_s: float
    warm_up: int
    """Iterations of each worker that are left out."""
    iterations: int
    """Iterations of each worker that are measured."""


USUAL, LARGE = Pace(PAUSE_S, 10, 40), Pace(1.0, 1, 4)
TASK = {"data": "digits", "model": "small", "batch_size": 10}
"""What nodes train that are calibrated."""


def beside(runtime: Runtime, emulation: Emulation) -> Beside:
    """Measure exchanges and restarts of `asgd` and a small model; its gradient and compression before."""
    method = {"method": "asgd"}
    scenario = {"name": "costs", "task": TASK, **method, "fleet": {"edge": {}}, "stop": {"updates": 1}}
    (planned,) = plan_trials(load_scenario(scenario, ()))
    times = times_of(planned, with_costs(planned, Costs(), lambda _: None))
    return Beside(
        exchange_s=exchange_s({**TASK, **times}, method, runtime, emulation),
        restart_s=restart_times(TASK, runtime, emulation),
    )


def exchange_s(
    task: Mapping[str, Any], variant: Mapping[str, Any], runtime: Runtime, emulation: Emulation, pace: Pace = USUAL
) -> float:
    """Seconds that a push and its answer take; 0 where nothing is left of them.

    `task` has the data, the model and the times of gradient and compression as measured here, `variant` the method, all
    as a scenario writes them. InfrastructureError where this machine cannot run it.
    """
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


def restart_times(task: Mapping[str, Any], runtime: Runtime, emulation: Emulation) -> dict[str, float]:
    """Seconds that a restart takes, the median, for `server` and `others`, as `restart_time` of a scenario.

    `task` has the data and the model as a scenario writes them. InfrastructureError where this machine cannot run it,
    or a node did not come back.
    """
    scenario = {
        "name": "restart",
        "task": dict(task),
        "method": "asgd",
        "fleet": {"edge": {"count": WORKERS, "waiting": "100ms"}},
        "evaluation": {"every": "1h"},
        "faults": [{"kill": node, "at": f"{1 + EVERY_S * place}s"} for place, node in enumerate(KILLED)],
        "on_failure": "restart",
        "restart_delay": "0s",
        "stop": {"time": f"{RESTARTS_S}s"},
    }
    took = list(_took(series_of(scenario, runtime, emulation)))
    return {
        "server": rounded(median(seconds for node, seconds in took if node == "server")),
        "others": rounded(median(seconds for node, seconds in took if node != "server")),
    }


def series_of(scenario: Mapping[str, Any], runtime: Runtime, emulation: Emulation) -> Series:
    """Run a scenario without variants; return its trial's series. InfrastructureError where it ends too early."""
    name = scenario["name"]
    with tempfile.TemporaryDirectory(prefix=f"edgebed-{name}-") as place:
        (trial,) = run(without_report, scenario, runtime=runtime, emulation=emulation, runs_dir=place).trials.values()
        series = trial.series
    if not series.ran_to_end:
        reason = series.ended.reason if series.ended else "it broke off"
        raise InfrastructureError(f"what a {name} takes cannot be measured here: {series.outcome}, {reason}")
    return series


def _took(series: Series) -> Iterator[tuple[str, float]]:
    """For each kill the node, and the seconds until its next incarnation ran."""
    for done in series.faults:
        if done.record.action == "kill":
            node = done.record.target
            yield node, _runs_t(series.nodes, node, done.t) - done.asked_t


def _runs_t(nodes: Iterable[tuple[float, Node]], name: str, since_t: float) -> float:
    for t, node in nodes:
        if node.name == name and node.state == "running" and t > since_t:
            return t
    raise InfrastructureError(f"what a restart takes cannot be measured: {name} did not come back within {EVERY_S} s")
