"""What the Prometheus of Compose makes of a real run: totals, dead nodes, every query of every dashboard.

One run of three trials in containers with caps and links is watched from its first second: a short one, over before
Prometheus has found its nodes, a long one in which a worker is frozen and another killed, and one of layer shards. Then
Prometheus is asked and the journals are read.
"""

import dataclasses
import math
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from boards import unanswered
from compose_project import composed
from real_prometheus import Prometheus
from waiting import until

from edgebed.core import records
from edgebed.journal.journal import read_journal

pytestmark = [pytest.mark.docker, pytest.mark.timeout(300)]

SCENARIO = """
name: watched
question: Does Prometheus see what the journal says?
task: { data: digits, model: small, batch_size: 10 }
fleet:
  edge: { count: 2, waiting: 30ms, cpus: 0.3, memory: 512MiB, uplink: 20mbit, downlink: 50mbit, latency: 2ms }
  slow: { count: 1, waiting: 200ms, cpus: 0.3 }
evaluation: { every: 50 updates }
variants:
  short: { method: asgd, stop: { updates: 300 } }
  long: { method: adacomp, stop: { time: 32s }, faults: [{ freeze: slow-0, at: 5s, for: 1s }] }
  layers:
    method: synthetic-gradients
    task: { model: eight-layer, width: 4, batch_size: 32 }
    fleet: { edge: { waiting: 0s, cpus: 0.1 }, slow: { waiting: 0s, cpus: 0.1 } }
    stop: { time: 24s }
"""
RUN = "watched/0001"
NODES = {"server", "evaluator", "edge-0", "edge-1", "slow-0"}
VICTIM = "edge-1"
ONLY_WITH = {
    "edgebed_run_refused_total": {"Total refused"},
    "edgebed_ps_log_waited_messages_total > 0": {"Wait for the disk"},
    'trial:edgebed_ps_updates:rate20s{trial="short"}': {"Updates a second A"},
    "edgebed_host_network_bytes_per_second": {f"Network between hosts, in and out {letter}" for letter in "ABC"},
}
"""What is empty where something is not there, by that: a refusal, a second scrape of a trial that is soon over, another
host. Panels, columns of tables, a panel's queries by their letters."""


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


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """The run when it is over, and Prometheus, which still answers."""
    with composed(tmp_path_factory.mktemp("watched"), SCENARIO) as project:
        began_s = time.time()
        project.up()
        prometheus = project.prometheus()
        until(lambda: prometheus.up("long") == dict.fromkeys(NODES, 1.0), "all nodes up", 120)
        up_before = prometheus.up("long")
        killed_s = time.time()
        project.kill_node(VICTIM)
        until(lambda: prometheus.up("long").get(VICTIM) == 0, f"{VICTIM} down")
        up_after = prometheus.up("long")
        assert project.compose("wait", "controller").returncode == 0, project.compose("logs", "controller").stdout
        yield Watched(prometheus, project.folder, began_s, time.time(), up_before, up_after, killed_s)


@pytest.mark.parametrize("trial", ["short", "long"])
def test_the_last_values_at_the_server_are_the_journals_totals(watched: Watched, trial: str) -> None:
    """Updates, their bytes, and all payload, although the server ended with its trial."""
    updates = [record for _, record in watched.journal(trial, records.Update)]
    _, traffic = watched.journal(trial, records.Traffic)[-1]
    here = f'run="{RUN}",trial="{trial}"'
    last = watched.prometheus.last

    assert last(f'edgebed_ps_updates_total{{{here},result="applied"}}') == len(updates) > 0
    assert last(f"edgebed_ps_update_bytes_total{{{here}}}") == sum(update.bytes for update in updates)
    assert last(f"edgebed_run_update_bytes_total{{{here}}}") == sum(update.bytes for update in updates)
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
    assert last(f"edgebed_model_accuracy_ratio{{{here}}}") == evaluated.measured["accuracy"]
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
    """For the mark in the charts: what was done, to which node, when; nothing before the time it was asked for."""
    marks = watched.prometheus.get("query", query="last_over_time(edgebed_fault_timestamp_seconds[15m])")["result"]
    times = {(mark["metric"]["action"], mark["metric"]["node"]): float(mark["value"][1]) for mark in marks}

    assert times.keys() == {("freeze", "slow-0"), ("thaw", "slow-0")}
    assert watched.began_s < times["freeze", "slow-0"] < watched.ended_s
    journal = list(read_journal(watched.folder / f"runs/{RUN}/long/events.jsonl"))
    done_s = {record.action: t for t, _, record in journal if isinstance(record, records.Fault)}
    asked_s = {record.action: record.asked_s for _, _, record in journal if isinstance(record, records.Fault)}
    lasted_s = times["thaw", "slow-0"] - times["freeze", "slow-0"]
    assert lasted_s == pytest.approx(done_s["thaw"] - done_s["freeze"], abs=0.25)  # scrapes are seconds apart
    assert asked_s["thaw"] - asked_s["freeze"] == pytest.approx(1.0)
    assert all(done_s[action] >= asked_s[action] for action in asked_s)


def test_every_query_of_every_dashboard_is_answered_with_data(watched: Watched, dashboards) -> None:
    """As Grafana asks it, over the time of the run or at its end; but for what may be empty, each for its reason.

    The run trains, so there is nothing of programs.
    """
    values = {"run": RUN, "trial_a": "short", "trial_b": "long", "shift": str(shift_of(watched))}
    of_training = [board for name, board in dashboards.items() if name != "programs"]
    ask = watched.prometheus.get
    missing = [one for one in ONLY_WITH if not ask("query", query=ever(one))["result"]]
    excused = set().union(*(ONLY_WITH[one] for one in missing))
    empty = unanswered(watched.prometheus, of_training, watched.began_s, watched.ended_s, **values)

    assert [(title, query) for title, query in empty if title not in excused] == []


