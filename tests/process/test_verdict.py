"""The verdict on real runs in processes: what nodes measure, and what is found where conditions do not hold."""

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from live_runs import pids_when_it_trains, run_live
from pyroute2 import IPRoute
from quick_runs import run as run_quickly
from tampering import namespace_of
from waiting import until
from warm_command import WarmCommand

from edgebed.core import records
from edgebed.core.actions import ACTIONS
from edgebed.emulation import means
from edgebed.emulation.namespaces import inside
from edgebed.journal.series import Series
from edgebed.journal.verdict.fidelity import Fidelity, judge
from edgebed.running.results import Run

pytestmark = pytest.mark.timed

WORKERS = ("edge-0", "edge-1")
SCENARIO = {
    "name": "judged",
    "question": "Do the conditions hold?",
    "task": {"data": "digits", "model": "small", "batch_size": 10},
    "method": "asgd",
    "fleet": {"edge": {"count": 2, "uplink": "10mbit", "downlink": "20mbit", "waiting": {"exponential": "20ms"}}},
    "evaluation": {"every": "1h"},
    "stop": {"time": "4s"},
}


def fidelity_of(run: Run) -> Fidelity:
    """The verdict on the only trial."""
    (trial,) = run.summary.trials
    assert trial.outcome == "completed", trial.reason
    assert trial.fidelity is not None
    return trial.fidelity


def said(run: Run, kind: type[records.Record]) -> set[str]:
    """Who journaled a kind of record."""
    (trial,) = run.trials.values()
    return {node for _, node, record in trial.events() if isinstance(record, kind)}


@pytest.fixture
def root() -> None:
    """The right to namespaces."""
    if reason := means.why_no_namespaces():
        pytest.skip(f"no namespaces: {reason}; run the tests as root")


@pytest.mark.parametrize("emulation", ["model", "kernel"])
def test_every_node_measures_what_its_conditions_were(
    tmp_path: Path, emulation: str, request: pytest.FixtureRequest
) -> None:
    """Records of all kinds, a row with figures for each link, and no message sooner than its bytes allow."""
    if emulation == "kernel":
        request.getfixturevalue("root")
    run = run_quickly(SCENARIO, runs_dir=tmp_path, emulation=emulation)  # type: ignore[arg-type]
    fidelity = fidelity_of(run)

    assert said(run, records.Usage) == {"server", "evaluator", *WORKERS}
    assert said(run, records.Link) == set(WORKERS)
    assert said(run, records.Transfers) == {"server", *WORKERS}
    assert said(run, records.HostLoad) == {"controller"}
    for row in fidelity.nodes:
        assert row.cpus_measured is not None
        assert row.memory_bytes
        if row.node in WORKERS:
            assert row.mechanism == ("tc" if emulation == "kernel" else "model")
            for way, asked_bit_s in ((row.uplink, 10_000_000), (row.downlink, 20_000_000)):
                assert way.held_bit_s == asked_bit_s
                assert way.messages > 5
                assert way.early <= 0.1 * way.messages
                assert way.measured_bit_s is not None
    assert not [text for text in (*fidelity.reasons, *fidelity.remarks) if "not observed" in text]
    assert {row.measured_by for row in fidelity.evidence if row.condition == "uplink rate"} == {
        "read back by the node from tc" if emulation == "kernel" else "stated by the node, which holds it itself"
    }
    assert fidelity.host is not None
    assert fidelity.host.cores == os.cpu_count()
    assert not [reason for reason in fidelity.reasons if not reason.startswith("host")]


