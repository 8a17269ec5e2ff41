"""Runs in processes whose conditions somebody changes from outside, where no node looks: the verdict finds it.

What is changed is none of what nodes read back: the other end of a link, a cgroup above theirs, others' packets.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyroute2 import IPRoute
from quick_runs import run as run_quickly

from edgebed.core import records
from edgebed.emulation import means
from edgebed.emulation.namespaces import inside
from edgebed.emulation.resources import ROOT, cgroup_folders
from edgebed.journal.journal import read_journal
from edgebed.journal.verdict.fidelity import Fidelity

pytestmark = pytest.mark.timed

SCENARIO = {
    "name": "tampered",
    "question": "Do the conditions hold?",
    "task": {"data": "digits", "model": "small", "batch_size": 10},
    "method": "asgd",
    "evaluation": {"every": "1h"},
    "stop": {"time": "8s"},
}
Pids = dict[str, int]


@pytest.fixture(autouse=True)
def root() -> None:
    """The right to namespaces and cgroups."""
    if reason := means.why_no_namespaces() or means.why_no_cgroups():
        pytest.skip(f"neither namespaces nor cgroups: {reason}; run the tests as root")


def judged(runs: Path, tamper: Callable[[Pids], None], **asked: object) -> Fidelity:
    """The verdict on a run, at whose processes `tamper` gets as soon as it trains."""
    thread = threading.Thread(target=lambda: tamper(training(runs)))
    thread.start()
    try:
        run = run_quickly(SCENARIO | asked, runs_dir=runs, emulation="kernel")
    finally:
        thread.join()
    (trial,) = run.summary.trials
    assert trial.outcome == "completed", trial.reason
    assert trial.fidelity is not None
    return trial.fidelity


def training(runs: Path) -> Pids:
    """The processes of the nodes, once they train; none if they do not within a minute."""
    pids: Pids = {}
    until_s = time.monotonic() + 60.0
    while time.monotonic() < until_s:
        for path in runs.glob("tampered/0001/*/events.jsonl"):
            found = [record for _, _, record in read_journal(path)]
            pids = {each.name: each.pid for each in found if isinstance(each, records.Node) and each.pid}
            if any(isinstance(each, records.Update) for each in found):
                return pids
        time.sleep(0.1)
    return pids


def data_namespace(pid: int) -> str:
    """The network namespace of a node's data sockets: that of some thread which is not the host's."""
    host = Path("/proc/self/ns/net").stat().st_ino
    threads = Path(f"/proc/{pid}/task").iterdir()
    return next(str(each / "ns/net") for each in threads if (each / "ns/net").stat().st_ino != host)


@contextlib.contextmanager
def data_interface(pid: int) -> Iterator[tuple[IPRoute, int]]:
    """Netlink in a node's namespace, and the index of its interface."""
    with inside(data_namespace(pid)), IPRoute() as ip:
        yield ip, ip.link_lookup(ifname="data")[0]


def address_of(pid: int) -> str:
    """A node's address on the data network."""
    with data_interface(pid) as (ip, index):
        return str(next(each.get("IFA_ADDRESS") for each in ip.get_addr(index=index, family=socket.AF_INET)))


def test_a_limit_at_the_other_end_is_the_links_fault_though_caps_hold_nodes_back(tmp_path: Path) -> None:
    """Models at a fifth of the rate that was asked, to nodes that their caps hold back most of the time."""

    def limit_the_server(pids: Pids) -> None:
        with data_interface(pids["server"]) as (ip, index):
            ip.tc("add", "tbf", index, 0x10000, rate="800kbit", burst=3000, latency="300ms")

    edge = {"count": 2, "cpus": 0.015, "uplink": "4mbit", "downlink": "4mbit"}
    fidelity = judged(tmp_path, limit_the_server, fleet={"edge": edge})

    assert fidelity.verdict == "degraded"
    assert any(
        reason.startswith("link: models of both nodes of edge were under way between the kernels of both ends")
        for reason in fidelity.reasons
    ), fidelity.reasons


def test_tiny_packets_are_foreign_traffic_wherever_they_are_sent(tmp_path: Path) -> None:
    """One byte each, to the server and to a worker; what the server's full queue drops hides none of the rest."""

    def flood_both(pids: Pids) -> None:
        flows = [("edge-0", "server"), ("server", "edge-1")]
        threads = [threading.Thread(target=flood, args=(pids[source], pids[target])) for source, target in flows]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    links = {"fleet": {"edge": {"count": 2, "uplink": "8mbit", "downlink": "8mbit"}}, "server": {"downlink": "3mbit"}}
    fidelity = judged(tmp_path, flood_both, **links)
    found = [reason for reason in fidelity.reasons if reason.startswith("foreign traffic: ")]

    assert fidelity.verdict == "degraded"
    assert any("that passed the server's interface" in reason for reason in found), fidelity.reasons
    assert any("that passed the interface of edge-1" in reason for reason in found), fidelity.reasons


def flood(source: int, target: int) -> None:
    """30,000 packets of a byte from one node's namespace to another node, to a port at which nobody listens."""
    address = address_of(target)
    with inside(data_namespace(source)):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with sender:
        for number in range(30_000):
            with contextlib.suppress(OSError):  # the port says that nobody listens, or the queue is full
                sender.sendto(b"x", (address, 9))
            if number % 40 == 0:
                time.sleep(0.004)


def test_a_quota_above_the_nodes_own_is_found(tmp_path: Path) -> None:
    """Half of two caps of a twentieth of a core, which are less than a tenth of the training."""

    def halve(pids: Pids) -> None:
        folders = cgroup_folders(pids["edge-0"], ROOT)
        parent = folders.get("", folders.get("cpu", ROOT)).parent
        if "" in folders:
            (parent / "cpu.max").write_text("5000 100000")
        else:
            (parent / "cpu.cfs_period_us").write_text("100000")
            (parent / "cpu.cfs_quota_us").write_text("5000")

    fidelity = judged(tmp_path, halve, fleet={"edge": {"count": 2, "cpus": 0.05}}, stop={"time": "6s"})

    assert fidelity.verdict == "degraded"
    assert any(reason.startswith("host CPU: both nodes of edge waited") for reason in fidelity.reasons), (
        fidelity.reasons
    )
