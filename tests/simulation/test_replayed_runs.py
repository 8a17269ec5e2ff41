"""A run's metrics made again from its journal: their totals are the journal's, and a real Prometheus shows them."""

import datetime as dt
import itertools
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from boards import read_boards, unanswered
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from quick_runs import run as run_quickly
from real_prometheus import Prometheus, require_tools, showing
from ruamel.yaml import YAML
from typer.testing import CliRunner
from waiting import until

from edgebed.cli.main import app
from edgebed.core.errors import InfrastructureError
from edgebed.metrics.openmetrics import SampleStore
from edgebed.running.replay import GAP_S, MAKE_BLOCKS, PROGRAMS, RULES, Replayed, into_folder, read_again
from edgebed.running.results import Run

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(180)]

SCENARIO: dict[str, Any] = {
    "name": "replayed",
    "task": {"data": "digits", "model": "small", "batch_size": 5, "gradient_time": "5ms"},
    "fleet": {"edge": {"count": 75, "waiting": "2s"}, "slow": {"count": 25, "waiting": "5s"}},
    "evaluation": {"every": "250 updates"},
    "stop": {"updates": 2000},
    "faults": [{"kill": "edge-3", "at": "12.5s"}, {"freeze": "slow-1", "at": "20s", "for": "10s"}],
    "variants": {
        "plain": {"method": "asgd"},
        "small": {"method": "adacomp"},
        "rounds": {"method": "sync-sgd", "stop": {"updates": 1000}},
    },
}
WORKERS = 100
MADE = "made/0001"
"""What the run of `counters` is called."""
BOUNDARY_S = 1_700_006_400
"""Unix time at which one block of Prometheus ends and the next begins."""
TOLD_OF_SIMULATIONS = {
    "trial:edgebed_ps_updates:rate20s",
    "trial_kind:edgebed_ps_ingress_bytes:rate20s",
    "trial_le:edgebed_ps_update_staleness_versions_bucket:rate20s",
    "device_class:edgebed_worker_iterations:rate20s",
}
"""Recorded series of which a simulation says something."""
UNTOLD = {
    "run-overview": {
        "CPU used", "Throttled by the CPU cap", "Memory against the cap", "The server's core",
        "Conditions against their bounds A", "Conditions against their bounds B", "Conditions against their bounds C",
        "Conditions against their bounds D", "Conditions against their bounds E", "Steal, bound on the mean",
        "How busy the machine is", "CPU used by host", "Network between hosts, in and out A",
        "Network between hosts, in and out B", "Network between hosts, in and out C",
        "Late wake-ups, bound on the median", "Alerts", "Iterations of all workers of a class B",
    },
    "staleness-and-faults": {"Time for the server's log", "Wait for the disk", "Written to the log"},
    "comparison": {"Total CPU time A", "Total CPU time B"},
}  # fmt: skip
"""What boards ask of processes, machines, logs, alerts and shards, none of which this run tells."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Trials of 100 workers, in which one is killed and one stands still for a while."""
    return run_quickly(SCENARIO, runtime="simulation", runs_dir=tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def whole(run: Run) -> Replayed:
    """The metrics of all its trials, every five seconds."""
    return read_again(run, (), 5.0)


@pytest.fixture(scope="module")
def prometheus(whole: Replayed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """One that began with the blocks of the run, and of counters that stand for what a simulation does not tell."""
    require_tools()
    with showing(tmp_path_factory.mktemp("prometheus"), whole.store, counters()) as prometheus:
        yield prometheus


def counters() -> SampleStore:
    """Everything that the rules ask for, of two nodes, for five minutes from the last seconds of a block on."""
    book = SampleStore()
    by = {
        "edgebed_ps_updates": {"result": "applied"},
        "edgebed_ps_ingress_bytes": {"kind": "push"},
        "edgebed_worker_phase_seconds": {"phase": "wait"},
        "edgebed_link_bytes": {"direction": "egress", "interface": "data"},
    }
    names = (*by, "edgebed_worker_iterations", "edgebed_cgroup_cpu_throttled_periods", "edgebed_cgroup_cpu_periods",
             "edgebed_process_cpu_seconds", "edgebed_shard_steps", "edgebed_transfer_seconds",
             "edgebed_transfer_asked_seconds")  # fmt: skip
    for second in range(0, 301, 5):
        for node in (1, 2):
            labels = {"run": MADE, "trial": "t", "device_class": "edge", "role": "worker", "node": f"edge-{node}"}
            for place, name in enumerate(names):
                family = CounterMetricFamily(name, "A counter.", labels=[*by.get(name, {})])
                family.add_metric([*by.get(name, {}).values()], 1.0 + second * node * (place + 1) + second % 3)
                book.add(BOUNDARY_S - 3 + second, [family], labels)
            held = GaugeMetricFamily("edgebed_link_held_bytes_per_second", "A limit.", labels=["direction"])
            held.add_metric(["egress"], 1000.0 * node)
            staleness = HistogramMetricFamily("edgebed_ps_update_staleness_versions", "A histogram.")
            staleness.add_metric([], [("1.0", second), ("+Inf", second * node)], sum_value=second)
            book.add(BOUNDARY_S - 3 + second, [held, staleness], labels)
    return book


def last(prometheus: Prometheus, metric: str, trial: str, at_s: float) -> list[tuple[dict[str, str], float]]:
    """The last values of a metric's series in a trial."""
    return prometheus.at(f'last_over_time({metric}{{trial="{trial}"}}[2h])', at_s)


def test_totals_are_those_of_the_journal(run: Run, whole: Replayed, prometheus: Prometheus) -> None:
    """Updates, bytes, staleness, accuracy, nodes by state: for each trial what its summary says."""
    found = {
        trial: {
            metric: sum(value for _, value in last(prometheus, metric, trial, whole.end_s))
            for metric in (
                "edgebed_ps_update_bytes_total", "edgebed_ps_updates_total", "edgebed_model_accuracy_ratio",
                "edgebed_ps_update_staleness_versions_count", "edgebed_worker_iterations_total",
                "edgebed_crashes_total", "edgebed_run_progress_ratio", "edgebed_ps_ingress_bytes_total",
                "edgebed_ps_egress_bytes_total", "edgebed_run_update_bytes_total",
            )
        }
        for trial in run.trials
    }  # fmt: skip
    for name, trial in run.trials.items():
        assert found[name] == {
            "edgebed_ps_update_bytes_total": trial.summary.server.ingress_bytes,
            "edgebed_run_update_bytes_total": trial.summary.server.ingress_bytes,
            "edgebed_ps_updates_total": trial.summary.updates + trial.summary.refused,
            "edgebed_model_accuracy_ratio": trial.summary.final["accuracy"],
            "edgebed_ps_update_staleness_versions_count": trial.summary.updates,
            # of the killed worker's last push its round makes an update when it is no more
            "edgebed_worker_iterations_total": trial.summary.updates - (name == "rounds"),
            "edgebed_crashes_total": 1,
            "edgebed_run_progress_ratio": 1,
            "edgebed_ps_ingress_bytes_total": trial.summary.ingress_payload_bytes,
            "edgebed_ps_egress_bytes_total": trial.summary.egress_payload_bytes,
        }


@pytest.mark.parametrize("trial", ["plain", "small", "rounds"])
def test_what_the_server_sent_grows_as_it_is_sent(run: Run, prometheus: Prometheus, trial: str) -> None:
    """At the time of half of all updates it has sent about half of all bytes."""
    whole = read_again(run, [trial], 5.0)
    told = run.trials[trial]
    sent_bytes = told.summary.egress_payload_bytes
    assert sent_bytes
    half_s = (
        whole.begin_s + (told.series.training_s or 0.0) + float(told.series.updates.t[len(told.series.updates.t) // 2])
    )
    ((_, value),) = prometheus.at(f'sum(last_over_time(edgebed_ps_egress_bytes_total{{trial="{trial}"}}[1m]))', half_s)

    assert value == pytest.approx(sent_bytes / 2, rel=0.2)


def recorded() -> dict[str, str]:
    """Name of each recorded series: its expression."""
    rules = YAML(typ="safe").load(RULES.read_text(encoding="utf-8"))
    return {rule["record"]: rule["expr"] for group in rules["groups"] for rule in group["rules"]}


def samples(prometheus: Prometheus, name: str, run: str, at_s: float) -> dict[float, dict[frozenset, float]]:
    """Unix time: labels and value of each series that has a sample just then."""
    found: dict[float, dict[frozenset, float]] = {}
    for one in prometheus.get("query", query=f'{name}{{run="{run}"}}[2h]', time=str(at_s))["result"]:
        labels = frozenset((key, value) for key, value in one["metric"].items() if key != "__name__")
        for t, value in one["values"]:
            found.setdefault(t, {})[labels] = float(value)
    return found


@pytest.mark.parametrize("name", recorded())
def test_recorded_series_are_what_the_rules_make_of_the_samples(
    run: Run, whole: Replayed, prometheus: Prometheus, name: str
) -> None:
    """At each time at which there are some; and there are, every five seconds, whatever block it is in."""
    ends = {MADE: BOUNDARY_S + 297.0}
    if name in TOLD_OF_SIMULATIONS:
        ends[run.folder.name] = whole.end_s
    for told, end_s in ends.items():
        found = samples(prometheus, name, told, end_s)
        times = sorted(found)
        assert all(later - t == pytest.approx(5.0) or later - t > GAP_S - 0.1 for t, later in itertools.pairwise(times))
        assert times[0] < BOUNDARY_S + 60.0 if told == MADE else len(times) > 20
        assert times[-1] > end_s - 5.0
        for t in times[::4]:
            made = prometheus.at(recorded()[name], t)
            assert found[t] == {frozenset(labels.items()): value for labels, value in made if labels["run"] == told}


@pytest.mark.parametrize("board", ["run-overview", "staleness-and-faults", "comparison"])
def test_boards_show_a_simulated_run(run: Run, whole: Replayed, prometheus: Prometheus, board: str) -> None:
    """Every query has an answer, but for what no simulation tells."""
    start = "edgebed_run_start_timestamp_seconds"
    began = [last(prometheus, start, trial, whole.end_s)[0][1] for trial in ("plain", "small")]
    values = {"run": run.folder.name, "trial_a": "plain", "trial_b": "small", "shift": str(round(began[0] - began[1]))}
    empty = unanswered(prometheus, [read_boards()[board]], whole.begin_s, whole.end_s, __range="1h", **values)

    assert {title for title, _ in empty} == UNTOLD[board]


def test_who_answered_can_be_seen(run: Run, prometheus: Prometheus) -> None:
    """All at first, one less after a death, one less again while another stands still."""
    whole = read_again(run, ["plain"], 5.0)
    launch_s = whole.begin_s
    query = 'sum(up{trial="plain",role="worker"})'
    counts = [prometheus.at(query, launch_s + t)[0][1] for t in (10.0, 15.0)]
    frozen = next(t for t, node in run.trials["plain"].series.nodes if node.state == "unresponsive")
    training_s = run.trials["plain"].series.training_s or 0.0

    assert counts == [WORKERS, WORKERS - 1]
    assert prometheus.at(query, launch_s + training_s + frozen + 5.0)[0][1] == WORKERS - 2


def test_faults_are_marked_at_their_second(run: Run, whole: Replayed, prometheus: Prometheus) -> None:
    """The times that dashboards mark are those of the journal, in the run's own time."""
    for name, trial in run.trials.items():
        ((_, begin_s),) = last(prometheus, "edgebed_run_start_timestamp_seconds", name, whole.end_s)
        begin_s += trial.series.training_s or 0.0
        marks = {
            (labels["action"], labels["node"]): value - begin_s
            for labels, value in last(prometheus, "edgebed_fault_timestamp_seconds", name, whole.end_s)
        }
        done = {(each.record.action, each.record.target): each.t for each in trial.series.faults if each.was_done}
        assert marks == pytest.approx(done, abs=0.01)


def test_trials_follow_each_other_and_end_when_the_simulation_began(run: Run, whole: Replayed) -> None:
    """Nothing of virtual time is to come, and no two trials are at one time."""
    final = read_again(run, ["rounds"], 5.0)
    started_s = dt.datetime.fromisoformat(run.manifest["started"]).timestamp()
    lengths = [trial.series.last_t + (trial.series.training_s or 0.0) for trial in run.trials.values()]

    assert whole.end_s == pytest.approx(started_s)
    assert final.end_s == pytest.approx(started_s)
    assert whole.end_s - whole.begin_s == pytest.approx(sum(lengths) + (len(lengths) - 1) * GAP_S)
    assert read_again(run, (), 5.0, now_s=1e9).end_s == pytest.approx(1e9)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--trial", "none"], "no trial 'none'"),
        (["--step", "5"], "--step: "),
        (["--step", "0s"], "is not above 0"),
        (["--data", "/nowhere"], "there is no folder /nowhere"),
        (["--output", "/nowhere/run.om"], "there is no folder /nowhere"),
    ],
)
def test_mistakes_are_told(run: Run, arguments: list[str], said: str) -> None:
    """With the option and what is allowed."""
    result = CliRunner().invoke(app, ["replay", str(run.path), *arguments])
    assert result.exit_code != 0
    assert said in f"{result.output}{result.exception}"


def a_book() -> SampleStore:
    """A sample."""
    book = SampleStore()
    book.add(BOUNDARY_S, [GaugeMetricFamily("edgebed_x", "A gauge.", 1.0)], {})
    return book


def on_the_path(folder: Path, monkeypatch: pytest.MonkeyPatch, **programs: str) -> None:
    """Scripts of the shell before all that is installed."""
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.mark.parametrize("missing", PROGRAMS)
def test_a_missing_program_is_told(missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name, and before anything is written."""
    for name in PROGRAMS:
        if name != missing:
            (tmp_path / name).write_text("#!/bin/sh\n")
            (tmp_path / name).chmod(0o755)
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InfrastructureError, match=f"^{missing} is not on the PATH; both come with Prometheus"):
        into_folder(a_book(), tmp_path / "data")

    assert list((tmp_path / "data").iterdir()) == []


@pytest.mark.parametrize(
    ("program", "text", "said"),
    [
        ("prometheus", "echo it is too old >&2; exit 3", "ended at once: it is too old"),
        ("promtool", "echo no space left; exit 1", "promtool: no space left"),
        ("prometheus", "echo bind: address already in use >&2; exit 1", "found no free port"),
    ],
    ids=["prometheus", "promtool", "port"],
)
def test_a_program_that_fails_is_told_and_nothing_is_left(
    program: str, text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its last words."""
    require_tools()
    (tmp_path / "data").mkdir()
    on_the_path(tmp_path, monkeypatch, **{program: text})
    with pytest.raises(InfrastructureError, match=f"^the run could not be loaded: .*{said}"):
        into_folder(a_book(), tmp_path / "data")

    assert list((tmp_path / "data").iterdir()) == []


def test_a_port_that_is_taken_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another is tried."""
    require_tools()
    (tmp_path / "data").mkdir()
    again = f'test -e {tmp_path}/tried && exec {shutil.which("prometheus")} "$@"\n'
    taken = f"touch {tmp_path}/tried; echo bind: address already in use >&2; exit 1"
    on_the_path(tmp_path, monkeypatch, prometheus=again + taken)
    into_folder(a_book(), tmp_path / "data")

    assert (tmp_path / "tried").exists()
    assert [(path / "meta.json").exists() for path in (tmp_path / "data").iterdir()] == [True]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["interrupted", "ended"])
def test_whoever_ends_it_finds_nothing_of_it(number: int, tmp_path: Path) -> None:
    """Neither a file nor a process."""
    require_tools()
    data = tmp_path / "data"
    data.mkdir()
    with (tmp_path / "run.om").open("w", encoding="utf-8") as file:
        a_book().write(file)
    heeding = ["env", f"--default-signal={number}"]  # whatever the tests themselves were started with
    command = [*heeding, "sh", MAKE_BLOCKS, tmp_path / "run.om", RULES, str(BOUNDARY_S), str(BOUNDARY_S), data]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        until(lambda: list(data.glob("*/server-log")), "its own Prometheus")
        process.send_signal(number)
    assert process.returncode == 130
    assert list(data.iterdir()) == []
    assert [one.pid for one in psutil.process_iter(["cwd"]) if str(data) in (one.info["cwd"] or "")] == []