@pytest.mark.parametrize("emulation", ["model", "kernel"])
def test_a_link_of_latency_alone_holds(tmp_path: Path, emulation: str, request: pytest.FixtureRequest) -> None:
    """Nothing limits a rate, and nothing should: what delays it is the kernel or the transport."""
    if emulation == "kernel":
        request.getfixturevalue("root")
    fleet = {"edge": {"count": 2, "latency": "20ms"}}
    fidelity = fidelity_of(run_quickly(SCENARIO | {"fleet": fleet}, runs_dir=tmp_path, emulation=emulation))  # type: ignore[arg-type]

    assert not [reason for reason in fidelity.reasons if not reason.startswith("host")]
    for row in fidelity.nodes:
        if row.node in WORKERS:
            assert row.delay in ("line", "netem")
            assert row.downlink.latency_s == pytest.approx(0.02 * row.downlink.messages)
            assert row.downlink.messages > 0
            for way in (row.uplink, row.downlink):
                assert way.delay_s is not None
                assert 0.0195 <= way.delay_s < 0.1


@contextmanager
def when_it_trains(runs: Path, act: Callable[[Mapping[str, int]], None]) -> Iterator[None]:
    """Context in which `act` gets the processes of the nodes, as soon as the run there trains."""
    ended = threading.Event()

    def begin() -> None:
        if pids := pids_when_it_trains(runs, ended):
            act(pids)

    thread = threading.Thread(target=begin)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.usefixtures("root")
def test_what_others_send_to_the_server_is_found(tmp_path: Path) -> None:
    """Two megabytes of somebody else's, through its interface; beside a flow that is the trial's own, no byte is."""
    with when_it_trains(tmp_path, send_to_the_server):
        fidelity = fidelity_of(run_quickly(SCENARIO, runs_dir=tmp_path, emulation="kernel"))
    quiet = fidelity_of(run_quickly(SCENARIO, runs_dir=tmp_path / "quiet", set=["stop.time=3s"], emulation="kernel"))

    assert "foreign traffic" in fidelity.causes
    assert "foreign traffic" not in quiet.causes


