"""What each command loads: the time before its first line is that of its imports, which can be counted anywhere."""

import os
import subprocess
import sys

import pytest
from finished_runs import RISING, finished_run

from edgebed.journal.run_folder import write_atomically

HEAVY = {"torch", "matplotlib", "pandas", "docker", "zmq", "aiohttp", "scipy", "prometheus_client"}
"""Packages that take long to import, which looking at a run, or at a scenario, does without."""
LEAN = {
    "pydantic", "psutil", "ruamel", "zstandard", "email", "edgebed.algorithms.registry", "edgebed.scenario.schema"
}  # fmt: skip
"""What looking at a run does without, though looking at a scenario needs some of it."""
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
    sys.stderr.write("loaded: " + " ".join(sorted(sys.modules)))
"""
RUN = """\
import sys, edgebed
class Observer:
    def trial_started(self, plan): pass
    def update(self, status): pass
    def trial_ended(self, summary): sys.stderr.write("loaded: " + " ".join(sorted(sys.modules)))
edgebed.run(sys.argv[1], runtime="simulation", processes=1, set=["stop.updates=10"], progress=Observer())
"""


@pytest.fixture
def modules(tmp_path):
    """The modules that a command has loaded at its end; of other code, those that it has written."""

    def call(*words, code=CODE, ends_with=0):
        command = [sys.executable, "-c", code, *map(str, words)]
        environment = {**os.environ, "EDGEBED_RUNS_DIR": str(tmp_path / "runs")}
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
        assert done.returncode == ends_with, done.stderr
        return set(done.stderr.rpartition("loaded: ")[2].split())

    return call


def test_ctrl_c_is_understood_before_anything_is_loaded(modules):
    """The package itself loads nothing of its own, and so nothing that takes a while."""
    code = 'import sys, edgebed.__main__\nsys.stderr.write("loaded: " + " ".join(sorted(sys.modules)))'

    assert {name for name in modules(code=code) if name.startswith("edgebed.")} == {"edgebed.__main__"}


@pytest.fixture
def runs(tmp_path):
    """A finished run."""
    return finished_run(tmp_path / "runs", {"asgd": RISING, "adacomp": RISING})


@pytest.mark.parametrize(
    ("command", "besides"),
    [
        ("ls", LEAN | {"numpy", "edgebed.journal.summary"}),
        ("show latest", LEAN),
        ("show latest --json", LEAN | {"rich"}),
        ("events latest", LEAN | {"numpy", "rich", "edgebed.journal.series"}),
    ],
)
def test_looking_at_runs_loads_what_is_shown(modules, runs, command, besides):
    """No package of those that train, serve or draw pages; and none of edgebed's own that are large and not needed."""
    loaded = modules(*command.split())

    assert loaded & (HEAVY | besides) == set()


@pytest.mark.parametrize("name", ["latest", "missing"])
def test_a_resume_that_has_nothing_to_do_loads_nothing_that_trains(modules, runs, name):
    """The run is complete, or there is none: that is said at once."""
    write_atomically(runs.folder.summary, runs.summary_json())

    assert modules("resume", name, ends_with=2) & HEAVY == set()


@pytest.mark.parametrize(("command", "besides"), [("validate", {"rich"}), ("plan", {"jinja2"})])
@pytest.mark.parametrize(("data", "model", "method"), [("digits", "small", "asgd"), ("synthetic", "resnet8", "fedavg")])
def test_built_in_models_and_data_are_planned_without_torch(modules, tmp_path, command, besides, data, model, method):
    """Everything that planning asks of a built-in model is known; a page of it is drawn where one is asked for."""
    path = tmp_path / "tiny.yaml"
    path.write_text(SCENARIO.replace("DATA", data).replace("MODEL", model).replace("METHOD", method))

    assert modules(command, path) & (HEAVY | besides | {"urllib.request"}) == set()


@pytest.mark.parametrize("command", ["run", "sweep", "agree", "validate", "plan"])
def test_a_mistake_in_a_scenario_or_an_option_is_refused_without_torch(modules, tmp_path, command):
    """Whose import takes longer than a user should wait to learn of a misspelt key."""
    path = tmp_path / "tiny.yaml"
    path.write_text(SCENARIO.replace("DATA", "digits").replace("MODEL", "small").replace("METHOD", "asgd"))

    assert "torch" not in modules(command, path, "--set", "flet.edge.count=3", ends_with=2)


def test_rows_of_a_paper_are_listed_without_what_runs_them(modules):
    """With their cells, whose scenarios are read."""
    assert modules("reproduce", "hardy2017", "--list") & HEAVY == set()


def test_a_simulated_run_begins_without_what_draws_its_report(modules, tmp_path):
    """Nor with an engine's client: what it takes until its trial ends is little beyond torch."""
    path = tmp_path / "tiny.yaml"
    path.write_text(SCENARIO.replace("DATA", "digits").replace("MODEL", "small").replace("METHOD", "asgd"))
    loaded = modules(path, code=RUN)

    assert "torch" in loaded
    assert loaded & {"matplotlib", "jinja2", "docker", "requests", "scipy", "pandas", "torch._dynamo"} == set()
