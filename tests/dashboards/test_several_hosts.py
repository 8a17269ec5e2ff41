"""What dashboards show of a run over two hosts: a real Prometheus is asked, about a run that is replayed into it."""

from collections.abc import Iterator

import msgspec
import pytest
from boards import fill, queries_of, read_boards
from real_prometheus import Prometheus, require_tools, showing
from sample_runs import make_plan

from edgebed.core import records
from edgebed.metrics.openmetrics import SampleStore
from edgebed.metrics.replay import TrialFacts, replay

RUN, START_S, LENGTH_S = "hosts/0001", 1_700_000_000.0, 120
PLACES = {"server": "a", "evaluator": "a", "edge-0": "a", "edge-1": "b", "phone-0": "b", "phone-1": "b"}
SHOWN = {
    "How busy the machine is", "Steal, bound on the mean", "Late wake-ups, bound on the median", "CPU used by host",
    "Network between hosts, in and out A", "Network between hosts, in and out B", "Network between hosts, in and out C",
}  # fmt: skip


def journal() -> Iterator[tuple[float, str, records.Record]]:
    """Nodes use half a core each; host b is busy, and the rate of its network alone is known."""
    yield 0.0, "controller", records.Trial(scenario="s", trial="t", seed=1, runtime="docker", nodes=6, parameters=10)
    for name in PLACES:
        for state in ("joined", "ready", "running"):
            yield 0.5, "controller", records.Node(name=name, state=state, incarnation=1)
    for second in range(2, LENGTH_S, 2):
        for host, busy, rate_bit_s in (("a", 0.25, 0), ("b", 0.75, 8_000)):
            load = records.HostLoad(
                busy=busy, steal=0.0, load=1.0, lag_s=0.001, host=host, received_bytes_s=300.0, sent_bytes_s=200.0,
                rate_bit_s=rate_bit_s,
            )  # fmt: skip
            yield float(second), "controller", load
        for name in PLACES:
            yield float(second), name, records.Usage(time_s=float(second), cpu_s=second / 2, starved_s=0.0)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """One that has seen the run."""
    require_tools()
    plan, store = make_plan(), SampleStore()
    nodes = tuple(msgspec.structs.replace(node, host=PLACES[node.node]) for node in plan.nodes)
    plan = msgspec.structs.replace(plan, nodes=nodes)
    replay(plan, journal, TrialFacts(run=RUN, runtime="docker", start_s=START_S), store)
    with showing(tmp_path_factory.mktemp("hosts"), store) as prometheus:
        yield prometheus


def test_the_overview_shows_each_host(prometheus: Prometheus) -> None:
    """Every panel of hosts has both, and what is not known of one of them it leaves out; nodes are added up by host."""
    asked = {title: expr for title, expr, _ in queries_of(read_boards()["run-overview"]) if title in SHOWN}
    told = {
        title: {labels["host"]: value for labels, value in prometheus.at(fill(expr, run=RUN), START_S + LENGTH_S - 10)}
        for title, expr in asked.items()
    }

    assert told == {
        "How busy the machine is": {"a": 0.25, "b": 0.75},
        "Steal, bound on the mean": {"a": 0.0, "b": 0.0},
        "Late wake-ups, bound on the median": {"a": 0.001, "b": 0.001},
        "CPU used by host": dict.fromkeys("ab", pytest.approx(1.5, rel=0.1)),  # told each 2 s, read each 5 s
        "Network between hosts, in and out A": {"a": 2400.0, "b": 2400.0},
        "Network between hosts, in and out B": {"a": 1600.0, "b": 1600.0},
        "Network between hosts, in and out C": {"b": 8000.0},
    }


def test_hosts_can_be_chosen(prometheus: Prometheus) -> None:
    """By their names, from those that there are; the others are not shown then."""
    variable = next(
        one for one in read_boards()["run-overview"]["templating"]["list"] if one["name"] == "host"
    )  # fmt: skip
    series = fill(variable["query"]["query"].removeprefix("label_values(").rpartition(",")[0], run=RUN)
    found = prometheus.get("series", **{"match[]": series, "start": str(START_S), "end": str(START_S + LENGTH_S)})
    asked = {title: expr for title, expr, _ in queries_of(read_boards()["run-overview"])}
    chosen = prometheus.at(fill(asked["How busy the machine is"], run=RUN, host="b"), START_S + LENGTH_S - 10)

    assert {one["host"] for one in found} == {"a", "b"}
    assert [labels["host"] for labels, _ in chosen] == ["b"]
