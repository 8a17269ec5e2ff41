"""Runs from the host whose nodes are containers: caps, rights, networks, ends of all kinds, and nothing left behind."""

import os
import re
import socket
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from leftovers import leftovers
from quick_runs import run as run_quickly
from waiting import until
from warm_command import WarmCommand

import edgebed
from edgebed.core import records
from edgebed.core.errors import EdgebedError

NAME = f"contained-{os.getpid()}"
SCENARIO = {
    "name": NAME,
    "question": "Do containers hold what they promise?",
    "seed": 3,
    "task": {"data": "digits", "model": "small", "batch_size": 10},
    "method": "adacomp",
    "fleet": {"edge": {"count": 2, "cpus": 0.5, "memory": "512MiB"}},
    "server": {"cpus": 0.5, "memory": "256MiB"},
    "evaluation": {"every": "100 updates"},
    "stop": {"updates": 400},
}
STARTS_MAX = 8
"""Times as long as an uncapped node takes to load torch: under a cap of a twentieth of a core it is twenty times."""
SCENARIO_FILE = f"""
name: {NAME}
question: Does anything stay behind?
task: {{ data: digits, model: small, batch_size: 10 }}
method: asgd
fleet: {{ edge: {{ count: 2, memory: 512MiB, waiting: 20ms }} }}
evaluation: {{ every: 100 updates }}
stop: {{ time: 10m }}
"""


@pytest.fixture
def running(tmp_path: Path, engine):
    """The command, running, with an update applied; ended in any case."""
    path = tmp_path / "contained.yaml"
    path.write_text(SCENARIO_FILE)
    process = WarmCommand("run", str(path), "--runtime", "docker", "--runs-dir", str(tmp_path))
    journal = tmp_path / NAME / "0001" / "asgd" / "events.jsonl"

    def trains() -> bool:
        assert process.poll() is None, process.communicate()
        return journal.exists() and '"kind":"update"' in journal.read_text()

    until(trains, "training", every_s=0.2)
    yield process
    process.kill()
    with leftovers():
        assert edgebed_command("down").code == 0


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


def edgebed_command(*arguments: str, **environment: str) -> Done:
    """The command `edgebed`, to its end."""
    process = WarmCommand(*arguments, env=os.environ | environment)
    out, err = process.communicate(timeout=100)
    return Done(process.wait(), out, err)


def secret_of(container: dict[str, Any]) -> str:
    """What the environment of a node's container says."""
    (told,) = (each for each in container["Config"]["Env"] if each.startswith("EDGEBED_SECRET="))
    return str(told).partition("=")[2]


