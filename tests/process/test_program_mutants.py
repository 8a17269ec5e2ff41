"""Conditions of programs that do not hold, in processes as root: each turns the verdict, and what holds does not.

Method: one run of a node for each mutant, whose conditions are taken away when the trial begins, or whose faults are
not done; and the same run as asked.
"""

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from program_mutants import LINK, SCENARIO, assert_each_turns, reasons
from program_trials import nodes, plan, python, run
from pyroute2 import IPRoute

from edgebed.emulation import means
from edgebed.emulation.namespaces import inside
from edgebed.emulation.netlink import LEAVING
from edgebed.runtimes.processes.program_launcher import ProgramLauncher

pytestmark = [
    pytest.mark.timed,
    pytest.mark.skipif(bool(means.why_no_namespaces() or means.why_no_cgroups()), reason="that takes root"),
]

STRANGER = ("10.9.0.1", "10.9.0.2")


def take_away(launcher: ProgramLauncher) -> None:
    """The limits of a link, a cap of CPU, the one way that a node has to the others, and what a counter has counted."""
    launcher.cgroups.cap_cpus("uncapped-0", None)
    counter = launcher.cgroups.folders("recounted-0").get("cpuacct")
    if counter:
        threading.Timer(3.0, (counter / "cpuacct.usage").write_text, ["0"]).start()
    with inside(launcher.namespaces.homes["unshaped-0"].namespace), IPRoute() as ip:
        (index,) = ip.link_lookup(ifname="data")
        ip.tc("delete", index=index, parent=0xFFFFFFFF)
    with inside(launcher.namespaces.homes["bypassing-0"].namespace), IPRoute() as ip:
        ip.link("add", ifname="past", kind="veth", peer={"ifname": "beyond"})
        for name in ("past", "beyond"):
            ip.link("set", index=ip.link_lookup(ifname=name)[0], state="up")
        (past,) = ip.link_lookup(ifname="past")
        ip.addr("add", index=past, address=STRANGER[0], prefixlen=24)
        ip.neigh("add", dst=STRANGER[1], lladdr="02:00:00:00:00:01", ifindex=past)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            for _ in range(20):
                out.sendto(bytes(1000), (STRANGER[1], 9))


def test_each_mutant_turns_the_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of links, caps, ways, counters and faults."""
    assert_each_turns(tmp_path, monkeypatch, ProgramLauncher, "process", take_away, ProgramLauncher.tell, "past")


def test_a_rate_between_two_that_is_gone_around_turns_the_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what the node at whose end it is reads back; of the one that is left alone nothing is said."""
    faults = [{"link": {"between": [name, "hub"]}, "at": "1s", "rate": "1mbit"} for name in ("kept", "undone")]
    scenario = SCENARIO | {
        "fleet": {"hub": SCENARIO["fleet"]["hub"], "kept": LINK, "undone": LINK}, "faults": faults
    }  # fmt: skip
    began = ProgramLauncher.began

    def go_around(launcher: ProgramLauncher) -> None:
        with inside(launcher.namespaces.homes["undone-0"].namespace), IPRoute() as ip:
            ip.tc("del-filter", index=ip.link_lookup(ifname="data")[0], parent=LEAVING)

    def mutated_began(launcher: ProgramLauncher, monotonic_s: float) -> None:
        began(launcher, monotonic_s)
        threading.Timer(3.0, go_around, (launcher,)).start()

    monkeypatch.setattr(ProgramLauncher, "began", mutated_began)
    found = reasons(tmp_path, scenario)

    assert any(each.startswith("link: the rate between two of undone-0 was not as asked") for each in found), found
    assert not any("kept-0" in each or "interface" in each for each in found), found


@pytest.mark.netem
def test_a_latency_that_is_not_made_turns_the_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what the kernel holds, and by the smallest round trip; made as asked, it is no reason."""
    (tmp_path / "well").mkdir()
    late = SCENARIO | {
        "fleet": {"hub": SCENARIO["fleet"]["hub"], "late": LINK | {"latency": "40ms"}},
        "faults": [],
    }
    well = reasons(tmp_path / "well", late)
    began = ProgramLauncher.began

    def mutated_began(launcher: ProgramLauncher, monotonic_s: float) -> None:
        began(launcher, monotonic_s)
        with inside(launcher.namespaces.homes["late-0"].namespace), IPRoute() as ip:
            for name in ("data", "edgebed-down"):
                (index,) = ip.link_lookup(ifname=name)
                for queue in ip.get_qdiscs(index):
                    if queue.get("TCA_KIND") == "netem":
                        ip.tc("change", "netem", index, queue["handle"], parent=queue["parent"], delay=0)

    monkeypatch.setattr(ProgramLauncher, "began", mutated_began)
    found = reasons(tmp_path, late)

    for beginning in ("latency: the smallest round trip between ", "link: the uplink of late-0"):
        assert any(reason.startswith(beginning) for reason in found), found
        assert not any(reason.startswith(beginning) for reason in well), well


def test_a_program_that_is_started_unasked_fails_the_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever starts it: what it does is not what was asked for."""
    forget: Callable[..., None] = ProgramLauncher._forget

    def start_anew(launcher: ProgramLauncher, life: object) -> None:
        forget(launcher, life)
        if launcher.incarnations["home-0"] == 1:
            launcher.launch("home-0")

    monkeypatch.setattr(ProgramLauncher, "_forget", start_anew)
    sleep = python("import time; time.sleep(60)")
    trial = run(tmp_path, plan(nodes(python("pass"), sleep), stop_time_s=20.0))

    assert trial.ended.outcome == "failed"
    assert trial.ended.reason == "home-0 was started anew, and nobody had asked for it"
