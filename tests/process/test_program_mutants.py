"""Conditions of programs that do not hold, in processes as root: each turns the verdict, and what holds does not.

Method: one run of a node for each mutant, whose conditions are taken away when the trial begins, or whose faults are
not done; and the same run as asked.
"""

import socket
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest
from program_trials import nodes, plan, python, run
from pyroute2 import IPRoute
from quick_runs import run as run_quickly

from edgebed.core.planned.fault import Injection
from edgebed.emulation import means
from edgebed.emulation.cgroups import mounts
from edgebed.emulation.namespaces import inside
from edgebed.roles.events import Injected
from edgebed.runtimes.processes.program_launcher import ProgramLauncher

pytestmark = [
    pytest.mark.timed,
    pytest.mark.skipif(bool(means.why_no_namespaces() or means.why_no_cgroups()), reason="that takes root"),
]

HUB = """
import selectors, socket
listener = socket.create_server(("", 8000))
waits = selectors.DefaultSelector()
waits.register(listener, selectors.EVENT_READ)
while True:
    for key, _ in waits.select():
        if key.fileobj is listener:
            waits.register(listener.accept()[0], selectors.EVENT_READ)
        elif not key.fileobj.recv(65536):
            waits.unregister(key.fileobj)
"""
HOME = """
import socket, time
with socket.create_connection(("hub-0", 8000)) as server:
    while True:
        server.sendall(bytes(5000))
        time.sleep(0.1)
"""
BUSY = "while True: pass"
HOMES = ("unshaped", "bypassing", "missed", "unfrozen", "uncut", "mistaken", "struck", "recounted")
LINK = {"uplink": "2mbit", "downlink": "2mbit", "count": 1, "run": "python home.py", "after": "hub"}
SCENARIO = {
    "name": "mutants",
    "question": "Do the conditions hold?",
    "program": {"files": "app"},
    "fleet": {
        "hub": {"count": 1, "run": "python hub.py", "ready": {"port": 8000}},
        "uncapped": {"count": 1, "run": "python busy.py", "cpus": 0.1},
        **dict.fromkeys(HOMES, LINK),
    },
    "faults": [
        {"kill": "missed", "at": "1s"},
        {"freeze": "unfrozen", "at": "1s", "for": "3s"},
        {"cut": "uncut", "at": "1s", "for": "3s"},
        {"cut": "mistaken", "at": "1s", "for": "3s"},
    ],
    "stop": {"time": "7s"},
}
NOT_DONE = ("missed-0", "unfrozen-0", "uncut-0")
STRANGER = ("10.9.0.1", "10.9.0.2")


def reasons(tmp_path: Path, scenario: Mapping[str, object] = SCENARIO) -> list[str]:
    """Why the verdict on a scenario is no better."""
    app = tmp_path / "app"
    app.mkdir()
    for name, text in (("hub", HUB), ("home", HOME), ("busy", BUSY)):
        (app / f"{name}.py").write_text(text)
    path = tmp_path / "mutants.yaml"
    path.write_text(msgspec.yaml.encode(scenario).decode())
    (trial,) = run_quickly(path, runs_dir=tmp_path / "runs").programs.values()
    assert trial.summary.outcome == "completed", trial.summary.reason
    assert trial.summary.fidelity is not None
    return list(trial.summary.fidelity.reasons)


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
    """Limits, caps and ways as asked are no reason; without them, or where faults do nothing, each is one."""
    (tmp_path / "well").mkdir()
    well = reasons(tmp_path / "well")
    began, inject = ProgramLauncher.began, ProgramLauncher.inject

    def mutated_began(launcher: ProgramLauncher, monotonic_s: float) -> None:
        began(launcher, monotonic_s)
        take_away(launcher)

    def mutated_inject(launcher: ProgramLauncher, number: int, injection: Injection) -> None:
        if injection.node in NOT_DONE and injection.action != "launch":
            launcher.tell(Injected(number))
            return
        struck = "struck-0" if injection.node == "mistaken-0" else injection.node
        inject(launcher, number, msgspec.structs.replace(injection, node=struck))

    monkeypatch.setattr(ProgramLauncher, "began", mutated_began)
    monkeypatch.setattr(ProgramLauncher, "inject", mutated_inject)
    found = reasons(tmp_path)

    beginnings = {
        "shaper removed": "link: the uplink of unshaped-0 was not as asked",
        "cap not set": "CPU cap: uncapped-0",
        "past the link": "bypass: 20.8 kB of bypassing-0 passed its interface past",
        "kill that misses": "faults: kill of missed-0 had no effect",
        "freeze that does nothing": "faults: unfrozen-0 was frozen, and ",
        "cut that does nothing": "faults: the link of uncut-0 was cut, and ",
        "wrong node": "faults: the link of mistaken-0 was cut, and ",
    }
    if "cpuacct" in mounts():  # cgroups of version 2 have no counter that can be set back
        beginnings["counters reset"] = "counters: recounted-0: its CPU time was set back"
    for mutant, beginning in beginnings.items():
        assert any(reason.startswith(beginning) for reason in found), (mutant, found)
        assert not any(reason.startswith(beginning) for reason in well), (mutant, well)


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
