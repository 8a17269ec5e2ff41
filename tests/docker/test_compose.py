"""The project as a user of Compose meets it: up, watch, wait, down; with the real Prometheus.

Each test has a project of its own, in a folder of its own, whose scenarios belong to some other user.
"""

import json
import os
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import edgebed
from edgebed.roles import records

ROOT = Path(__file__).parents[2]
USER = 12345
NAME = f"composed-{os.getpid()}"
SCENARIO = f"""
name: {NAME}
question: Does everything arrive?
task: {{ data: digits, model: small, batch_size: 10 }}
method: adacomp
fleet: {{ edge: {{ count: 2, cpus: 0.5, memory: 512MiB, waiting: 10ms }} }}
evaluation: {{ every: 200 updates }}
stop: {{ time: 20s }}
"""


class Project:
    """A copy of the project's files for Compose."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = f"edgebed-test-{os.getpid()}-{folder.name.replace('_', '-')}"[:60]
        for name in ("docker-compose.yml", "docker-compose.override.yml", ".env"):
            if (ROOT / name).exists():
                shutil.copy(ROOT / name, folder)
        shutil.copytree(ROOT / "dashboards", folder / "dashboards")
        (folder / "scenarios").mkdir()
        self.write("quickstart.yaml", SCENARIO)
        os.chown(folder / "scenarios", USER, USER)
        folder.chmod(0o755)

    def write(self, name: str, text: str) -> None:
        """A scenario."""
        (self.folder / "scenarios" / name).write_text(text)

    def compose(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """`docker compose` with these arguments, to its end, on ports that are free."""
        ports = dict.fromkeys(("EDGEBED_PORT", "EDGEBED_PROMETHEUS_PORT", "EDGEBED_GRAFANA_PORT"), "0")
        return subprocess.run(
            ["docker", "compose", *arguments], capture_output=True, text=True, check=False, cwd=self.folder,
            env=os.environ | ports | {"COMPOSE_PROJECT_NAME": self.name} | environment,
        )  # fmt: skip

    def edgebed(self, command: str) -> subprocess.CompletedProcess[str]:
        """The command, in the controller's container."""
        return self.compose("exec", "-T", "controller", "edgebed", *command.split())

    def up(self, **environment: str) -> None:
        """Start it, and wait until it is up."""
        done = self.compose("up", "--detach", "--wait", **environment)
        assert done.returncode == 0, done.stderr

    def query(self, expression: str) -> list[dict[str, Any]]:
        """What Prometheus answers."""
        return self._prometheus(f"query?{urllib.parse.urlencode({'query': expression})}")["result"]

    def targets(self) -> dict[str, str]:
        """Node: health, of every target that Prometheus was told of."""
        found = self._prometheus("targets?state=active")["activeTargets"]
        return {target["labels"].get("node", target["labels"]["job"]): target["health"] for target in found}

    def _prometheus(self, path: str) -> Any:
        address = self.compose("port", "prometheus", "9090").stdout.strip()
        with urllib.request.urlopen(f"http://{address}/api/v1/{path}", timeout=10) as answer:
            return json.load(answer)["data"]

    def left(self) -> list[str]:
        """Containers and networks of the project that there are."""
        only = f"label=com.docker.compose.project={self.name}"
        found = [
            subprocess.run(
                ["docker", kind, "ls", "-q", "--filter", only, *every], capture_output=True, text=True, check=True
            ).stdout
            for kind, every in (("container", ["--all"]), ("network", []))
        ]
        return "".join(found).split()


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A project, which is gone afterwards."""
    project = Project(tmp_path)
    yield project
    project.compose("stop", "controller")  # it removes its nodes, and Compose stumbles over what somebody else removes
    project.compose("down", "--volumes", "--remove-orphans", "--timeout", "60")
    assert project.left() == []


def until(condition, what: str, timeout_s: float = 60.0):
    """The first value of `condition()` that is true."""
    deadline_s = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline_s, f"{what}: not within {timeout_s:g} s"
        time.sleep(0.3)
    return value


def test_up_watch_wait_down(project) -> None:
    """All nodes are scraped; the series' totals are the journal's; the results belong to the owner; nothing stays."""
    project.up()
    up = dict.fromkeys(("server", "evaluator", "edge-0", "edge-1", "edgebed-controller"), "up")
    until(lambda: project.targets().items() >= up.items(), "every node is scraped")
    listed = project.compose("ps", "--format", "json").stdout
    assert {"node-server", "node-evaluator", "node-edge"} <= {
        json.loads(line)["Service"] for line in listed.splitlines()
    }

    assert project.compose("wait", "controller").returncode == 0

    run = edgebed.load(NAME, runs_dir=project.folder / "runs")
    (trial,) = run.trials.values()
    assert trial.summary.outcome == "completed"
    owners = {(path.stat().st_uid, path.stat().st_gid) for path in [run.path, *run.path.rglob("*")]}
    assert owners == {(USER, USER)}
    updates = trial.series.updates
    last = "last_over_time({}[5m])"
    assert total(project, last.format('edgebed_ps_updates_total{result="applied"}')) == len(updates.version)
    assert total(project, last.format('edgebed_ps_ingress_bytes_total{kind="push"}')) >= updates.bytes.sum()
    traffic = [record for _, _, record in trial.events() if isinstance(record, records.Traffic)][-1]
    assert total(project, last.format("edgebed_ps_ingress_bytes_total")) == traffic.ingress_payload
    assert total(project, last.format("edgebed_ps_egress_bytes_total")) == traffic.egress_payload

    assert project.compose("down").returncode == 0
    assert project.left() == []


def test_faults_come_by_the_scenario_and_by_hand(project) -> None:
    """The command acts in the controller's container as it does on the host, for the owner of the run alone."""
    faults = "faults: [{ freeze: edge-0, at: 2s, for: 2s }]\n"
    project.write("quickstart.yaml", SCENARIO.replace("time: 20s", "updates: 2500") + faults)
    project.up()
    journal = project.folder / "runs" / NAME / "0001" / "adacomp" / "events.jsonl"
    until(lambda: journal.exists() and '"kind":"update"' in journal.read_text(), "training has begun")

    for command in ("cut edge-1", "heal edge-1", "link set edge-1 --uplink 10mbit", "restart edge-1",
                    "cpus edge-0 0.25"):  # fmt: skip
        done = project.edgebed(command)
        assert done.returncode == 0, f"{command}: {done.stderr}"
    nobody = project.compose("exec", "-T", "--user", "4711", "controller", "python", "-m", "edgebed", "kill", "edge-0")
    assert (nobody.returncode, "belongs to another user" in nobody.stderr) == (2, True)
    wrong = project.edgebed("freeze edge-7")
    assert (wrong.returncode, "no node 'edge-7'" in wrong.stderr) == (2, True)

    assert project.compose("wait", "controller").returncode == 0
    (trial,) = edgebed.load(NAME, runs_dir=project.folder / "runs").trials.values()
    assert trial.summary.outcome == "completed"
    assert trial.summary.accounting.closes
    faults = [record for _, _, record in trial.events() if isinstance(record, records.Fault)]
    assert [(fault.target, fault.action) for fault in faults if fault.name == "freeze-1"] == [
        ("edge-0", "freeze"),
        ("edge-0", "thaw"),
    ]
    by_hand = [(fault.target, fault.action) for fault in faults if fault.name == "by hand"]
    assert by_hand == [
        ("edge-1", "cut"),
        ("edge-1", "heal"),
        ("edge-1", "link"),
        ("edge-1", "kill"),
        ("edge-1", "launch"),
        ("edge-0", "cpus"),
    ]
    assert [fault.problem for fault in faults if fault.problem] == []


