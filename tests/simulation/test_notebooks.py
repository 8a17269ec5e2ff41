"""Notebooks and scripts: the one of docs/notebooks is run, and models and data are objects of a program."""

import re
from pathlib import Path

import pytest
from warm_command import run_script

pytestmark = pytest.mark.simulation
NOTEBOOK = Path(__file__).parents[2] / "docs/notebooks/first-steps.ipynb"
OWN = """
import sys
import edgebed, numpy as np
from torch import nn

WIDTH, NEAR = 8, 0.3

class Base(nn.Module):
    def forward(self, images):
        return self.layers(images)

class Net(Base):
    def __init__(self, outputs):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(12, WIDTH), nn.ReLU(), nn.Linear(WIDTH, outputs))

def blobs(seed):
    chance = np.random.default_rng(seed)
    labels = np.arange(200) % 2
    inputs = chance.normal(size=(200, 12)).astype(np.float32) + labels[:, None].astype(np.float32)
    return inputs[:160], labels[:160], inputs[160:], labels[160:]

class Near(edgebed.Supervised):
    measures = (edgebed.TaskMeasure("near", unit="share", better="more"),)

    def loss_of(self, outputs, targets):
        return (outputs[:, 0] - targets).square().mean()

    def sums_of(self, outputs, targets):
        return {"near": (((outputs[:, 0] - targets).abs() < NEAR).sum(), len(targets))}

def heights():
    inputs, labels, *test = blobs(1)
    return inputs, labels / 1.0, test[0], test[1] / 1.0

def scenario(**task):
    return {
        "name": "own", "task": {"data": blobs, "model": Net, "batch_size": 10, **task}, "method": "asgd",
        "fleet": {"edge": {"count": 2}}, "evaluation": {"every": "20 updates"}, "stop": {"updates": 40},
    }
"""


def output_of(text: str, folder: Path) -> list[str]:
    """The lines that a script prints."""
    done = run_script(text, folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_the_notebook_runs_in_a_kernel(tmp_path, monkeypatch):
    """As a reader runs it: results are tables, and progress is shown without being asked for; none is committed."""
    nbclient = pytest.importorskip("nbclient", reason="no nbclient: scripts/setup --dev installs it")
    pytest.importorskip("pandas", reason="no pandas: pip install 'edgebed[pandas]'")
    import nbformat

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    committed = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    nbclient.NotebookClient(notebook, timeout=500, resources={"metadata": {"path": str(tmp_path)}}).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    shown = [output.data.get("text/html", "") for output in code[0].outputs if "data" in output]
    said = "".join(output.get("text", "") for cell in code for output in cell.outputs)

    assert not any(committed)
    assert "times smaller" in said
    assert "Narrow is defined in this notebook or script" in said
    assert len(list((tmp_path / "runs/quickstart").glob("0*/report.html"))) == 5
    assert any("asgd completed: accuracy" in html.replace("✓ ", "") for html in shown)
    assert "<caption>quickstart/" in shown[-1]
    assert not any("<progress" in html for html in shown)
    (own,) = (cell for cell in code if "task.objective" in cell.source)
    assert any("close" in output.data.get("text/html", "") for output in own.outputs if "data" in output)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_class_and_a_function_of_a_script_are_model_and_data(tmp_path, processes):
    """In the simulation, also in the processes that it forks; loading a result builds the model again."""
    lines = output_of(
        f"{OWN}\nrun = edgebed.run(scenario(), runtime='simulation', processes={processes})\n"
        "trial = run.trials['asgd']\n"
        "print(trial.summary.final['accuracy'] > 0.6, type(trial.model()).__name__, sorted(run.manifest['own_code']))",
        tmp_path,
    )

    assert lines == ["True Net ['__main__:Net', '__main__:blobs']"]


def test_an_objective_of_a_script_is_that_of_a_task(tmp_path):
    """As an option, beside model and data; a notebook shows what it measures, and the manifest has its text."""
    lines = output_of(
        f"{OWN}\nobjects = {{'task.objective': Near, 'task.data': {{'name': heights}}, 'task.model': Net}}\n"
        "run = edgebed.run(scenario(), runtime='simulation', processes=2, set=objects)\n"
        "trial = run.trials['asgd']\n"
        "print(trial.summary.final['near'] > 0.4, 'near' in run._repr_html_(), sorted(run.manifest['own_code']))\n"
        "print(edgebed.run(scenario(), runtime='simulation', processes=1, set=objects).trials['asgd'].series"
        ".evaluations.values.tolist() == trial.series.evaluations.values.tolist())",
        tmp_path,
    )

    assert lines == ["True True ['__main__:Near', '__main__:Net', '__main__:heights']", "True"]


def test_what_is_defined_in_a_script_is_known_by_its_text(tmp_path):
    """With what it uses: a width, a base. What nobody uses is no part of it."""
    digests = []
    for change in (("= 8, 0.3", "= 8, 0.3"), ("= 8, 0.3", "= 9, 0.3"), ("(images)\n", "(2 * images)\n"),
                   ("import sys", "import sys\nUNUSED = 1")):  # fmt: skip
        text = OWN.replace(*change)
        lines = output_of(
            f"{text}\nfrom edgebed.core.imports import source_of\nimport hashlib\n"
            "print(hashlib.sha256(source_of('__main__:Net').encode()).hexdigest())",
            tmp_path,
        )
        digests += lines

    assert len(set(digests)) == 3
    assert digests[0] == digests[3]


def test_a_run_is_not_resumed_with_another_class_of_the_same_name(tmp_path):
    """It would not be the same run, though its plan is."""
    begin = (
        "class Stop:\n"
        "    def trial_started(self, plan): raise KeyboardInterrupt\n"
        "try:\n    edgebed.run(scenario(), runtime='simulation', processes=1, progress=Stop())\n"
        "except KeyboardInterrupt:\n    print('interrupted')\n"
    )
    assert output_of(f"{OWN}\n{begin}", tmp_path) == ["interrupted"]
    other = run_script(f"{OWN.replace('nn.ReLU()', 'nn.Tanh()')}\nedgebed.resume('own')", tmp_path)
    none = run_script("import edgebed\nedgebed.resume('own')", tmp_path)

    assert "was begun with another __main__:Net" in other.stderr
    assert "Define it here again" in none.stderr
    assert output_of(f"{OWN}\nprint(edgebed.resume('own', processes=1).exit_code)", tmp_path) == ["0"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("edgebed.run(scenario(), runtime='process')", "task.model: Net is defined in this notebook"),
        ("edgebed.run(scenario(model=lambda: Net(2)), runtime='simulation')", "task.model: .*cannot be found"),
        (
            "edgebed.run(scenario(data=heights, objective=Near), runtime='process')",
            "task.objective: Near is defined in this notebook .* say `objective: mytask:Near`",
        ),
        (
            "edgebed.run(scenario(objective=Near()), runtime='simulation')",
            "task.objective: not an objective: an instance of Near; its name, .* in Python also the function or class",
        ),
        ("edgebed.run(scenario(model=Net(2)), runtime='simulation')", "task.model: an instance of Net cannot"),
        ("edgebed.agree(scenario(model='small'), jobs=2)", "task.data: blobs is defined in"),
    ],
)  # fmt: skip
def test_where_an_object_cannot_be_taken_the_error_says_what_to_do(tmp_path, call, message):
    """Before anything runs."""
    text = f"{OWN}\ntry:\n    {call}\nexcept edgebed.ScenarioError as error:\n    print(error)"
    assert any(re.search(message, line) for line in output_of(text, tmp_path))
    assert not (tmp_path / "runs").exists()
