"""What watching costs: updates a second of a fleet with and without Prometheus, by turns within one run.

Workers train the CNN without pauses, so that every core is full and what watching takes is taken from them: the worst
case. Prometheus, configured as ours is, runs on the same machine; its turns are

- without: it is stopped (SIGSTOP)
- Prometheus: it asks the controller and every node each 5 s, and computes the rules
- an open dashboard: besides, it is asked every query of *Run overview* each 10 s, as a browser's Grafana does. What
  Grafana and the browser themselves take is not in it.

Rates of full cores differ from turn to turn by as much as watching costs; so the CPU time of Prometheus, which is known
exactly, is told as well. What nodes take to answer it is in the rates alone.
"""

import contextlib
import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil

import edgebed
from benchmarks.containers import free_port
from benchmarks.subjects import BATCH_SIZE
from edgebed.core.records import Update
from edgebed.studies.statistics import interval

FLEETS = (4, 50)
TURNS = ("without", "Prometheus", "an open dashboard")
REFRESH_S = 10.0
"""The dashboards' own."""
SETTLE_S = 2.0
"""At the beginning of a turn, in which Prometheus catches up on what it missed."""
DASHBOARDS = Path(__file__).parents[1] / "dashboards"


class Turn(NamedTuple):
    """What was measured of one."""

    name: str
    begin_s: float
    """In Unix time."""
    end_s: float
    cpu_s: float
    """That Prometheus used meanwhile."""


def measure(*, quick: bool) -> list[dict[str, Any]]:
    """A row for each fleet and way of watching: the share of updates that it costs, with its 95 % interval."""
    return [row for workers in FLEETS for row in _rows(workers, 7.0 if quick else 12.0, 1 if quick else 8)]


def _rows(workers: int, turn_s: float, rounds: int) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        turns = _take_turns(Path(folder), workers, turn_s, rounds)
        run = edgebed.load("bench", runs_dir=folder)
        (trial,) = run.trials.values()
        began_s = run.manifest["began"][trial.name]
        times = [began_s + t for t, _, record in trial.events() if isinstance(record, Update)]
    per_s = defaultdict(list)
    for turn in turns:
        made = sum(turn.begin_s <= t < turn.end_s for t in times)
        per_s[turn.name].append(made / (turn.end_s - turn.begin_s))
    for name in TURNS[1:]:
        own = [turn.cpu_s / (turn.end_s - turn.begin_s) for turn in turns if turn.name == name]
        cost = interval([1.0 - watched / alone for watched, alone in zip(per_s[name], per_s["without"], strict=True)])
        yield {
            "workers": workers,
            "what": name,
            "cost": cost.mean,
            "low": cost.low,
            "high": cost.high,
            "own": sum(own) / rounds / (psutil.cpu_count() or 1),
            "per_s": sum(per_s[name]) / rounds,
            "without_per_s": sum(per_s["without"]) / rounds,
        }


def _take_turns(folder: Path, workers: int, turn_s: float, rounds: int) -> list[Turn]:
    """In order; those of every other round in the opposite order, against drift."""
    scenario = {
        "name": "bench",
        "question": "What does watching cost?",
        "task": {"data": "benchmarks.containers:data", "model": "cnn", "batch_size": BATCH_SIZE},
        "method": "adacomp",
        "fleet": {"edge": {"count": workers}},
        "evaluation": {"every": "1h"},
        "stop": {"time": "2h"},
    }
    (folder / "bench.yaml").write_text(json.dumps(scenario), encoding="utf-8")  # JSON is YAML
    controller, port = free_port(), free_port()
    run = (
        sys.executable, "-m", "edgebed", "run", folder / "bench.yaml", "--runtime", "process", "--runs-dir", folder,
        "--port", str(controller),
    )  # fmt: skip
    turns = []
    with _prometheus(folder, controller, port) as watcher, _process(*run, log=folder / "run.log") as process:
        _await_nodes(port, workers + 2, process, folder / "run.log")
        for k in range(rounds):
            for name in TURNS if k % 2 == 0 else TURNS[::-1]:
                with _turn(name, watcher, port):
                    time.sleep(SETTLE_S)
                    begin_s, begin_cpu_s = time.time(), _cpu_s(watcher)
                    time.sleep(turn_s - SETTLE_S)
                    turns.append(Turn(name, begin_s, time.time(), _cpu_s(watcher) - begin_cpu_s))
        process.send_signal(signal.SIGINT)
        process.wait()
    return turns


def _cpu_s(process: subprocess.Popen[bytes]) -> float:
    used = psutil.Process(process.pid).cpu_times()
    return float(used.user + used.system)


@contextlib.contextmanager
def _turn(name: str, watcher: subprocess.Popen[bytes], port: int) -> Iterator[None]:
    if name == "without":
        watcher.send_signal(signal.SIGSTOP)
        yield
        watcher.send_signal(signal.SIGCONT)
        return
    over = threading.Event()
    asking = threading.Thread(target=_ask, args=(port, over), daemon=True)
    if name == "an open dashboard":
        asking.start()
    yield
    over.set()
    if asking.is_alive():
        asking.join()


def _ask(port: int, over: threading.Event) -> None:
    """As a browser that shows *Run overview* makes Grafana ask, over the last quarter of an hour."""
    (board,) = DASHBOARDS.glob("grafana/dashboards/*/run-overview.json")
    targets = [
        target
        for panel in json.loads(board.read_text(encoding="utf-8"))["panels"]
        for target in panel.get("targets", ())
    ]
    values = {"__rate_interval": "20s", "__range": "15m", "__interval": "5s", "run": "bench/0001", "trial": "adacomp"}
    while not over.is_set():
        for target in targets:
            query = re.sub(r"\$\{?(\w+)\}?", lambda found: values.get(found[1], ".+"), target["expr"])
            now_s = time.time()
            if target["instant"]:
                _get(port, "query", query=query)
            else:
                _get(port, "query_range", query=query, start=now_s - 900.0, end=now_s, step=5)
        over.wait(REFRESH_S)


@contextlib.contextmanager
def _prometheus(folder: Path, controller: int, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """One of our own, configured as that of Compose is."""
    program = shutil.which("prometheus")
    assert program, "no Prometheus: install it (Debian: apt-get install prometheus, and stop the service)"
    shutil.copytree(DASHBOARDS / "prometheus", folder / "prometheus")
    configuration = folder / "prometheus/prometheus.yml"
    text = configuration.read_text(encoding="utf-8")
    configuration.write_text(text.replace("controller:9100", f"127.0.0.1:{controller}"), encoding="utf-8")
    command = (
        program, f"--config.file={configuration}", f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address=127.0.0.1:{port}",
    )  # fmt: skip
    with _process(*command, log=folder / "prometheus.log") as process:
        yield process


@contextlib.contextmanager
def _process(*command: str | Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:
        try:
            yield process
        finally:
            process.kill()


def _await_nodes(port: int, nodes: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Until Prometheus has asked all of them."""
    while True:
        with contextlib.suppress(OSError):
            if len(_get(port, "query", query='up{job="edgebed-nodes"} == 1')["result"]) == nodes:
                return
        assert process.poll() is None, log.read_text(encoding="utf-8")
        time.sleep(0.5)


def _get(port: int, path: str, **parameters: Any) -> Any:
    address = f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
    with urllib.request.urlopen(address, timeout=10) as answer:
        return json.load(answer)["data"]
