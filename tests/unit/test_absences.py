"""What the design keeps out: who may import what. A fresh interpreter says what an import really loads.

`wire/`, `algorithms/` and `roles/` are pure: no sockets, no containers, no clock. A node loads neither the command line
nor what draws the report, since every megabyte and every tenth of a second counts a hundred times in a fleet.
"""

import ast
import functools
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "services" / "edgebed"
PURE_FOLDERS = ("wire", "algorithms", "roles")
WORLDLY_MODULES = {"zmq", "docker", "time", "datetime", "socket", "asyncio", "threading", "multiprocessing", "random"}
"""Input and output, clocks, and random numbers without a key."""

NODE_MODULES = (
    "edgebed.runtimes.processes.fork_server",
    "edgebed.runtimes.live.node",
    "edgebed.runtimes.live.live_node",
    "edgebed.runtimes.containers.node_main",
    "edgebed.roles.server.parameter_server",
    "edgebed.roles.worker",
    "edgebed.roles.evaluator",
    "edgebed.learning.network",
    "edgebed.metrics.exporter",
    "edgebed.emulation.resources",
    "edgebed.metrics.discovery",
    "edgebed.emulation.netlink",
    "edgebed.emulation.readback",
)
"""Everything that a server, worker or evaluator imports."""
TOO_HEAVY_FOR_A_NODE = (
    "pydantic", "typer", "click", "rich", "matplotlib", "scipy", "ruamel", "pooch", "docker",
    "pyroute2", "sympy", "mpmath", "networkx", "pandas", "pyarrow", "PIL", "torch._dynamo", "torch._inductor",
)  # fmt: skip
FIRST_STEP = """
import sys
from edgebed.core.plan import Task
from edgebed.learning.data_sets.registry import load_data
from edgebed.learning.models import registry
from edgebed.learning.network import Network
import numpy as np

data = load_data("digits", seed=1)
inputs = data.train.input_forms
layout = registry.layout("small", inputs, 10)
task = Task(model="small", inputs=inputs, outputs=10, layout=layout, batch_size=10, gradient_time_s=0.01)
theta = registry.initial_parameters(task, 1)
before = set(sys.modules)
network = Network(task, data.train)
network.gradient(theta, np.arange(10))
network.evaluate(theta)
print(*(set(sys.modules) - before))
"""
"""What a worker and the evaluator do first; it prints the modules that this has loaded."""
UNSAFE_MODULES = {"pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
"""They run what they read."""


def loaded_by(*modules: str) -> set[str]:
    """The names in `sys.modules` after a fresh interpreter has imported `modules`."""
    program = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def modules_of(folder: str) -> list[str]:
    """The names of all modules in a folder of the package."""
    prefix = f"edgebed.{folder}."
    return [module.name for module in pkgutil.walk_packages([str(PACKAGE / folder)], prefix)]


def sources(folder: str = "") -> list[Path]:
    """The Python files of the package, or of one of its folders."""
    found = sorted((PACKAGE / folder).rglob("*.py"))
    assert found
    return found


def users_of(is_meant: Callable[[str], bool], folder: str = "") -> set[str]:
    """The files of the package, or of one of its folders, that import or use a name that is meant."""
    return {str(path.relative_to(PACKAGE)) for path in sources(folder) if any(map(is_meant, imported_names(path)))}


@functools.cache
def imported_names(path: Path) -> set[str]:
    """Every module that a file imports, at the top or inside a function, and each dotted name it uses."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Attribute):
            names.add(ast.unparse(node))
    return names


@pytest.mark.parametrize("folder", ["wire", "algorithms"])
def test_pure_folders_load_no_sockets_no_containers_and_no_torch(folder):
    """Nor does anything that they import."""
    loaded = loaded_by(*modules_of(folder))

    assert f"edgebed.{folder}" in loaded
    assert not loaded & {"zmq", "docker", "torch"}


@pytest.mark.parametrize("folder", PURE_FOLDERS)
def test_pure_folders_import_no_clock_and_no_outside_world(folder):
    """Time, randomness and sending are handed in."""
    assert users_of(lambda name: name.partition(".")[0] in WORLDLY_MODULES, folder) == set()


def test_a_node_loads_nothing_heavy():
    """No command line, no drawing, no data sets: in a tenth of a core, their second becomes ten."""
    loaded = loaded_by(*NODE_MODULES)

    assert set(NODE_MODULES) <= loaded
    assert not loaded & set(TOO_HEAVY_FOR_A_NODE)


def test_what_stands_beside_each_program_of_a_user_loads_next_to_nothing():
    """There is one for each node, and the first is what the program waits for."""
    too_heavy = {*TOO_HEAVY_FOR_A_NODE, "torch", "numpy", "zmq"}

    assert not loaded_by("edgebed.emulation.enter") & {*too_heavy, "psutil", "edgebed.core.plan"}
    assert not loaded_by("edgebed.emulation.witness.witness") & too_heavy


def test_a_server_loads_no_torch():
    """Its image has none."""
    of_server = [name for name in NODE_MODULES if not name.startswith("edgebed.learning.")]

    assert "edgebed.roles.server.parameter_server" in of_server
    assert not loaded_by(*of_server, "edgebed.runtimes.node_building") & {"torch", *TOO_HEAVY_FOR_A_NODE}


def test_the_first_step_of_a_worker_loads_nothing_heavy():
    """What is imported when it is used first costs each node as much as what is imported at once."""
    done = subprocess.run([sys.executable, "-c", FIRST_STEP], capture_output=True, text=True, check=True)

    assert not set(done.stdout.split()) & set(TOO_HEAVY_FOR_A_NODE)


@pytest.mark.slow
@pytest.mark.usefixtures("data_dir")
def test_planning_layers_does_not_load_torchs_compiler():
    """What counts their operations could; it takes more than a second."""
    scenario = PACKAGE.parents[1] / "scenarios/layers/four-layers.yaml"
    program = (
        "import sys; from edgebed.planning import planning; from edgebed.scenario import load; "
        "print(len(planning.plan_trials(load.load_scenario(sys.argv[1]))), 'torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program, scenario], capture_output=True, text=True, check=True)
    trials, loaded = done.stdout.split()

    assert int(trials) > 0
    assert loaded == "False"


def test_a_mistake_in_a_scenario_does_not_wait_for_torch():
    """What `validate` needs to find it is quick."""
    assert "torch" not in loaded_by("edgebed.planning.checking", "edgebed.scenario.load")


def test_the_package_itself_loads_next_to_nothing():
    """`import edgebed` is paid by every node, and by every `edgebed --help`."""
    assert not loaded_by("edgebed") & {*TOO_HEAVY_FOR_A_NODE, "torch", "numpy", "zmq"}


def test_nothing_touches_torch_optim():
    """It pulls in torch's compiler, 64 MB in every process that looks at it; an update is one line of numpy."""
    assert users_of(lambda name: name.startswith("torch.optim")) == set()


def test_nothing_unpickles():
    """What comes over a network or from a file is data, never a program."""
    assert users_of(lambda name: name.partition(".")[0] in UNSAFE_MODULES) == set()
    assert users_of(lambda name: name.endswith((".send_pyobj", ".recv_pyobj"))) == set()


def test_containers_are_known_to_runtimes_and_emulation_alone():
    """Everything else works without Docker, in thought as well as in fact."""
    knowing = users_of(lambda name: name.partition(".")[0] in {"docker", "pyroute2"})

    assert {Path(path).parts[0] for path in knowing} <= {"runtimes", "emulation"}


def test_the_wall_clock_dates_what_people_read_and_nothing_else():
    """It may be set at any time: whatever waits, measures or orders reads a monotonic clock."""
    assert users_of(lambda name: name in ("time.time", "dt.datetime.now", "datetime.now")) == {
        "cli/look.py",  # replayed metrics that are to end now
        "cli/runs.py",  # how long ago a run began
        "core/host.py", "journal/run_folder.py",  # when a run began
        "metrics/trial_metrics.py",  # read once: it goes on monotonically
        "studies/host/calibrate.py",  # when a host was calibrated
    }  # fmt: skip
