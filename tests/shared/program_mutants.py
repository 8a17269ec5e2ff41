"""Conditions of programs that do not hold, wherever they run: each turns the verdict, and what holds does not.

One run of a node for each mutant, whose conditions are taken away when the trial begins, or whose faults are not done;
and the same run as asked.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from quick_runs import run as run_quickly

from edgebed.core.planned.fault import Injection
from edgebed.core.runtimes import Runtime
from edgebed.emulation.cgroups import mounts
from edgebed.roles.events import Injected

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


def reasons(tmp_path: Path, scenario: Mapping[str, object] = SCENARIO, runtime: Runtime = "process") -> list[str]:
    """Why the verdict on a scenario is no better."""
    app = tmp_path / "app"
    app.mkdir()
    for name, text in (("hub", HUB), ("home", HOME), ("busy", BUSY)):
        (app / f"{name}.py").write_text(text)
    path = tmp_path / "mutants.yaml"
    path.write_text(msgspec.yaml.encode(scenario).decode())
    (trial,) = run_quickly(path, runs_dir=tmp_path / "runs", runtime=runtime).programs.values()
    assert trial.summary.outcome == "completed", trial.summary.reason
    assert trial.summary.fidelity is not None
    return list(trial.summary.fidelity.reasons)


def assert_each_turns(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    launcher: type[Any],
    runtime: Runtime,
    take_away: Callable[[Any], None],
    tell: Callable[[Any, Injected], None],
    interface: str,
    times: int = 1,
) -> None:
    """Limits, caps and ways as asked are no reason; without them, or where faults do nothing, each is one.

    `launcher` starts the programs; `take_away` is called with it when the trial has begun, and `tell` with what is said
    to be done; `interface` is the one that `bypassing` has beside its link. All takes so many `times` as long.
    """
    (tmp_path / "well").mkdir()
    longer = {"at": f"{times}s", "for": f"{3 * times}s"}
    faults = [each | {key: longer[key] for key in longer.keys() & each.keys()} for each in SCENARIO["faults"]]
    scenario = SCENARIO | {"faults": faults, "stop": {"time": f"{7 * times}s"}}
    well = reasons(tmp_path / "well", scenario, runtime)
    began, inject = launcher.began, launcher.inject

    def mutated_began(self: Any, monotonic_s: float) -> None:
        began(self, monotonic_s)
        take_away(self)

    def mutated_inject(self: Any, number: int, injection: Injection) -> None:
        if injection.node in NOT_DONE and injection.action != "launch":
            tell(self, Injected(number))
            return
        struck = "struck-0" if injection.node == "mistaken-0" else injection.node
        inject(self, number, msgspec.structs.replace(injection, node=struck))

    monkeypatch.setattr(launcher, "began", mutated_began)
    monkeypatch.setattr(launcher, "inject", mutated_inject)
    found = reasons(tmp_path, scenario, runtime)

    beginnings = {
        "shaper removed": "link: the uplink of unshaped-0 was not as asked",
        "cap not set": "CPU cap: uncapped-0",
        "past the link": f" of bypassing-0 passed its interface {interface}",
        "kill that misses": "faults: kill of missed-0 had no effect",
        "freeze that does nothing": "faults: unfrozen-0 was frozen, and ",
        "cut that does nothing": "faults: the link of uncut-0 was cut, and ",
        "wrong node": "faults: the link of mistaken-0 was cut, and ",
    }
    if "cpuacct" in mounts():  # cgroups of version 2 have no counter that can be set back
        beginnings["counters reset"] = "counters: recounted-0: its CPU time was set back"
    for mutant, beginning in beginnings.items():
        assert any(beginning in reason for reason in found), (mutant, found)
        assert not any(beginning in reason for reason in well), (mutant, well)
