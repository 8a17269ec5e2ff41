"""What holds links and caps in processes: the kernel for root, the transport's model and pacing for everybody else."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from quick_runs import run as run_quickly
from typer.testing import CliRunner
from waiting import until

from edgebed.cli.main import app
from edgebed.core.errors import ScenarioError
from edgebed.core.process_names import process_name
from edgebed.emulation import means
from edgebed.emulation.cgroups import PREFIX, mounts
from edgebed.journal.series import Series
from edgebed.running.results import Run

SCENARIO = {
    "name": "held",
    "question": "What holds links and caps?",
    "task": {"data": "digits", "model": "small", "batch_size": 10},
    "method": "adacomp",
    "fleet": {"edge": {"count": 2, "uplink": "10mbit", "downlink": "50mbit", "cpus": 0.4, "memory": "200MiB"}},
    "server": {"cpus": 0.5},
    "evaluation": {"every": "1h"},
    "stop": {"updates": 40},
}
UNPRIVILEGED = [  # another user, who may read whatever folder the tests are in
    "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=+dac_override,+dac_read_search",
    "--ambient-caps=+dac_override,+dac_read_search",
]  # fmt: skip


@pytest.fixture(autouse=True)
def rights():
    """The kernel's means, or the right to try without them."""
    if reason := means.why_no_namespaces() or means.why_no_cgroups():
        pytest.skip(f"neither namespaces nor cgroups: {reason}; run the tests as root")


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that another user finds, reads and writes; pytest's own are their user's."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


def cgroups_of(pid: int | str) -> list[Path]:
    """What a controller with this number has made and not removed."""
    return [folder for mount in mounts().values() for folder in mount.glob(f"{PREFIX}*_{pid}_*")]


def series_of(run: Run) -> tuple[Series, list[str]]:
    """The only trial's journal, and what was noted in it."""
    (trial,) = run.trials.values()
    series = Series.from_journal(trial.folder.journal)
    return series, [text for _, _, text in series.notes]


def test_for_root_the_kernel_holds_links_and_caps_and_nothing_is_left(tmp_path):
    """The data really goes through interfaces of the nodes' own, and every node's cap is its cgroup's."""
    series, notes = series_of(run_quickly(SCENARIO | {"stop": {"time": "4s"}}, runs_dir=tmp_path))
    _, traffic = series.traffic[-1]

    assert traffic.interface == "data"
    assert traffic.ingress_interface > traffic.ingress_payload
    assert traffic.egress_payload < traffic.egress_interface < 1.3 * traffic.egress_payload
    assert {node: said[-1].mechanism for node, said in series.links.items()} == {"edge-0": "tc", "edge-1": "tc"}
    assert {said[-1].uplink_held for said in series.links.values()} == {10_000_000}
    assert {node: said[-1].cpus_held for node, said in series.usage.items()} == {
        "server": 0.5, "evaluator": None, "edge-0": 0.4, "edge-1": 0.4,
    }  # fmt: skip
    assert series.usage["edge-0"][-1].memory_held_bytes == 200 * 2**20
    assert "Rates of links are held by the kernel's queues (tc) in a network namespace for each node." in notes
    assert "CPU caps are held by the kernel (cgroups)." in notes
    assert cgroups_of(os.getpid()) == []
    assert not {"switch", "data", "port1"} & set(psutil.net_if_addrs())


def test_a_node_beyond_its_memory_is_out_of_memory_and_the_others_finish(tmp_path):
    """The kernel's own account says why it died."""
    fleet = {"tiny": {"count": 1, "memory": "4MiB"}, "edge": {"count": 1}}
    run = run_quickly(SCENARIO | {"fleet": fleet}, runs_dir=tmp_path)
    series, _ = series_of(run)
    (died,) = [node for _, node in series.nodes if node.state == "died"]

    assert run.exit_code == 0
    assert died.name == "tiny-0"
    assert died.reason == "out of memory: killed by the kernel at its limit of 4MiB, peak 4MiB"


