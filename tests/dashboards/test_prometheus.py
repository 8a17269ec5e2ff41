"""What a real Prometheus, configured as ours is, makes of a real run: totals, dead nodes, every dashboard query.

One run of three trials is watched from its first second: a short one, over before Prometheus has found its nodes, a
long one in which a worker is killed, and one of layer shards. Then Prometheus is asked and the journals are read.
"""

import contextlib
import dataclasses
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from edgebed.observe.journal import read_journal
from edgebed.roles import records

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

CONFIGURATION = Path(__file__).parents[2] / "dashboards/prometheus/prometheus.yml"
SCENARIO = """
name: watched
question: Does Prometheus see what the journal says?
task: { data: digits, model: small, batch_size: 10 }
fleet: { edge: { count: 3, waiting: 30ms }, slow: { count: 1, waiting: 200ms } }
evaluation: { every: 50 updates }
variants:
  short: { method: asgd, stop: { updates: 300 } }
  long: { method: adacomp, stop: { time: 40s }, faults: [{ freeze: slow-0, at: 5s, for: 1s }] }
  layers:
    method: synthetic-gradients
    task: { model: eight-layer, width: 4, batch_size: 32 }
    fleet: { edge: { waiting: 0s }, slow: { waiting: 0s } }
    stop: { time: 20s }
"""
RUN = "watched/0001"
NODES = {"server", "evaluator", "edge-0", "edge-1", "edge-2", "slow-0"}
VICTIM = "edge-1"
ONLY_WITH_CAPS = {"Held back by the CPU cap", "Memory against the cap"}
"""Panels that are empty where the kernel holds no caps."""


@pytest.fixture(scope="module")
def tools() -> None:
    """Prometheus and promtool are here."""
    if not (shutil.which("prometheus") and shutil.which("promtool")):
        pytest.skip("no Prometheus: install it (Debian: apt-get install prometheus, and stop the service)")


@dataclasses.dataclass
class Prometheus:
    """A Prometheus of our own."""

    port: int

    def get(self, path: str, **parameters: str) -> Any:
        """The data of an answer that is a success."""
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}?{query}", timeout=10) as answer:
            said = json.load(answer)
        assert said["status"] == "success"
        assert not said.get("warnings")
        return said["data"]

    def last(self, selector: str) -> float:
        """The sum of the selected series' last values, however long ago."""
        (result,) = self.get("query", query=f"sum(last_over_time({selector}[15m]))")["result"]
        return float(result["value"][1])

    def up(self) -> dict[str, float]:
        """Node of the long trial: 1 if its last scrape was answered; for the nodes on the list now."""
        result = self.get("query", query='up{job="edgebed-nodes",trial="long"}')["result"]
        return {one["metric"]["node"]: float(one["value"][1]) for one in result}


@dataclasses.dataclass
class Watched:
    """The run, and what was seen while it went on."""

    prometheus: Prometheus
    folder: Path
    began_s: float
    ended_s: float
    up_before: dict[str, float]
    up_after: dict[str, float]
    killed_s: float

    def journal(self, trial: str, kind: type[records.Record]) -> list[tuple[str, Any]]:
        """(node, record) of every record of a kind."""
        journal = read_journal(self.folder / f"runs/{RUN}/{trial}/events.jsonl")
        return [(node, record) for _, node, record in journal if isinstance(record, kind)]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(condition: Callable[[], object], what: str, deadline_s: float = 60.0) -> None:
    """Wait for something that must come."""
    end_s = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end_s, f"{what}: not within {deadline_s:g} s"
        time.sleep(0.1)


