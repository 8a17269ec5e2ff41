"""Runs to export: a plain one, one with deaths whose journal breaks off, a layer-wise one; all in virtual time."""

import csv
import functools
import shutil
from pathlib import Path
from typing import Any

import pytest
from command_line import command_line
from quick_runs import run as run_quickly

import edgebed

PLAIN: dict[str, Any] = {
    "name": "plain",
    "task": {"data": "digits", "model": "small", "batch_size": 10},
    "fleet": {"edge": {"count": 3, "uplink": "10mbit", "waiting": {"exponential": "20ms"}}},
    "evaluation": {"every": "50 updates"},
    "stop": {"updates": 200},
    "expect": {"best_accuracy": ">= 0.1"},
    "variants": {
        "asgd": {"method": "asgd"},
        "adacomp": {"method": {"preset": "adacomp", "compression": {"fraction": 0.1}}},
    },
}
KILLED = PLAIN | {
    "name": "killed",
    "variants": {"asgd": {"method": "asgd"}},
    "faults": [
        {"kill": "edge-1", "at": "300ms"},
        {"restart": "server", "at_update": 120, "delay": "100ms"},
        {"freeze": "edge-2", "at": "1h"},
    ],
    "on_failure": "restart",
    "server": {"durability": "none"},
    "checkpoints": {"every": "50 updates"},
}
LAYERS: dict[str, Any] = {
    "name": "layers",
    "task": {"data": "digits", "model": "eight-layer", "width": 4, "batch_size": 16},
    "method": "synthetic-gradients",
    "fleet": {"edge": {"count": 3}},
    "evaluation": {"every": "30 updates"},
    "stop": {"updates": 60},
    "faults": [{"restart": "edge-1", "at_update": 45, "delay": "10ms"}],
    "on_failure": "restart",
    "checkpoints": {"every": "20 updates"},
}


@pytest.fixture(scope="session")
def root(tmp_path_factory):
    """The folder of all runs: plain/1, killed/1, killed/2, which breaks off within a line, layers/1, rolled back."""
    folder = tmp_path_factory.mktemp("exported") / "runs"
    for scenario, run in ((PLAIN, edgebed.run), (KILLED, run_quickly), (LAYERS, run_quickly)):
        run(scenario, runtime="simulation", set=["seed=3"], processes=1, runs_dir=folder)
    crashed = folder / "killed" / "0002"
    shutil.copytree(folder / "killed" / "0001", crashed)
    (crashed / "summary.json").unlink()
    journal = crashed / "asgd" / "events.jsonl"
    content = journal.read_bytes()
    end = content.rindex(b'"kind":"update"', 0, len(content) * 4 // 5)
    journal.write_bytes(content[:end])
    return folder


@pytest.fixture(params=["plain/1", "killed/1", "killed/2", "layers/1"])
def run(request, root):
    """Each of them."""
    return edgebed.load(request.param, runs_dir=root)


@pytest.fixture
def export(root, monkeypatch, capsys):
    """Calls `edgebed export` in this process; gives (exit code, standard output, standard error)."""
    monkeypatch.setenv("EDGEBED_RUNS_DIR", str(root))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)

    return functools.partial(command_line(monkeypatch, capsys), "export")


@pytest.fixture
def tables():
    """Reads a folder of CSV files: name of a table -> its rows, each a dict of texts."""

    def read(folder: Path) -> dict[str, list[dict[str, str]]]:
        found = {}
        for path in sorted(folder.glob("*.csv")):
            with path.open(encoding="utf-8", newline="") as stream:
                found[path.stem] = list(csv.DictReader(stream))
        return found

    return read
