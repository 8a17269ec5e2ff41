"""Runs over three hosts, with clocks a thousand seconds apart: what is cut, restarted or switched off is accounted for.

The controller is a process on the first host, as of a user who is logged in there.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from leftovers import leftovers
from random_faults import Told
from waiting import until

from edgebed.core import records
from edgebed.core.errors import InfrastructureError
from edgebed.core.planned.hosts import EngineAddress
from edgebed.journal.journal import read_journal
from edgebed.running.results import Trial, load
from edgebed.runtimes.containers.engine import connect
from edgebed.runtimes.containers.labels import LABEL_OWNER
from edgebed.runtimes.containers.leftovers import containers_with, networks_with

pytestmark = [pytest.mark.docker]

SCENARIO: dict[str, Any] = {
    "name": "over-hosts",
    "seed": 3,
    "task": {"model": "small", "data": "synthetic", "batch_size": 20, "fraction": 0.3},
    "method": "asgd",
    "fleet": {
        "fast": {"count": 2, "cpus": 0.4, "uplink": "20mbit", "downlink": "20mbit", "latency": "5ms"},
        "slow": {"count": 2, "cpus": 0.2, "uplink": "4mbit", "downlink": "4mbit"},
    },
    "evaluation": {"every": "400 updates"},
    "stop": {"updates": 1200, "time": "90s"},
}

JOURNALS = "runs/*/0001/*/events.jsonl"


class Controller:
    """The command `edgebed` on the first host."""

    def __init__(self, swarm, folder: Path, *words: str) -> None:
        self.folder = folder
        command = ["nsenter", f"--net={swarm.namespace('e1')}", sys.executable, "-m", "edgebed", *words]
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def end(self, deadline_s: float = 100.0) -> tuple[int, str]:
        """Its exit code, and what it has said."""
        try:
            said = self.process.communicate(timeout=deadline_s)[0]
        except subprocess.TimeoutExpired:
            self.process.terminate()
            pytest.fail(f"no end after {deadline_s:g} s: {self.process.communicate()[0][-3000:]}")
        return self.process.returncode, said

    def journal(self) -> list[tuple[float, str, records.Record]]:
        """What the run's journal has by now."""
        found = list(self.folder.glob(JOURNALS))
        return list(read_journal(found[0])) if found else []


def ran(swarm, folder: Path, scenario: dict[str, Any], hosts: str, meanwhile=lambda _: None) -> tuple[int, str, Trial]:
    """A scenario run with these hosts, to its end: exit code, what was said, the trial."""
    folder.mkdir()
    (folder / "scenario.yaml").write_bytes(msgspec.json.encode(scenario))
    (folder / "hosts.yaml").write_text(hosts, encoding="utf-8")
    controller = Controller(swarm, folder, "run", "scenario.yaml", "--runtime", "docker")
    meanwhile(controller)
    code, said = controller.end()
    assert controller.journal(), said[-3000:]
    (trial,) = load(folder / f"runs/{scenario['name']}/0001").trials.values()
    return code, said, trial


def left(clients, *, without: str = "") -> list[str]:
    """Names of what runs have left on the hosts."""
    return [
        thing.get("Name") or thing["Names"][0]
        for host, client in clients.items()
        if host != without
        for thing in (*containers_with(client, LABEL_OWNER), *networks_with(client, LABEL_OWNER))
    ]


def is_there(address: EngineAddress) -> bool:
    """Whether an engine answers."""
    try:
        connect(address).close()
    except InfrastructureError:
        return False
    return True


def hosts_of(swarm, classes: dict[str, str]) -> str:
    """A file of the swarm's hosts, where these take classes."""
    lines = [
        f"{each.host}: {{ engine: '{each.engine}', classes: [{classes.get(each.host, '')}] }}"
        for each in swarm.addresses
    ]
    return "\n".join(lines) + "\n"


@pytest.mark.timeout(300)
def test_a_run_over_three_hosts_outlives_a_cut_a_restart_of_its_server_and_a_host(swarm, clients, tmp_path):
    """Everything is accounted for; each host was observed, the lost one by name; no clock has made a link look bad.

    Nothing is left on the hosts that answer, and what is left on the other goes by `down` when it is back.
    """
    faults = [{"cut": "fast-0", "at": "1s", "for": "1s"}, {"restart": "server", "at": "3s", "delay": "500ms"}]

    def updates(controller: Controller) -> int:
        return sum(found.read_bytes().count(b'"kind":"update"') for found in controller.folder.glob(JOURNALS))

    def lose_e3(controller: Controller) -> None:
        until(lambda: updates(controller) > 600 or controller.process.poll() is not None, "600 updates", 90.0)
        swarm.kill("e3")

    hosts = hosts_of(swarm, {"e1": "server, evaluator", "e2": "fast, slow", "e3": "fast, slow"})
    scenario = SCENARIO | {"faults": faults, "stop": {"updates": 1800, "time": "90s"}}
    try:
        code, said, trial = ran(swarm, tmp_path / "run", scenario, hosts, lose_e3)
    finally:
        swarm.start("e3")
    assert code == 0, said[-3000:]
    summary, plan = trial.summary, trial.folder.read_plan()
    assert summary.accounting is not None
    assert summary.accounting.closes, said[-3000:]
    on_e3 = {node.node for node in plan.nodes if node.host == "e3"}
    assert len(on_e3) == 2
    told = Told(plan, list(read_journal(trial.folder.journal)))
    died = {r.name: r.reason for _, _, r in told.entries if isinstance(r, records.Node) and r.state == "died"}
    assert {name for name, reason in died.items() if reason == "its host e3 does not answer"} == on_e3
    loads = {record.host for _, _, record in told.entries if isinstance(record, records.HostLoad)}
    assert loads == {"e1", "e2", "e3"}
    assert summary.fidelity is not None
    assert "ms, where" not in " ".join(summary.fidelity.reasons) or "overloaded" in " ".join(summary.fidelity.reasons)
    until(lambda: is_there(swarm.address("e3")), "the engine of e3", 30.0)
    with leftovers():
        assert Controller(swarm, tmp_path, "down", "--hosts", "run/hosts.yaml").end()[0] == 0
    assert left(clients) == []