def ever(selector: str) -> str:
    """A query for a series that was there, and, with a comparison, whose last value is so."""
    name, _, compared = selector.partition(" ")
    return f"last_over_time({name}[15m]) {compared}"


def shift_of(watched: Watched) -> int:
    """By how many milliseconds the short trial began after the long one: less than 0."""
    start = "edgebed_run_start_timestamp_seconds"
    began = [watched.prometheus.last(f'{start}{{trial="{trial}"}}') for trial in ("short", "long")]
    return round(1000 * (began[0] - began[1]))


def begin_of(watched: Watched) -> int:
    """When the run's first trial began, in Unix time in milliseconds."""
    starts = watched.prometheus.get("query", query="min(last_over_time(edgebed_run_start_timestamp_seconds[15m]))")
    return math.floor(1000 * float(starts["result"][0]["value"][1]))


def test_what_a_node_did_is_told_whatever_its_class(watched: Watched, dashboards, filled) -> None:
    """The table has a row for each node of each trial, with the state that it was in last."""
    (table,) = [panel for panel in dashboards["workers"]["panels"] if panel["type"] == "table"]
    query = filled(table["targets"][0]["expr"], run=RUN, trial="long")
    rows = watched.prometheus.get("query", query=query, time=str(watched.ended_s))["result"]
    states = {row["metric"]["node"]: row["metric"]["state"] for row in rows}

    assert len(rows) == len(NODES)
    assert states == dict.fromkeys(NODES, "stopped") | {VICTIM: "died"}


def test_a_moved_trial_begins_when_the_other_did(watched: Watched) -> None:
    """To two scrapes: with the difference of their beginnings as its offset, in PromQL's sense of it."""
    shift = shift_of(watched)

    def first_seen(trial: str, offset: str = "") -> float:
        info = f'edgebed_run_info{{run="{RUN}",trial="{trial}"}}{offset}'
        query = f"min_over_time((vector(time()) and on () {info})[15m:1s])"
        (result,) = watched.prometheus.get("query", query=query)["result"]
        return float(result["value"][1])

    assert shift < 0
    assert first_seen("long", f" offset {shift}ms") == pytest.approx(first_seen("short"), abs=10.0)


def test_the_death_of_a_node_is_an_alert(watched: Watched) -> None:
    """It fired in that trial alone; a trial that goes on, and one that is over, are no lack of progress."""
    query = 'count by (trial, device_class) (max_over_time(ALERTS{alertname="EdgebedNodeFailed"}[15m]))'
    fired = [one["metric"] for one in watched.prometheus.get("query", query=query)["result"]]

    assert fired == [{"trial": "long", "device_class": "edge"}]
    assert not watched.prometheus.get(
        "query", query='max_over_time(ALERTS{alertname="EdgebedNoProgress",alertstate="firing"}[15m])'
    )["result"]


def test_the_variables_find_what_there_is(watched: Watched, dashboards, filled) -> None:
    """As Grafana asks: by a query whose answer is read by a regular expression, or by the values of a label."""
    workers = NODES - {"server", "evaluator"}
    trials = {"short", "long", "layers"}
    expected = {
        "run": {RUN}, "run_b": {RUN}, "trial": trials, "trial_a": trials, "trial_b": trials - {"short"},
        "device_class": {"edge", "slow", "server", "evaluator"}, "worker": NODES, "shard": workers,
        "host": set(), "measure": set(), "shift": {str(shift_of(watched))}, "began": {str(begin_of(watched))},
    }  # fmt: skip
    for dashboard in dashboards.values():
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                found = values_of(watched, variable, filled)
                if variable["name"] == "target":
                    reached = min(best_headline(watched, trial) for trial in ("short", "long"))
                    assert [float(each) for each in found] == pytest.approx(
                        [share * reached for share in (1.0, 0.95, 0.9, 0.8, 0.5)], abs=1e-3
                    )
                    continue
                assert set(found) == expected[variable["name"]], variable["name"]


def best_headline(watched: Watched, trial: str) -> float:
    """The highest that Prometheus has seen of a trial."""
    series = f'edgebed_model_headline{{run="{RUN}",trial="{trial}"}}'
    query = f"max(max_over_time({series}[15m]))"
    (result,) = watched.prometheus.get("query", query=query, time=str(watched.ended_s))["result"]
    return float(result["value"][1])


def values_of(watched: Watched, variable: dict, filled: Callable[..., str]) -> list[str]:
    """What a variable offers."""
    values = {"run": RUN, "trial_a": "short", "trial_b": "long"}
    kind, asked = re.fullmatch(r"(\w+)\((.*)\)", variable["query"]["query"]).groups()
    if kind == "label_values":
        series, label = re.fullmatch(r"(.*), (\w+)", asked).groups()
        found = watched.prometheus.get("series", **{"match[]": filled(series, **values)})
        return [one[label] for one in found if label in one]
    results = watched.prometheus.get("query", query=filled(asked, **values), time=str(watched.ended_s))["result"]
    lines = []
    for one in results:
        labels = ",".join(f'{name}="{value}"' for name, value in one["metric"].items())
        lines.append(f"{{{labels}}} {one['value'][1]} {one['value'][0] * 1000:.0f}")
    return [re.search(variable["regex"].strip("/"), line)[1] for line in lines]
