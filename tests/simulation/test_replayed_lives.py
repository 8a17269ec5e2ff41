"""Dashboards of a run whose server was killed: its totals are those of all its lives, and of no other run beside it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from boards import fill, panels_of, read_boards
from prometheus_client.metrics_core import CounterMetricFamily
from quick_runs import run as run_quickly
from real_prometheus import Prometheus, require_tools, showing

from edgebed.core import records
from edgebed.metrics.openmetrics import SampleStore
from edgebed.running.replay import Replayed, read_again
from edgebed.running.results import Run

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(180)]

SCENARIO = Path(__file__).parents[2] / "scenarios/faults/server-killed.yaml"
TRIAL = "killed"
MADE, BEGIN_S = "made/0001", 1_700_000_000.0
"""What the run of `lives` is called, and when it begins, in Unix time."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """The server dies at updates 700 and 1,500; the second begins before the first is over."""
    runs_dir = tmp_path_factory.mktemp("runs")
    return [
        run_quickly(
            SCENARIO,
            runtime="simulation",
            set=["stop.updates=1700", f"seed={seed}"],
            variants=[TRIAL],
            runs_dir=runs_dir,
        )
        for seed in (1, 2)
    ]


@pytest.fixture(scope="module")
def run(runs: list[Run]) -> Run:
    """The first."""
    return runs[0]


@pytest.fixture(scope="module")
def whole(run: Run) -> Replayed:
    """Its metrics, made again."""
    return read_again(run, (), 5.0)


@pytest.fixture(scope="module")
def prometheus(runs: list[Run], whole: Replayed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """One that has them, and those of the second."""
    require_tools()
    other = read_again(runs[1], (), 5.0, now_s=whole.end_s + 5.0)
    assert whole.begin_s < other.begin_s < whole.end_s
    with showing(tmp_path_factory.mktemp("prometheus"), whole.store, other.store, lives()) as prometheus:
        yield prometheus


def lives() -> SampleStore:
    """A worker that makes 100 iterations, and is started anew and makes 20, as Prometheus sees it while it lives."""
    book = SampleStore()
    for address, made in (("a", [0, 20, 40, 60, 80, 100]), ("b", [10, 20])):
        labels = {"run": MADE, "trial": "t", "device_class": "edge", "role": "worker", "node": "edge-0"}
        for place, iterations in enumerate(made):
            counter = CounterMetricFamily("edgebed_worker_iterations", "A counter.", value=float(iterations))
            at_s = BEGIN_S + 5.0 * place + (30.0 if address == "b" else 0.0)
            book.add(at_s, [counter], labels | {"instance": address})
    return book


def shown(run: Run, prometheus: Prometheus, whole: Replayed, board: str, title: str, target: int = 0) -> float:
    """The first value of a panel at the end of the run, of one of its queries."""
    (panel,) = [panel for panel in panels_of(read_boards()[board]) if panel["title"] == title]
    query = fill(panel["targets"][target]["expr"], run=run.folder.name, trial_a=TRIAL, target="0.1", __range="1h")
    ((_, value),) = prometheus.at(query, whole.end_s)
    return value


@pytest.mark.parametrize(
    ("board", "title"),
    [
        ("run-overview", "Total up and down"),
        ("comparison", "Total up"),
        ("comparison", "Total up over time"),
        ("comparison", "Headline against bytes up"),
    ],
)
def test_applied_pushes_are_those_of_all_lives(
    run: Run, prometheus: Prometheus, whole: Replayed, board: str, title: str
) -> None:
    """What went up by the report, to the byte."""
    summary = run.trials[TRIAL].summary
    applied = [record.bytes for _, _, record in run.trials[TRIAL].events() if isinstance(record, records.Update)]

    assert len(applied) > summary.updates == 1700
    assert sum(applied) == summary.server.ingress_bytes
    assert shown(run, prometheus, whole, board, title) == summary.server.ingress_bytes


@pytest.mark.parametrize(
    ("board", "title", "target"), [("run-overview", "Total up and down", 1), ("comparison", "Total down", 0)]
)
def test_models_sent_are_those_of_all_lives(
    run: Run, prometheus: Prometheus, whole: Replayed, board: str, title: str, target: int
) -> None:
    """What went down by the report, to the byte."""
    assert shown(run, prometheus, whole, board, title, target) == run.trials[TRIAL].summary.server.egress_bytes


def test_traffic_is_that_of_all_lives(run: Run, prometheus: Prometheus, whole: Replayed) -> None:
    """Up and down, to the byte."""
    found = shown(run, prometheus, whole, "comparison", "Total up and down")

    assert found == run.trials[TRIAL].summary.server.traffic_bytes


def test_an_accuracy_costs_what_was_applied_until_then(run: Run, prometheus: Prometheus, whole: Replayed) -> None:
    """Less than in the end; the accuracy of a tenth is reached long before the server dies."""
    found = shown(run, prometheus, whole, "comparison", "Total up until the value")

    assert 0 < found < run.trials[TRIAL].summary.server.ingress_bytes / 2


def test_server_ingress_is_that_of_all_lives(run: Run, prometheus: Prometheus, whole: Replayed) -> None:
    """What a life counts is added to what those before it did, to the byte."""
    found = shown(run, prometheus, whole, "comparison", "Total server ingress")

    assert found == run.trials[TRIAL].summary.ingress_payload_bytes


def test_a_worker_has_the_iterations_of_all_its_lives(prometheus: Prometheus) -> None:
    """While it runs, each life is a series of its own."""
    (table,) = [panel for panel in panels_of(read_boards()["workers"]) if panel["type"] == "table"]
    (query,) = [one["expr"] for one in table["targets"] if "edgebed_worker_iterations_total" in one["expr"]]

    assert prometheus.at(fill(query, run=MADE), BEGIN_S + 40.0) == [
        ({"trial": "t", "device_class": "edge", "node": "edge-0"}, 120.0)
    ]
