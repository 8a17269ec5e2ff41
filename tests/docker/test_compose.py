"""The project as a user of Compose meets it: up, watch, wait, down; with the real Prometheus.

Each test has a project of its own.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from compose_project import USER, Project, composed
from leftovers import leftovers
from patiently import TooLateError, patiently
from quick_runs import run as run_quickly
from typer.testing import CliRunner
from waiting import until

import edgebed
from edgebed.cli.main import app
from edgebed.core import records
from edgebed.core.errors import InfrastructureError

NAME = f"composed-{os.getpid()}"
SCENARIO = f"""
name: {NAME}
question: Does everything arrive?
task: {{ data: digits, model: small, batch_size: 10 }}
method: adacomp
fleet: {{ edge: {{ count: 2, cpus: 0.5, memory: 512MiB, waiting: 100ms }} }}
evaluation: {{ every: 200 updates }}
stop: {{ time: 20s }}
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A project, which is gone afterwards."""
    with composed(tmp_path, SCENARIO) as project:
        yield project


def is_over(project: Project) -> bool:
    """Whether the latest run has ended."""
    runs = sorted((project.folder / "runs" / NAME).glob("*"))
    return bool(runs) and (runs[-1] / "summary.json").exists()


def until_journal(project: Project, has: str) -> None:
    """Wait until the first run's journal has these characters."""
    journal = project.folder / "runs" / NAME / "0001" / "adacomp" / "events.jsonl"
    until(lambda: journal.exists() and has in journal.read_text(), f"{has} in the journal")


@pytest.mark.timeout(900)
def test_up_watch_wait_down(project) -> None:
    """All nodes are scraped; the series' totals are the journal's; the results belong to the owner; nothing stays."""
    up = dict.fromkeys(("server", "evaluator", "edge-0", "edge-1", "edgebed-controller"), "up")

    def attempt(times: int) -> str:
        """What `watch` says of a run that trains so many times as long."""
        project.write("quickstart.yaml", SCENARIO.replace("20s", f"{20 * times}s"))
        project.up()
        until(lambda: is_over(project) or project.targets().items() >= up.items(), "every node is scraped", 300.0)
        listed = [json.loads(line) for line in project.compose("ps", "--format", "json").stdout.splitlines()]
        health = {each["Service"]: each["Health"] for each in listed}
        with project.watching("latest") as process:
            watched = next((line for line in process.stderr if " updates/s" in line), "")
        if is_over(project):
            project.compose("down", "--volumes")
            raise TooLateError("the run was over before all of it was seen")
        assert {"node-server", "node-evaluator", "node-edge"} <= health.keys()
        assert (health["controller"], health["prometheus"]) == ("healthy", "healthy")
        return watched

    watched = patiently(attempt)

    assert project.compose("wait", "controller").returncode == 0

    assert watched.startswith("adacomp: training, ")
    run = edgebed.load(NAME, runs_dir=project.folder / "runs")
    (trial,) = run.trials.values()
    assert trial.summary.outcome == "completed"
    owners = {(path.stat().st_uid, path.stat().st_gid) for path in [run.path, *run.path.rglob("*")]}
    assert owners == {(USER, USER)}
    updates = trial.series.updates
    last = project.prometheus().last
    assert last('edgebed_ps_updates_total{result="applied"}') == len(updates.version)
    assert last('edgebed_ps_ingress_bytes_total{kind="push"}') >= updates.bytes.sum()
    traffic = [record for _, _, record in trial.events() if isinstance(record, records.Traffic)][-1]
    assert last("edgebed_ps_ingress_bytes_total") == traffic.ingress_payload
    assert last("edgebed_ps_egress_bytes_total") == traffic.egress_payload

    project.down()


def test_training_needs_neither_prometheus_nor_grafana(project) -> None:
    """Images that cannot be had stop `up`, which names them, and not the controller alone; what is built is not asked.

    As from a registry that has python's image and not these.
    """
    (project.folder / "docker-compose.override.yml").unlink(missing_ok=True)
    without = {"EDGEBED_PROMETHEUS_IMAGE": "localhost:1/prometheus", "EDGEBED_GRAFANA_IMAGE": "localhost:1/grafana"}

    refused = project.compose("up", "--detach", "--wait", **without)
    unbuilt = project.compose("up", "--detach", "controller", EDGEBED_WORKER_IMAGE="edgebed-never-built:1", **without)
    project.write("quickstart.yaml", SCENARIO.replace("time: 20s", "updates: 20"))
    alone = project.compose("up", "--detach", "--wait", "controller", **without)

    assert refused.returncode != 0
    assert "localhost:1" in refused.stderr
    assert unbuilt.returncode != 0
    assert "Pulling" not in unbuilt.stderr
    assert alone.returncode == 0, alone.stderr
    assert project.compose("wait", "controller", **without).returncode == 0


def test_two_projects_have_images_of_their_own(project) -> None:
    """By Compose's own word: what one builds the other does not use."""
    (project.folder / "docker-compose.override.yml").unlink(missing_ok=True)
    unset = dict.fromkeys(("EDGEBED_CONTROLLER_IMAGE", "EDGEBED_SERVER_IMAGE", "EDGEBED_WORKER_IMAGE"), "")
    one, other = (
        set(project.compose("-p", name, "config", "--images", **unset, COMPOSE_PROJECT_NAME="").stdout.split())
        for name in ("one", "other")
    )

    assert {"edgebed-controller:one", "edgebed-parameter-server:one", "edgebed-worker:one"} <= one
    assert not {image for image in one & other if image.startswith("edgebed")}