def test_a_node_has_its_caps_and_no_more_rights_than_it_needs(engine, tmp_path, onlooker) -> None:
    """As the engine itself tells it of a running node: caps, user, file system, networks, labels, the run's secret."""
    secrets: set[str] = set()

    def look() -> None:
        (first, second), (server,) = engine.containers(role="worker"), engine.containers(role="server")
        host = first["HostConfig"]
        assert (host["CpuPeriod"], host["CpuQuota"], host["NanoCpus"]) == (100_000, 50_000, 0)
        assert server["HostConfig"]["CpuQuota"] == 50_000
        assert host["Memory"] == host["MemorySwap"] == 512 * 2**20
        assert host["CapDrop"] == ["ALL"]
        assert not host["CapAdd"]
        assert not host["Privileged"]
        assert not host["Binds"]
        assert not first["Mounts"]
        assert [mount["Type"] for mount in server["Mounts"]] == ["volume"]
        (evaluator,) = engine.containers(role="evaluator")
        assert evaluator["HostConfig"]["Memory"] == evaluator["HostConfig"]["MemorySwap"] >= 2**30
        assert host["ReadonlyRootfs"]
        assert host["Init"]
        assert host["PidsLimit"] > 0
        assert host["SecurityOpt"] == ["no-new-privileges"]
        assert first["Config"]["User"] == "10001:10001"
        assert not first["NetworkSettings"]["Ports"]
        networks = {engine.client.networks.get(name) for name in first["NetworkSettings"]["Networks"]}
        assert [network.attrs["Internal"] for network in networks] == [True, True]
        assert first["Config"]["Labels"]["edgebed.run"] == f"{NAME}/0001"
        assert {first["Config"]["Labels"]["edgebed.node"], second["Config"]["Labels"]["edgebed.node"]} == {
            "edge-0",
            "edge-1",
        }
        assert "OMP_NUM_THREADS=1" in first["Config"]["Env"]
        secrets.update(map(secret_of, (first, second, server)))
        shown = str((first["Path"], first["Args"], first["Config"]["Labels"]))
        assert not [secret for secret in secrets if secret in shown]

    overrides = ["stop.updates=1000000", "stop.time=4s"]
    run = run_quickly(SCENARIO, runtime="docker", set=overrides, runs_dir=tmp_path, progress=onlooker(look))

    (trial,) = run.trials.values()
    assert trial.summary.outcome == "completed"
    assert trial.series.evaluations.final_value is not None
    assert trial.checkpoint().size
    assert (run.path / "adacomp" / "logs" / "edge-0.log").read_text()
    (secret,) = secrets
    assert re.fullmatch(r"[0-9a-f]{32}", secret)
    assert not [path for path in run.path.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


def test_a_cap_holds_before_training_and_not_while_a_node_starts(engine, tmp_path) -> None:
    """Neither at first nor after a restart; what it uses in training never was more than its cap."""
    overrides = ["fleet.edge.cpus=0.05", "fleet.edge.count=1", "stop.updates=100"]
    scenario = SCENARIO | {"faults": [{"restart": "edge-0", "at_update": 40, "delay": "0s"}]}
    run = run_quickly(scenario, runtime="docker", set=overrides, runs_dir=tmp_path)
    (trial,) = run.trials.values()
    events = list(trial.events())
    states = {
        (record.name, record.incarnation, record.state): t
        for t, _, record in events
        if isinstance(record, records.Node)
    }
    used = [record for _, node, record in events if node == "edge-0" and isinstance(record, records.Usage)]
    uncapped_s = states["evaluator", 1, "ready"] - states["evaluator", 0, "started"]

    assert trial.summary.outcome == "completed"
    assert states["edge-0", 1, "ready"] - states["edge-0", 0, "started"] < STARTS_MAX * uncapped_s
    assert states["edge-0", 2, "ready"] - states["edge-0", 1, "died"] < STARTS_MAX * uncapped_s
    assert {record.incarnation for _, _, record in events if isinstance(record, records.Update)} == {1, 2}
    assert {record.cpus_held for record in used} == {0.05}
    for record in used:
        assert record.cpu_s < 0.055 * record.time_s + 0.1, "more than the cap: it was not there yet"
        assert record.memory_held_bytes == 512 * 2**20


@pytest.mark.alone
def test_a_busy_node_gets_the_share_of_a_core_that_it_was_given(engine, tmp_path, onlooker, metrics) -> None:
    """Half a core within 5 % by its own cgroup: never more, and as much, but for the time in which it got no core.

    Whoever had as much was throttled.
    """
    shares: list[dict[str, float]] = []
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def look() -> None:
        before = {node: cpu_account(metrics(node, port)) for node in ("edge-0", "edge-1")}
        for _ in range(3):
            time.sleep(3)
            now = {node: cpu_account(metrics(node, port)) for node in before}
            shares.append({})
            for node, (cpu_s, throttled, at_s) in before.items():
                now_s, now_throttled, now_at_s = now[node]
                shares[-1][node] = (now_s - cpu_s) / (now_at_s - at_s)
                assert now_throttled > throttled or shares[-1][node] < 0.95 * 0.5
            before = now

    overrides = [
        "stop.updates=100000",
        "stop.time=13s",
        "task.model=cnn",
        "method=asgd",
        "evaluation.every=100000 updates",
    ]
    run = run_quickly(SCENARIO, runtime="docker", set=overrides, runs_dir=tmp_path, progress=onlooker(look), port=port)

    (trial,) = run.trials.values()
    used = {node: record for _, node, record in trial.events() if isinstance(record, records.Usage)}
    for node in ("edge-0", "edge-1"):
        got = max(share[node] for share in shares)
        assert got < 1.05 * 0.5
        assert used[node].starved_s is not None
        assert got + used[node].starved_s / used[node].time_s > 0.95 * 0.5


def cpu_account(text: str) -> tuple[float, float, float]:
    """(CPU seconds, throttled periods, when) of a node's cgroup, as its metrics tell."""
    at_s = time.monotonic()
    cpu = re.search(r"^edgebed_cgroup_cpu_seconds_total (\S+)$", text, re.MULTILINE)
    throttled = re.search(r"^edgebed_cgroup_cpu_throttled_periods_total (\S+)$", text, re.MULTILINE)
    assert cpu
    assert throttled
    return float(cpu[1]), float(throttled[1]), at_s


def test_killed_and_frozen_workers_are_told_of_and_hold_back_neither_the_trial_nor_its_end(
    engine, tmp_path, onlooker
) -> None:
    """The engine's SIGKILL, and its pause; the other one trains, and the frozen one's container is removed."""

    def harm() -> None:
        (killed,), (frozen,) = engine.containers(node="edge-1"), engine.containers(node="edge-2")
        engine.client.api.kill(killed["Id"])
        engine.client.api.pause(frozen["Id"])

    overrides = ["fleet.edge.count=3", "stop.updates=1000000", "stop.time=4s"]
    run = run_quickly(SCENARIO, runtime="docker", set=overrides, runs_dir=tmp_path, progress=onlooker(harm))

    (trial,) = run.trials.values()
    assert trial.summary.outcome == "completed"
    last = {record.name: record for _, _, record in trial.events() if isinstance(record, records.Node)}
    assert last["edge-1"].state == "died"
    assert last["edge-1"].reason.startswith("killed by SIGKILL")
    assert last["edge-2"].reason == "did not answer 'stop' within 5 s"
    assert engine.removable() == []


def test_too_little_memory_is_reported_as_such_with_limit_and_peak(engine, tmp_path) -> None:
    """`plan` refuses such a cap; who forces it learns what happened."""
    run = run_quickly(SCENARIO, runtime="docker", set=["fleet.edge.memory=128MiB"], runs_dir=tmp_path, force=True)

    (trial,) = run.trials.values()
    assert trial.summary.outcome == "failed"
    assert re.search(r"out of memory.*limit of 128MiB, peak 12\dMiB", trial.summary.reason)


def test_an_image_that_is_not_there_is_named_with_what_to_do(engine, tmp_path, monkeypatch) -> None:
    """Before anything is made, not even a folder for the run."""
    monkeypatch.setenv("EDGEBED_WORKER_IMAGE", "edgebed-never-built")

    with pytest.raises(EdgebedError, match=r"edgebed-never-built.*scripts/build-images"):
        edgebed.run(SCENARIO, runtime="docker", runs_dir=tmp_path)


@pytest.mark.alone  # any run that begins takes away what is left
def test_what_a_killed_controller_leaves_goes_with_down(engine, running) -> None:
    """Its nodes and networks are found by their label; while it lives they are left alone. One is frozen."""
    assert edgebed_command("down").code == 0
    assert len(engine.containers()) == 4
    engine.client.api.pause(engine.containers(node="edge-1")[0]["Id"])
    running.kill()
    running.wait()

    down = edgebed_command("down")

    assert down.code == 0
    assert f"4 containers and 2 networks of {NAME}/0001" in down.out + down.err
    assert engine.removable() == []


def test_a_second_run_starts_cleanly_after_a_killed_controller(engine, running, tmp_path) -> None:
    """It takes away what the first one left, so that nothing disturbs it."""
    running.kill()
    running.wait()

    run = edgebed.run(SCENARIO, runtime="docker", set=["stop.updates=100"], runs_dir=tmp_path / "second")

    assert run.exit_code == 0
    assert engine.removable() == []


def test_without_an_engine_the_message_says_what_to_do(tmp_path) -> None:
    """No traceback, exit code 3."""
    path = tmp_path / "contained.yaml"
    path.write_text(SCENARIO_FILE)

    done = edgebed_command("run", str(path), "--runtime", "docker", DOCKER_HOST="unix:///nowhere/docker.sock")

    assert done.code == 3
    assert "no container engine answers" in done.err
    assert "Traceback" not in done.err
