"""How long it takes until what a fault asks for is done: to one node, and to twenty at once, while they train.

An ordinary run suffers every kind of fault several times; its journal says of each when it was asked for and when it
was done. Of twenty at once it is the last that counts. What is done to the memory of a node is done when it has died;
what could not be done takes for ever.

- processes: namespaces and cgroups, as root
- containers: where an engine answers
"""

import contextlib
import math
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import edgebed
from edgebed.core import records
from edgebed.core.errors import EdgebedError
from edgebed.runtimes.containers.engine import connect

NODES = 20
GAP_S = 2.0
BACK_S = {"process": 10.0, "docker": 40.0}
"""For twenty nodes to come back, or to run out of memory."""


def measure(*, quick: bool) -> list[dict[str, Any]]:
    """A row for each runtime, action and number of nodes, with the worst and the median of several times."""
    runtimes = ["process", *_containers()]
    return [row for runtime in runtimes for row in _rows(runtime, rounds=1 if quick else 5)]


def _containers() -> Iterator[str]:
    with contextlib.suppress(EdgebedError):
        connect().close()
        yield "docker"


def _rows(runtime: Any, rounds: int) -> Iterator[dict[str, Any]]:
    faults = list(_timeline(rounds, BACK_S[runtime]))
    scenario = {
        "name": "bench-faults",
        "question": "How long does it take until a fault is done?",
        "task": {"data": "digits", "model": "small", "batch_size": 10},
        "method": "adacomp",
        "fleet": {
            "edge": {"count": NODES, "waiting": "500ms", "uplink": "10mbit", "memory": "256MiB"},
            "spare": {"count": 1, "waiting": "500ms"},  # that the trial goes on without the others
        },
        "evaluation": {"every": "1h"},
        "deadlines": {"stall": "2m"},
        "faults": faults,
        "stop": {"time": f"{max(float(fault['at'][:-1]) for fault in faults) + BACK_S[runtime]}s"},
    }
    with tempfile.TemporaryDirectory() as folder:
        run = edgebed.run(scenario, runtime=runtime, runs_dir=folder)
        (trial,) = run.trials.values()
        entries = list(trial.events())
    for (action, nodes), times in sorted(_times(entries).items()):
        yield {
            "runtime": runtime,
            "action": action,
            "nodes": nodes,
            "times": len(times),
            "median_s": statistics.median(times),
            "worst_s": max(times),
        }


def _timeline(rounds: int, back_s: float) -> Iterator[dict[str, Any]]:
    """Each fault to one node, a different one in each round, and to all of them."""
    at_s = GAP_S
    lasting = {"for": f"{GAP_S / 2}s"}
    kinds = ({"freeze": None}, {"cut": None}, {"link": None, "uplink": "1mbit"}, {"cpus": None, "to": 0.5})
    ways: list[dict[str, Any]] = [kind | lasting for kind in kinds]
    for k in range(rounds):
        for target in (f"edge-{k}", "edge"):
            for way in ways:
                yield _of(way, target, at_s)
                at_s += GAP_S
    restart: dict[str, Any] = {"restart": None, "delay": "1s"}
    for way in (*[restart] * -(-rounds // 3), {"memory": None}):
        for target in ("edge-0", "edge"):
            yield _of(way, target, at_s)
            at_s += back_s


def _of(way: dict[str, Any], target: str, at_s: float) -> dict[str, Any]:
    return {key: target if value is None else value for key, value in way.items()} | {"at": f"{at_s}s"}


def _times(entries: list[Any]) -> dict[tuple[str, int], list[float]]:
    """(action, nodes): of each time that it was done to so many nodes at once, seconds until the last was done."""
    done: dict[tuple[str, str, float], list[float]] = defaultdict(list)
    ends = [(t, record) for t, _, record in entries if isinstance(record, records.Node)]
    deaths = [(t, record.name) for t, record in ends if record.reason.startswith("out of memory")]
    for t, _, fault in entries:
        if isinstance(fault, records.Fault) and not fault.no_op:
            done_s = math.inf if fault.problem else t
            if fault.action == "memory":
                done_s = next(died_s for died_s, node in deaths if node == fault.target and died_s > t)
            done[fault.name, fault.action, fault.asked_s].append(done_s - fault.asked_s)
    found: dict[tuple[str, int], list[float]] = defaultdict(list)
    for (_, action, _), each in done.items():
        found[action, len(each)].append(max(each))
    return found
