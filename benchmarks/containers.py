"""What containers cost: the time until a fleet trains, its speed beside processes, a container's memory, a cap's truth.

- start-up: from the command until every worker has an accepted update, 20 workers of half a core each
- speed: updates a second of the same scenario in `docker` and in `process`, by turns, without caps and pauses
- memory: working set and peak of each worker's cgroup in a fleet of 60 that trains the CNN on MNIST-like images
- CPU: the share that two workers capped at half a core got while they were throttled, by their own cgroups
"""

import json
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import edgebed
from benchmarks.subjects import BATCH_SIZE, images
from edgebed.core.runtimes import Runtime
from edgebed.journal.series import Series
from edgebed.learning.data_sets.data_set import DataSet

DIGITS = {"data": "digits", "model": "small", "batch_size": 10}
CNN = {"data": "benchmarks.containers:data", "model": "cnn", "batch_size": BATCH_SIZE}
SHARE_S = 10.0


def data() -> DataSet:
    """The benchmark's images as a user's own data set."""
    return images()


def measure(*, quick: bool) -> dict[str, Any]:
    """Seconds, updates a second, bytes and cores."""
    return {
        "start_up": _start_up(4 if quick else 20),
        "per_s": _speeds(4.0 if quick else 8.0, 1 if quick else 3),
        "memory": _memory(4 if quick else 60),
        "shares": _shares(),
    }


def _scenario(**parts: Any) -> dict[str, Any]:
    return {"name": "bench", "question": "What do containers cost?", "task": DIGITS, "method": "adacomp"} | parts


def _start_up(workers: int) -> dict[str, float | None]:
    """Seconds from the command to the first update of every worker; the phases as the journal has them."""
    scenario = _scenario(
        fleet={"edge": {"count": workers, "cpus": 0.5, "waiting": "100ms"}},
        evaluation={"every": f"{40 * workers} updates"},
        stop={"updates": 40 * workers},
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "bench.yaml")
        path.write_text(json.dumps(scenario), encoding="utf-8")  # JSON is YAML
        command = [sys.executable, "-m", "edgebed", "run", str(path), "--runtime", "docker", "--runs-dir", folder]
        begin_s = time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            journal = Path(folder, "bench/0001/adacomp/events.jsonl")
            while not journal.exists() or len(Series.from_journal(journal).workers) < workers:
                assert process.poll() is None, "the run ended before every worker had an update"
                time.sleep(0.1)
            took_s = time.monotonic() - begin_s
            assert process.wait() == 0
        (trial,) = edgebed.load("bench", runs_dir=folder).trials.values()
        phases = trial.summary.start_up
    assert phases is not None, "the trial did not tell how it started"
    return {
        "workers": workers,
        "command_to_updates_s": took_s,
        "started_s": phases.started_s,
        "joined_s": phases.joined_s,
        "ready_s": phases.training_s,
        "contributed_s": phases.contributed_s,
    }


def _speeds(seconds: float, rounds: int) -> dict[str, dict[str, float]]:
    """Task: runtime: updates a second of training alone, two workers without pauses; medians of runs by turns."""
    found: dict[str, dict[Runtime, list[float]]] = {}
    for task, section in (("digits, small", DIGITS), ("images, cnn", CNN)):
        rates = found.setdefault(task, {"docker": [], "process": []})
        scenario = _scenario(
            task=section, fleet={"edge": {"count": 2}}, evaluation={"every": "1h"}, stop={"time": f"{seconds:g}s"}
        )
        for _ in range(rounds):
            for runtime, measured in rates.items():
                with tempfile.TemporaryDirectory() as folder:
                    (trial,) = edgebed.run(scenario, runtime=runtime, runs_dir=folder).trials.values()
                    measured.append(trial.summary.updates / seconds)
    return {task: {name: statistics.median(each) for name, each in rates.items()} for task, rates in found.items()}


def _memory(workers: int) -> dict[str, float]:
    """Median bytes of a worker's cgroup, and the longest time until every worker had an update."""
    scenario = _scenario(
        task=CNN, fleet={"edge": {"count": workers, "cpus": 0.5, "waiting": "2s"}},
        evaluation={"every": "1h"}, stop={"updates": 10 * workers},
    )  # fmt: skip
    found: dict[str, list[float]] = {"working_set": [], "peak": []}

    def look(pages: dict[str, str]) -> None:
        for node, page in pages.items():
            if node.startswith("edge-"):
                found["working_set"].append(_value(page, "edgebed_cgroup_memory_working_set_bytes"))
                found["peak"].append(_value(page, "edgebed_cgroup_memory_peak_bytes"))

    summary = _watched(scenario, look, updates=5 * workers)
    return {
        "working_set_bytes": statistics.median(found["working_set"]),
        "peak_bytes": max(found["peak"]),
        "contributed_s": summary.start_up.contributed_s,
        "workers": workers,
    }


def _shares() -> list[float]:
    """Cores that each of two throttled workers used, of the half core that it may use."""
    scenario = _scenario(
        task=CNN, method="asgd", fleet={"edge": {"count": 2, "cpus": 0.5}}, server={"cpus": 0.5},
        evaluation={"every": "1h"}, stop={"time": f"{SHARE_S + 6:g}s"},
    )  # fmt: skip
    seen: list[tuple[float, dict[str, str]]] = []

    def look(pages: dict[str, str]) -> None:
        seen.append((time.monotonic(), pages))
        if len(seen) == 1:
            time.sleep(SHARE_S)
            look(_pages(look_port))

    look_port = free_port()
    _watched(scenario, look, updates=20, port=look_port)
    (before_s, before), (after_s, after) = seen
    name = "edgebed_cgroup_cpu_seconds_total"
    return [
        (_value(after[node], name) - _value(page, name)) / (after_s - before_s)
        for node, page in before.items()
        if node.startswith("edge-")
    ]


class _Onlooker:
    """Calls `look` once with every node's metrics, after so many updates."""

    def __init__(self, look: Callable[[dict[str, str]], None], updates: int, port: int) -> None:
        self.look: Callable[[dict[str, str]], None] | None = look
        self.updates = updates
        self.port = port

    def trial_started(self, plan: Any) -> None:
        pass

    def update(self, status: Any) -> None:
        if self.look and status.updates >= self.updates:
            look, self.look = self.look, None
            look(_pages(self.port))

    def trial_ended(self, summary: Any) -> None:
        assert self.look is None, f"nothing was measured: {summary.reason}"


def _watched(scenario: dict[str, Any], look: Callable[[dict[str, str]], None], updates: int, port: int = 0) -> Any:
    port = port or free_port()
    with tempfile.TemporaryDirectory() as folder:
        onlooker = _Onlooker(look, updates, port)
        run = edgebed.run(scenario, runtime="docker", runs_dir=folder, port=port, progress=onlooker)
        (trial,) = run.trials.values()
        return trial.summary


def _pages(port: int) -> dict[str, str]:
    """Each node's metrics."""
    targets = json.loads(_get(f"http://127.0.0.1:{port}/targets"))
    return {target["labels"]["node"]: _get(f"http://{target['targets'][0]}/metrics") for target in targets}


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


def _value(page: str, metric: str) -> float:
    found = re.search(rf"^{metric} (\S+)$", page, re.MULTILINE)
    assert found, f"no {metric}"
    return float(found[1])


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])