HUB = """
import socket
listener = socket.create_server(("", 8000))
clients = [listener.accept()[0] for _ in range(2)]
for step in range(1, 61):
    for client in clients:
        client.sendall(bytes(20_000))
    for client in clients:
        client.recv(1, socket.MSG_WAITALL)
    print("step", step, flush=True)
"""
HOME = """
import socket
with socket.create_connection(("hub-0", 8000)) as hub:
    while hub.recv(20_000, socket.MSG_WAITALL):
        hub.sendall(b"x")
"""
PROGRAMS = {
    "name": "programs-over-hosts",
    "question": "Are programs on three hosts under the same conditions as on one?",
    "program": {"files": "app", "measures": {"step": "step ([0-9]+)"}, "ends": "hub"},
    "fleet": {
        "hub": {"run": "python hub.py", "uplink": "20mbit", "downlink": "20mbit", "ready": {"port": 8000}},
        "home": {"run": "python home.py", "after": "hub", "count": 2, "uplink": "5mbit", "downlink": "5mbit"},
    },
    "faults": [{"cut": "home-1", "at_measure": {"step": 20}, "for": "2s"}],
    "stop": {"time": "90s"},
    "expect": {"exit_code": "== 0", "final_step": "== 60"},
}  # fmt: skip


@pytest.mark.campaign
@pytest.mark.timeout(400)
def test_programs_over_three_hosts_are_seen_at_the_controllers_time(swarm, clients, tmp_path):
    """Links are held, a cut is timed, and clocks are known, though they are a thousand seconds apart."""
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "hub.py").write_text(HUB)
    (tmp_path / "app" / "home.py").write_text(HOME)
    (tmp_path / "scenario.yaml").write_bytes(msgspec.json.encode(PROGRAMS))
    (tmp_path / "hosts.yaml").write_text(hosts_of(swarm, {"e1": "hub", "e2": "home", "e3": "home"}), encoding="utf-8")
    controller = Controller(swarm, tmp_path, "run", "scenario.yaml", "--runtime", "docker")
    code, said = controller.end(200.0)

    assert code == 0, said[-3000:]
    entries = controller.journal()
    began_s = next(t for t, _, record in entries if isinstance(record, records.Trial))
    ended_s = entries[-1][0]
    told = [(t, node, record) for t, node, record in entries if isinstance(record, records.Link | records.Usage)]
    assert {node for _, node, _ in told} == {"hub-0", "home-0", "home-1"}
    assert all(began_s - 30.0 < t <= ended_s + 1.0 for t, _, _ in told)
    assert not any(record.differed for _, _, record in told)
    clocks = {node: record for _, node, record in entries if isinstance(record, records.Clock)}
    assert {node: round(clock.offset_s / 1000) for node, clock in clocks.items()} == {
        "hub-0": 0, "home-0": -1, "home-1": -2,
    }, clocks  # fmt: skip
    assert all(abs(clock.offset_s - 1000 * round(clock.offset_s / 1000)) <= clock.error_s for clock in clocks.values())
    assert all(clock.error_s < 0.1 for clock in clocks.values())
    assert left(clients) == []


@pytest.mark.campaign
@pytest.mark.timeout(900)
@pytest.mark.parametrize("method", ["sync-sgd", "fedavg"])
def test_a_synchronous_method_exchanges_the_same_bytes_on_one_host_and_on_three(swarm, clients, tmp_path, method):
    """And leaves the same model."""
    scenario = SCENARIO | {"method": method, "evaluation": {"every": "10 updates"}, "stop": {"updates": 30}}
    one = "e1: { engine: 'unix:///run/edgebed-swarm/e1.sock' }\n"
    results = []
    for name, hosts in (("one", one), ("three", hosts_of(swarm, {"e1": "server, evaluator"}))):
        code, said, trial = ran(swarm, tmp_path / name, scenario, hosts)
        assert code == 0, said[-3000:]
        results.append(
            (
                trial.summary.server.ingress_bytes,
                trial.summary.server.egress_bytes,
                trial.folder.final_checkpoint.read_bytes(),
            )
        )
    assert results[0] == results[1]
    assert left(clients) == []


@pytest.mark.campaign
@pytest.mark.timeout(300)
def test_a_container_that_the_swarm_did_not_attach_in_time_is_started_again(swarm, clients, tmp_path):
    """Its host is cut off from the manager, but its engine answers on its socket."""

    def containers() -> set[str]:
        return {each["Id"] for each in containers_with(clients["e2"], LABEL_OWNER)}

    def heal_later(controller: Controller) -> None:
        until(lambda: containers() or controller.process.poll() is not None, "a container on e2", 60.0)
        first = containers()
        until(lambda: containers() - first or controller.process.poll() is not None, "another one", 60.0)
        swarm.heal("e2")

    hosts = hosts_of(swarm, {"e1": "server, evaluator, fast", "e2": "slow"})
    swarm.cut("e2")
    try:
        code, said, trial = ran(swarm, tmp_path / "run", SCENARIO, hosts, heal_later)
    finally:
        swarm.heal("e2")
    assert code == 0, said[-3000:]
    assert trial.summary.updates >= 1200
    assert left(clients) == []