@contextlib.contextmanager
def started(*command: str | Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is gone afterwards."""
    with log.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture(scope="module")
def watched(tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """The run when it is over, and Prometheus, which still answers."""
    folder = tmp_path_factory.mktemp("watched")
    controller, prometheus = free_port(), Prometheus(free_port())
    configuration = CONFIGURATION.read_text(encoding="utf-8")
    (folder / "prometheus.yml").write_text(configuration.replace("controller:9100", f"127.0.0.1:{controller}"))
    (folder / "watched.yaml").write_text(SCENARIO)
    watch = (
        "prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address=127.0.0.1:{prometheus.port}",
    )  # fmt: skip
    run = (
        sys.executable, "-m", "edgebed", "run", folder / "watched.yaml", "--runs-dir", folder / "runs",
        "--port", str(controller),
    )  # fmt: skip
    with started(*watch, log=folder / "prometheus.log"):
        until(lambda: answers(prometheus), "Prometheus")
        began_s = time.time()
        with started(*run, log=folder / "run.log") as process:
            until(lambda: set(prometheus.up()) == NODES and min(prometheus.up().values()) == 1, "six nodes up", 90)
            up_before = prometheus.up()
            journal = read_journal(folder / f"runs/{RUN}/long/events.jsonl")
            pid = next(
                one.pid for _, _, one in journal if isinstance(one, records.Node) and one.name == VICTIM and one.pid
            )
            os.kill(pid, signal.SIGKILL)
            killed_s = time.time()
            until(lambda: prometheus.up().get(VICTIM) == 0, f"{VICTIM} down")
            up_after = prometheus.up()
            assert process.wait(120) == 0, (folder / "run.log").read_text()
        yield Watched(prometheus, folder, began_s, time.time(), up_before, up_after, killed_s)


def answers(prometheus: Prometheus) -> bool:
    """Whether Prometheus is up."""
    try:
        return prometheus.get("query", query="1") is not None
    except OSError:
        return False


def test_promtool_accepts_the_configuration(tools: None) -> None:
    """As strictly as it can."""
    checked = subprocess.run(
        ["promtool", "check", "config", "--lint=all", "--lint-fatal", CONFIGURATION],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("trial", ["short", "long"])
def test_the_last_values_at_the_server_are_the_journals_totals(watched: Watched, trial: str) -> None:
    """Updates, their bytes, and all payload, although the server ended with its trial."""
    updates = [record for _, record in watched.journal(trial, records.Update)]
    _, traffic = watched.journal(trial, records.Traffic)[-1]
    here = f'run="{RUN}",trial="{trial}"'
    last = watched.prometheus.last

    assert last(f'edgebed_ps_updates_total{{{here},result="applied"}}') == len(updates) > 0
    assert last(f"edgebed_ps_update_bytes_total{{{here}}}") == sum(update.bytes for update in updates)
    assert last(f"edgebed_ps_ingress_bytes_total{{{here}}}") == traffic.ingress_payload
    assert last(f"edgebed_ps_egress_bytes_total{{{here}}}") == traffic.egress_payload


@pytest.mark.parametrize("trial", ["short", "long"])
def test_the_last_values_at_the_workers_are_the_journals_totals(watched: Watched, trial: str) -> None:
    """Iterations of every worker that was not killed."""
    steps = dict(watched.journal(trial, records.Phases))
    assert steps.keys() == NODES - {"server", "evaluator"}
    for node, phases in steps.items():
        if (trial, node) != ("long", VICTIM):
            selector = f'edgebed_worker_iterations_total{{run="{RUN}",trial="{trial}",node="{node}"}}'
            assert watched.prometheus.last(selector) == phases.steps > 0


def test_the_last_values_at_layer_shards_are_the_journals_totals(watched: Watched) -> None:
    """Steps of every shard."""
    said = [node for node, _ in watched.journal("layers", records.Step)]
    assert set(said) == NODES - {"server", "evaluator"}
    for node in set(said):
        selector = f'edgebed_shard_steps_total{{run="{RUN}",trial="layers",node="{node}"}}'
        assert watched.prometheus.last(selector) == said.count(node)


@pytest.mark.parametrize("trial", ["short", "long"])
def test_the_last_values_at_the_controller_are_the_final_ones(watched: Watched, trial: str) -> None:
    """Accuracy of the final model, all updates, every node ended: each under the name of its own trial."""
    _, evaluated = watched.journal(trial, records.Evaluated)[-1]
    here = f'run="{RUN}",trial="{trial}"'
    last = watched.prometheus.last
    died = 1 if trial == "long" else 0

    assert evaluated.final
    assert last(f"edgebed_model_accuracy_ratio{{{here}}}") == evaluated.accuracy
    assert last(f"edgebed_model_version{{{here}}}") == evaluated.version
    assert last(f"edgebed_run_progress_ratio{{{here}}}") == 1
    assert last(f'edgebed_nodes{{{here},state="stopped"}}') == len(NODES) - died
    assert last(f'edgebed_nodes{{{here},state="died"}}') == died
    assert last(f"edgebed_crashes_total{{{here}}}") == died


def test_a_killed_worker_stays_listed_and_is_down(watched: Watched) -> None:
    """The others stay up."""
    assert watched.up_before == dict.fromkeys(NODES, 1.0)
    assert watched.up_after == watched.up_before | {VICTIM: 0.0}


def test_a_crash_has_its_exact_time(watched: Watched) -> None:
    """For the mark in the charts: when, which node, in which trial."""
    (result,) = watched.prometheus.get(
        "query", query="last_over_time(edgebed_node_last_crash_timestamp_seconds[15m])"
    )["result"]  # fmt: skip

    assert (result["metric"]["node"], result["metric"]["trial"]) == (VICTIM, "long")
    assert watched.killed_s - 0.1 <= float(result["value"][1]) <= watched.killed_s + 5.0


def test_a_fault_has_its_exact_time(watched: Watched) -> None:
    """For the mark in the charts: what was done, to which node, when; a second later it was undone."""
    marks = watched.prometheus.get("query", query="last_over_time(edgebed_fault_timestamp_seconds[15m])")["result"]
    times = {(mark["metric"]["action"], mark["metric"]["node"]): float(mark["value"][1]) for mark in marks}

    assert times.keys() == {("freeze", "slow-0"), ("thaw", "slow-0")}
    assert watched.began_s < times["freeze", "slow-0"] < watched.ended_s
    assert times["thaw", "slow-0"] - times["freeze", "slow-0"] == pytest.approx(1.0, abs=0.25)


def test_every_query_of_every_dashboard_is_answered_with_data(watched: Watched, dashboards, panels, filled) -> None:
    """As Grafana asks it, over the time of the run; but for caps, which the kernel does not hold here."""
    when = {"start": str(watched.began_s), "end": str(watched.ended_s), "step": "5"}
    marks = [("mark", one["expr"]) for dashboard in dashboards.values() for one in dashboard["annotations"]["list"]]
    shown = [(panel["title"], target["expr"]) for panel in panels for target in panel["targets"]]
    for title, expr in marks + shown:
        result = watched.prometheus.get("query_range", query=filled(expr, run=RUN), **when)["result"]

        assert result or title in ONLY_WITH_CAPS, (title, expr)


def test_the_variables_find_the_run_and_its_trials(watched: Watched, dashboards, filled) -> None:
    """As Grafana asks: the runs by a query whose answer is read by a regular expression, the trials by their label."""
    for dashboard in dashboards.values():
        variables = {variable["name"]: variable for variable in dashboard["templating"]["list"]}
        query = re.fullmatch(r"query_result\((.*)\)", variables["run"]["query"]["query"])[1]
        (result,) = watched.prometheus.get("query", query=filled(query))["result"]
        text = ",".join(f'{name}="{value}"' for name, value in result["metric"].items())
        assert re.search(variables["run"]["regex"].strip("/"), f"{{{text}}} 1 1")[1] == RUN
        series, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variables["trial"]["query"]["query"]).groups()
        found = watched.prometheus.get("series", **{"match[]": filled(series, run=RUN)})
        assert {one[label] for one in found} == {"short", "long", "layers"}