def total(project: Project, expression: str) -> float:
    """The sum over all series."""
    return sum(float(series["value"][1]) for series in project.query(expression))


@pytest.mark.parametrize(
    ("text", "code"),
    [(f"name: {NAME}\n", 2), (SCENARIO + "expect: { accuracy: '> 1.5' }\n", 2)],
    ids=["too-short", "no-such-measure"],
)
def test_a_scenario_that_fails_at_once_still_tells_its_exit_code(project, text, code) -> None:
    """Compose can only wait for what still runs; the last words are in the logs."""
    project.write("wrong.yaml", text)

    project.up(SCENARIO="scenarios/wrong.yaml")

    assert project.compose("wait", "controller").returncode == code
    logs = project.compose("logs", "controller").stdout
    assert "scenarios/wrong.yaml:" in logs
    assert "Traceback" not in logs


def test_down_ends_a_run_and_takes_its_nodes_along(project) -> None:
    """In order: the journal has the end, and says who wanted it."""
    project.write("quickstart.yaml", SCENARIO.replace("20s", "10m"))
    project.up()
    until(lambda: len(project.left()) >= 8, "four nodes, controller, Prometheus and two networks")

    journal = project.folder / "runs" / NAME / "0001" / "adacomp" / "events.jsonl"
    until(lambda: '"version":10,' in journal.read_text(), "training goes on")

    assert project.compose("down").returncode == 0

    assert project.left() == []
    (trial,) = edgebed.load(NAME, runs_dir=project.folder / "runs").trials.values()
    assert (trial.summary.outcome, trial.summary.nodes_died) == ("interrupted", 0)
    assert trial.checkpoint().size, "the server handed its model over before it ended"