def send_to_the_server(pids: Mapping[str, int]) -> None:
    """From the namespace of a worker, to a port at which nobody listens."""
    with inside(namespace_of(pids["server"])), IPRoute() as ip:
        (index,) = ip.link_lookup(ifname="data")
        (address,) = (each.get("IFA_ADDRESS") for each in ip.get_addr(index=index, family=socket.AF_INET))
    with inside(namespace_of(pids["edge-0"])):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with sender:
        for _ in range(2_000_000 // 1400):
            sender.sendto(bytes(1400), (address, 9))  # as fast as the worker's uplink lets it


def test_caps_that_no_host_can_give_are_found(tmp_path: Path) -> None:
    """Twice as many workers as cores, promised a core each, that compute all the time."""
    count = 2 * len(os.sched_getaffinity(0))
    scenario = SCENARIO | {
        "task": {"data": "synthetic", "model": "mlp", "batch_size": 32},
        "method": {"preset": "adacomp", "compression": {"fraction": 0.01}},
        "fleet": {"edge": {"count": count, "cpus": 1}},
    }
    fidelity = fidelity_of(run_quickly(scenario, runs_dir=tmp_path))

    assert fidelity.verdict == "degraded"
    assert any(reason.startswith(f"host CPU: all {count} nodes of edge waited") for reason in fidelity.reasons)


@pytest.mark.usefixtures("root")
def test_a_burst_changed_behind_its_back_is_found_by_read_back_and_by_messages(tmp_path: Path) -> None:
    """64 kB let every push of 19 kB through at once, though the rate is as asked."""
    with when_it_trains(tmp_path, raise_bursts):
        fidelity = fidelity_of(run_quickly(SCENARIO, runs_dir=tmp_path, set=["stop.time=6s"], emulation="kernel"))

    assert fidelity.verdict == "degraded"
    assert any("bytes through at once, asked 1600" in reason for reason in fidelity.reasons)
    assert any(reason.startswith("link: of the pushes of both nodes of edge, up to") for reason in fidelity.reasons)


def raise_bursts(pids: Mapping[str, int]) -> None:
    """Give every worker's uplink a bucket of 64 kB."""
    for name in WORKERS:
        with inside(namespace_of(pids[name])), IPRoute() as ip:
            (index,) = ip.link_lookup(ifname="data")
            (root,) = (each for each in ip.get_qdiscs(index) if each.get("TCA_KIND") == "tbf")
            ip.tc("change", "tbf", index, root["handle"], rate="10mbit", burst=65536, limit=300_000)


@pytest.mark.usefixtures("root")
def test_a_worker_that_is_stopped_and_an_mtu_that_is_changed_are_found(tmp_path: Path) -> None:
    """Both from outside, in mid run: neither its links nor its cap differ, and nobody else is blamed."""
    with when_it_trains(tmp_path, meddle):
        fidelity = fidelity_of(run_quickly(SCENARIO, runs_dir=tmp_path, set=["stop.time=5s"], emulation="kernel"))

    assert fidelity.verdict == "degraded"
    (stopped,) = [reason for reason in fidelity.reasons if reason.startswith("stopped: ")]
    assert "edge-1 stood still for" in stopped
    assert any(
        "the MTU of edge-0 was not as asked" in reason and "packets of 600 bytes, at first of 1,500" in reason
        for reason in fidelity.reasons
    )


FAULTS = [
    {"freeze": "edge-0", "at": "1s", "for": "4s"},
    {"cut": "edge-1", "at": "1s", "for": "4s"},
    {"kill": "edge-2", "at": "1s"},
]
HARMED = SCENARIO | {"fleet": {"edge": {"count": 3, "uplink": "10mbit", "waiting": "20ms"}}, "faults": FAULTS}


@pytest.mark.usefixtures("root")
def test_faults_that_have_no_effect_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A freeze and a kill by a signal that nobody minds, a link that somebody opens again; and the same as asked."""
    well = fidelity_of(run_quickly(HARMED, runs_dir=tmp_path / "well", set=["stop.time=6s"], emulation="kernel"))
    for action in ("freeze", "kill"):
        monkeypatch.setitem(ACTIONS, action, ACTIONS[action]._replace(signal=signal.SIGWINCH))
    with when_it_trains(tmp_path, open_again):
        found = fidelity_of(run_quickly(HARMED, runs_dir=tmp_path, set=["stop.time=8s"], emulation="kernel"))

    assert not [reason for reason in well.reasons if reason.startswith("faults")]
    assert any(reason.startswith("faults: edge-0 was frozen, and ") for reason in found.reasons)
    assert any(reason.startswith("faults: the link of edge-1 was cut, and ") for reason in found.reasons)
    assert any(reason.startswith("faults: kill of edge-2 had no effect") for reason in found.reasons)


def open_again(pids: Mapping[str, int]) -> None:
    """Take what cuts a worker's uplink and downlink away, as soon as it is there."""
    with inside(namespace_of(pids["edge-1"])), IPRoute() as ip:
        for name in ("data", "edgebed-down"):
            (index,) = ip.link_lookup(ifname=name)
            until(lambda of=index: any(each.get("TCA_KIND") == "blackhole" for each in ip.get_qdiscs(of)), "the cut")
            ip.tc("delete", "blackhole", index, parent=0xFFFFFFFF)


def meddle(pids: Mapping[str, int]) -> None:
    """Stop a worker for half of the time, and give the other's interface another MTU."""
    with inside(namespace_of(pids["edge-0"])), IPRoute() as ip:
        (index,) = ip.link_lookup(ifname="data")
        ip.link("set", index=index, mtu=600)
    for number in (signal.SIGSTOP, signal.SIGCONT) * 3:
        os.kill(pids["edge-1"], number)
        threading.Event().wait(0.5)


def test_stops_that_are_shorter_than_a_sleep_are_seen_where_the_kernel_holds_nothing(tmp_path: Path) -> None:
    """Most of the time, too briefly for a clock of its own; without root, too, the controller sees its processes."""

    def stop(pids: Mapping[str, int]) -> None:
        with suppress(ProcessLookupError):
            for number in (signal.SIGSTOP, signal.SIGCONT) * 90:
                os.kill(pids["edge-1"], number)
                threading.Event().wait(0.045 if number == signal.SIGSTOP else 0.02)

    scenario = SCENARIO | {"fleet": {"edge": {"count": 2, "waiting": "20ms"}}}
    with when_it_trains(tmp_path, stop):
        fidelity = fidelity_of(run_quickly(scenario, runs_dir=tmp_path, set=["stop.time=8s"], emulation="model"))
    (stopped,) = [reason for reason in fidelity.reasons if reason.startswith("stopped: ")]

    assert "edge-1 stood still for" in stopped


@pytest.mark.soak
def test_a_controller_that_stood_still_leaves_the_host_unobserved(tmp_path: Path) -> None:
    """Then nobody knows whether the host was busy; what the nodes measured stays."""

    def stop(controller: WarmCommand, folder: Path) -> None:
        pids_when_it_trains(folder / "runs", threading.Event())
        controller.send_signal(signal.SIGSTOP)
        threading.Event().wait(5.0)
        controller.send_signal(signal.SIGCONT)

    run = run_live(
        SCENARIO | {"evaluation": {"every": "4s"}, "stop": {"time": "8s"}},
        tmp_path / "run",
        "--runtime",
        "process",
        meanwhile=stop,
    )
    fidelity = judge(run.trial.read_plan(), Series.from_journal(run.trial.journal))

    assert fidelity is not None
    assert fidelity.verdict in ("unknown", "degraded")
    told = fidelity.reasons if fidelity.verdict == "unknown" else fidelity.remarks
    assert any("load of the host" in text for text in told)


LAYERS = SCENARIO | {
    "stop": {"time": "3s"},
    "task": {"data": "digits", "model": "eight-layer", "width": 16, "batch_size": 32},
    "method": "back-propagation",
    "evaluation": {"every": "10000 updates"},
    "checkpoints": {"every": "10000 updates"},
    "fleet": {"edge": {"count": 2, "uplink": "20mbit", "downlink": "20mbit", "latency": "2ms"}},
}


@pytest.mark.parametrize(
    ("emulation", "traffic"),
    [
        ("model", "direct"),
        ("kernel", "store"),
        pytest.param("model", "store", marks=pytest.mark.soak),
        pytest.param("kernel", "direct", marks=pytest.mark.soak),
    ],
)
def test_messages_of_shards_are_judged_by_pair(
    tmp_path: Path, emulation: str, traffic: str, request: pytest.FixtureRequest
) -> None:
    """How long activations and gradients took is known of both ends of every connection, and is as asked."""
    if emulation == "kernel":
        request.getfixturevalue("root")
    scenario = LAYERS | {"shards": {"traffic": traffic}}
    fidelity = fidelity_of(run_quickly(scenario, runs_dir=tmp_path, emulation=emulation))  # type: ignore[arg-type]
    rows = {row.node: row for row in fidelity.nodes}
    ends = [("edge-0", "store"), ("store", "edge-1"), ("edge-1", "store"), ("store", "edge-0")]
    pairs = [("edge-0", "edge-1"), ("edge-1", "edge-0")] if traffic == "direct" else ends

    for source, target in pairs:
        (way,) = [each for each in rows[source].pairs if each.to == target]
        assert way.messages > 5
        assert way.early <= 0.1 * way.messages
    assert not [reason for reason in fidelity.reasons if not reason.startswith("host")]


@pytest.mark.usefixtures("root")
def test_shards_whose_links_let_too_much_through_are_found(tmp_path: Path) -> None:
    """A bucket of 64 kB behind edgebed's back: activations of 8 kB come sooner than their bytes allow."""
    scenario = LAYERS | {
        "task": LAYERS["task"] | {"batch_size": 128},
        "fleet": {"edge": {"count": 2, "uplink": "10mbit", "downlink": "20mbit"}},
    }
    with when_it_trains(tmp_path, raise_bursts):
        fidelity = fidelity_of(run_quickly(scenario, runs_dir=tmp_path, set=["stop.time=6s"], emulation="kernel"))

    assert fidelity.verdict == "degraded"
    assert any("bytes through at once, asked 1600" in reason for reason in fidelity.reasons)
    assert any(reason.startswith("link: of the messages of") for reason in fidelity.reasons)