def test_a_simulated_run_is_shown_by_the_prometheus_of_compose(project, monkeypatch) -> None:
    """`replay` finds it, in a container of the project or by its name, and gives it the run and what rules record."""
    project.write("simulated.yaml", SCENARIO.replace("20s", "30s"))
    scenario = project.folder / "scenarios/simulated.yaml"
    run = run_quickly(scenario, runtime="simulation", runs_dir=project.folder / "runs")
    monkeypatch.setenv("COMPOSE_PROJECT_NAME", project.name)
    with pytest.raises(InfrastructureError, match="docker compose up -d prometheus"):
        CliRunner().invoke(app, ["replay", str(run.path)], catch_exceptions=False)
    assert project.compose("up", "--detach", "prometheus").returncode == 0
    until(project.prometheus().answers, "Prometheus")

    replayed = project.compose("run", "--rm", "--no-deps", "-T", "controller", "replay", run.folder.name, "--now")

    assert replayed.returncode == 0, replayed.stderr
    assert project.compose("restart", "prometheus").returncode == 0  # it would find the blocks within a minute
    prometheus = project.prometheus()
    until(prometheus.answers, "Prometheus")
    (trial,) = run.trials.values()
    applied = f'edgebed_ps_updates_total{{run="{run.folder.name}",result="applied"}}'
    assert prometheus.last(applied) == trial.summary.updates
    rate = f'trial:edgebed_ps_updates:rate20s{{run="{run.folder.name}"}}'
    assert prometheus.last(rate) == pytest.approx(trial.summary.updates / 30.0, rel=0.2)


@pytest.mark.timeout(300)
def test_faults_come_by_the_scenario_and_by_hand_and_down_ends_the_run(project) -> None:
    """The command acts in the controller's container as it does on the host, for the owner of the run alone.

    `down` then ends the run in order and takes its nodes along: the journal has the end, and says who wanted it.
    """
    faults = "faults: [{ freeze: edge-0, at: 1s, for: 2s }]\n"
    project.write("quickstart.yaml", SCENARIO.replace("20s", "10m") + faults)
    project.up("controller")
    until_journal(project, '"kind":"update"')

    for command in ("cut edge-1", "heal edge-1", "link set edge-1 --uplink 10mbit", "restart edge-1",
                    "cpus edge-0 0.25"):  # fmt: skip
        done = project.edgebed(command)
        assert done.returncode == 0, f"{command}: {done.stderr}"
    nobody = project.compose("exec", "-T", "--user", "4711", "controller", "python", "-m", "edgebed", "kill", "edge-0")
    assert (nobody.returncode, "belongs to another user" in nobody.stderr) == (2, True)
    wrong = project.edgebed("freeze edge-7")
    assert (wrong.returncode, "no node 'edge-7'" in wrong.stderr) == (2, True)

    until_journal(project, '"worker":"edge-1","incarnation":2')
    project.down()

    (trial,) = edgebed.load(NAME, runs_dir=project.folder / "runs").trials.values()
    assert trial.summary.outcome == "interrupted"
    assert trial.checkpoint().size, "the server handed its model over before it ended"
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


def test_a_scenario_that_fails_at_once_still_tells_its_exit_code(project) -> None:
    """Compose can only wait for what still runs; the last words are in the logs."""
    project.write("wrong.yaml", SCENARIO + "expect: { accuracy: '> 1.5' }\n")

    project.up("controller", SCENARIO="scenarios/wrong.yaml")

    assert project.compose("wait", "controller").returncode == 2
    logs = project.compose("logs", "controller").stdout
    assert "scenarios/wrong.yaml:" in logs
    assert "Traceback" not in logs


def test_a_run_whose_controller_was_killed_is_gone_on_with(project) -> None:
    """By `up` with another command: from the server's log, on nodes of its own, scraped, and with an exit code."""
    limits = "stop: { updates: 500 }\ncheckpoints: { every: 100000 updates }\n"
    project.write("quickstart.yaml", SCENARIO.replace("stop: { time: 20s }\n", limits))
    project.up()
    until_journal(project, '"version":150,')
    with leftovers():
        assert project.compose("kill", "controller").returncode == 0
        project.up(EDGEBED_COMMAND=f"resume {NAME}")
        until(lambda: project.targets().items() >= {"edge-0": "up", "edge-1": "up"}.items(), "the new lives train")
    assert project.compose("wait", "controller").returncode == 0

    (trial,) = edgebed.load(NAME, runs_dir=project.folder / "runs").trials.values()
    assert trial.summary.outcome == "completed"
    assert trial.summary.accounting.closes
    (restored,) = [record for _, _, record in trial.events() if isinstance(record, records.Restored)]
    assert restored.replayed is not None
    assert 150 <= restored.version <= trial.summary.updates == 500
    assert len(project.left()) == 5  # controller, Prometheus and three networks: the old nodes are gone, too


def test_down_takes_what_a_killed_controller_left(project) -> None:
    """With the option that the README names."""
    project.write("quickstart.yaml", SCENARIO.replace("20s", "10m"))
    project.up("controller")
    until_journal(project, '"kind":"update"')  # no container is being started any more
    assert project.compose("kill", "controller").returncode == 0
    assert len(project.left()) == 8  # four nodes, controller and three networks

    project.down("--remove-orphans")