def test_up_again_after_a_killed_controller_starts_cleanly(project) -> None:
    """The next controller takes away the nodes of the one before."""
    project.write("quickstart.yaml", SCENARIO.replace("20s", "10m"))
    project.up()
    until(lambda: len(project.left()) >= 8, "four nodes, controller, Prometheus and two networks")
    assert project.compose("kill", "controller").returncode == 0
    project.write("quickstart.yaml", SCENARIO.replace("20s", "3s"))

    project.up()

    assert project.compose("wait", "controller").returncode == 0
    assert len(project.left()) == 4  # controller, Prometheus and two networks


def test_a_run_whose_controller_was_killed_is_gone_on_with(project) -> None:
    """By `up` with another command: from the last checkpoint, scraped by Prometheus, and with an exit code."""
    limits = "stop: { updates: 2000 }\ncheckpoints: { every: 100 updates }\n"
    project.write("quickstart.yaml", SCENARIO.replace("stop: { time: 20s }\n", limits))
    project.up()
    journal = project.folder / "runs" / NAME / "0001" / "adacomp" / "events.jsonl"
    until(lambda: journal.exists() and '"version":300,' in journal.read_text(), "training has come so far")
    assert project.compose("kill", "controller").returncode == 0

    project.up(EDGEBED_COMMAND=f"resume {NAME}")
    until(lambda: project.targets().items() >= {"edge-0": "up", "edge-1": "up"}.items(), "the new lives are scraped")
    assert project.compose("wait", "controller").returncode == 0

    (trial,) = edgebed.load(NAME, runs_dir=project.folder / "runs").trials.values()
    assert trial.summary.outcome == "completed"
    assert trial.summary.accounting.closes
    (restored,) = [record for _, _, record in trial.events() if isinstance(record, records.Restored)]
    assert 0 < restored.version <= trial.summary.updates == 2000


def test_down_takes_what_a_killed_controller_left(project) -> None:
    """With the option that the README names; the engine's refusals are no reason to fail."""
    project.write("quickstart.yaml", SCENARIO.replace("20s", "10m"))
    project.up()
    until(lambda: len(project.left()) >= 8, "four nodes, controller, Prometheus and two networks")
    assert project.compose("kill", "controller").returncode == 0

    assert project.compose("down", "--remove-orphans").returncode == 0

    assert project.left() == []
