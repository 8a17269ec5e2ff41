"""What each command loads: the time before its first line is that of its imports, which can be counted anywhere."""

import os
import subprocess
import sys

import pytest
from finished_runs import RISING, finished_run

HEAVY = {"torch", "matplotlib", "pandas", "docker", "zmq", "aiohttp", "scipy", "prometheus_client"}
"""Packages that take long to import, which looking at a run, or at a scenario, does without."""
SCENARIO = """\
name: tiny
task: { data: DATA, model: MODEL, batch_size: 16 }
method: METHOD
fleet: { edge: { count: 2, cpus: 0.5, memory: 512MiB } }
stop: { updates: 100 }
"""
CODE = """\
import sys
from edgebed.cli.main import main
sys.argv = ["edgebed", *sys.argv[1:]]
try:
    main()
finally:
    sys.stderr.write("modules " + " ".join(sorted(sys.modules)))
"""


@pytest.fixture
def modules(tmp_path):
    """The modules that a command has loaded at its end."""

    def call(*words):
        command = [sys.executable, "-c", CODE, *map(str, words)]
        environment = {**os.environ, "EDGEBED_RUNS_DIR": str(tmp_path / "runs")}
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
        assert done.returncode == 0, done.stderr
        return set(done.stderr.rpartition("modules ")[2].split())

    return call


@pytest.fixture
def runs(tmp_path):
    """A finished run."""
    return finished_run(tmp_path / "runs", {"asgd": RISING, "adacomp": RISING})


@pytest.mark.parametrize(
    ("command", "besides"),
    [
        ("ls", {"plotext", "ruamel", "edgebed.algorithms.registry", "edgebed.scenario.schema"}),
        ("show latest", {"ruamel", "edgebed.scenario.schema"}),
        ("show latest --json", {"ruamel", "edgebed.scenario.schema"}),
        ("events latest", {"numpy", "rich", "plotext", "ruamel", "edgebed.journal.series"}),
    ],
)
def test_looking_at_runs_loads_what_is_shown(modules, runs, command, besides):
    """No package of those that train, serve or draw pages; and none of edgebed's own that are large and not needed."""
    loaded = modules(*command.split())

    assert loaded & (HEAVY | besides) == set()


@pytest.mark.parametrize("command", ["validate", "plan"])
@pytest.mark.parametrize(("data", "model", "method"), [("digits", "small", "asgd"), ("synthetic", "resnet8", "fedavg")])
def test_built_in_models_and_data_are_planned_without_torch(modules, tmp_path, command, data, model, method):
    """Everything that planning asks of a built-in model is known."""
    path = tmp_path / "tiny.yaml"
    path.write_text(SCENARIO.replace("DATA", data).replace("MODEL", model).replace("METHOD", method))

    assert modules(command, path) & (HEAVY | {"rich", "plotext", "urllib.request"}) == set()