def test_the_model_is_used_where_it_is_asked_for(tmp_path):
    """Root, too, may want what everybody has."""
    series, notes = series_of(run_quickly(SCENARIO, emulation="model", runs_dir=tmp_path))

    assert {said[-1].mechanism for said in series.links.values()} == {"model"}
    assert series.traffic[-1][1].interface == "lo"
    assert "Rates of links are held by the transport's own model of a link." in notes
    assert "Memory caps are not held." in notes
    assert not any(note.startswith("The kernel does not hold") for note in notes)


def test_another_user_runs_the_same_scenario_with_the_model(public_folder):
    """And is told why it is not the kernel."""
    scenario = public_folder / "held.yaml"
    scenario.write_text(json.dumps(SCENARIO))  # JSON is YAML
    runs = str(public_folder / "runs")
    command = [*UNPRIVILEGED, sys.executable, "-m", "edgebed", "run", str(scenario), "--runs-dir", runs]
    environment = os.environ | {"HOME": str(public_folder)}
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, env=environment, check=False)
    refused = subprocess.run(
        command, capture_output=True, text=True, env=environment | {"EDGEBED_EMULATION": "kernel"}, check=False
    )

    assert done.returncode == 0, done.stderr
    notes = json.loads(done.stdout)["notes"]
    assert "The kernel does not hold links: that takes root." in notes
    assert "Rates of links are held by the transport's own model of a link." in notes
    assert refused.returncode == 2
    assert refused.stderr == (
        "error: --emulation kernel: the kernel cannot hold links here: that takes root. "
        f"{means.INSTEAD}\n"
    )  # fmt: skip


def test_a_killed_controller_leaves_no_process_and_its_cgroups_go_with_the_next_run(tmp_path):
    """The fork server and the namespaces end with their pipes; a cgroup is a folder, and folders stay."""
    scenario = tmp_path / "held.yaml"
    scenario.write_text(json.dumps(SCENARIO | {"stop": {"time": "2h"}}))
    command = [sys.executable, "-m", "edgebed", "run", str(scenario), "--runs-dir", str(tmp_path / "runs")]
    journal = tmp_path / "runs/held/0001/adacomp/events.jsonl"
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as controller:
        until(lambda: journal.exists() and len(Series.from_journal(journal).updates) > 0, "training", every_s=0.02)
        processes = psutil.Process(controller.pid).children(recursive=True)
        made = cgroups_of(controller.pid)
        controller.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(processes, timeout=10)
    run_quickly(SCENARIO | {"stop": {"updates": 5}}, runs_dir=tmp_path)

    assert len(processes) == 6  # fork server, namespaces, server, evaluator, two workers
    assert alive == []
    assert made != []
    assert cgroups_of(controller.pid) == []


@pytest.mark.alone  # it counts what is left on this machine
def test_down_removes_what_a_killed_controller_left(monkeypatch):
    """Also where there are no containers to look after."""
    monkeypatch.setattr("edgebed.runtimes.containers.leftovers.remove_leftovers", lambda *_, **__: 0)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as gone:
        name = f"{PREFIX}{process_name(gone.pid).replace('/', '_')}_0"
        folders = [mount / name for mount in mounts().values()]
        for folder in folders:
            (folder / "edge-0").mkdir(parents=True)
        gone.kill()
    result = CliRunner().invoke(app, ["down"])

    assert result.exit_code == 0
    assert "removed 1 cgroup whose controller is gone" in result.output
    assert not any(folder.exists() for folder in folders)


@pytest.mark.parametrize(("runtime", "emulation"), [("docker", "model"), ("simulation", "kernel"), ("process", "tc")])
def test_what_cannot_be_had_is_refused_before_anything_starts(tmp_path, runtime, emulation):
    """An option without a meaning would be a promise that is not kept."""
    with pytest.raises(ScenarioError, match="--emulation"):
        run_quickly(SCENARIO, runtime=runtime, emulation=emulation, runs_dir=tmp_path)
    assert list(tmp_path.iterdir()) == []
