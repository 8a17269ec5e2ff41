"""What a restart takes on this machine beside its delay, for the server and for other nodes: measured live.

An end is noticed late, a container or a process has to come up, and most nodes load torch. So the server and workers of
a small training are killed a few times, and what passes from each kill until the next incarnation runs is a restart.
"""

from collections.abc import Iterable, Iterator, Mapping
from statistics import median
from typing import Any

from edgebed.core.errors import InfrastructureError
from edgebed.core.records import Node
from edgebed.core.runtimes import Emulation, Runtime
from edgebed.journal.series import Series
from edgebed.studies.ranking.short_runs import series_of
from edgebed.studies.sweep.costs import rounded

KILLED = ("server", "edge-0", "server", "edge-1", "server", "edge-2")
EVERY_S = 6
"""Time from one kill to the next, in which a restart must be over."""


def restart_times(task: Mapping[str, Any], runtime: Runtime, emulation: Emulation) -> dict[str, float]:
    """Seconds that a restart takes, the median, for `server` and `others`, as `restart_time` of a scenario.

    `task` has the data and the model as a scenario writes them. InfrastructureError where this machine cannot run it,
    or a node did not come back.
    """
    scenario = {
        "name": "restart",
        "task": dict(task),
        "method": "asgd",
        "fleet": {"edge": {"count": 3, "waiting": "100ms"}},
        "evaluation": {"every": "1h"},
        "faults": [{"kill": node, "at": f"{1 + EVERY_S * place}s"} for place, node in enumerate(KILLED)],
        "on_failure": "restart",
        "restart_delay": "0s",
        "stop": {"time": f"{1 + EVERY_S * len(KILLED)}s"},
    }
    took = list(_took(series_of(scenario, runtime, emulation)))
    return {
        "server": rounded(median(seconds for node, seconds in took if node == "server")),
        "others": rounded(median(seconds for node, seconds in took if node != "server")),
    }


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
