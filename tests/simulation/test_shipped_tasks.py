"""The scenarios of data with clients in `scenarios/tasks/`: each learns, where its files are."""

from pathlib import Path

import pytest
from quick_runs import run

from edgebed.learning.data_sets.registry import data_directory, is_here
from edgebed.scenario.load import load_scenario

FOLDER = Path(__file__).parents[2] / "scenarios/tasks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
SHORT = {
    "har": ("stop.updates=210", "expect.best_accuracy='>= 0.6'"),
    "har-methods": (
        "stop.updates=105", "variants.adacomp.stop.updates=800", "variants.pooled.stop.updates=800",
        "expect.client_mean_accuracy='>= 0.5'",
    ),
    "heart": (),
    "heart-methods": (),
    "parkinsons": ("stop.updates=210", "expect.best_mae='<= 8.7'"),
    "plays": ("stop.updates=50", "expect.best_perplexity='<= 24'"),
}  # fmt: skip
"""What makes each short enough for a test: better than who always says the most frequent, or the mean."""

pytestmark = pytest.mark.slow


def test_each_scenario_is_run():
    """None is forgotten here."""
    assert list(SHORT) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_task_is_learnt(name, tmp_path):
    """Within the bound that is expected of the run."""
    (data,) = {trial.task.data.name for trial in load_scenario(FOLDER / f"{name}.yaml").trials.values()}
    if not is_here(data):
        pytest.skip(f"no {data} in {data_directory()}; set EDGEBED_DATA_DIR to the folder that has it")

    done = run(FOLDER / f"{name}.yaml", runtime="simulation", runs_dir=tmp_path, set=list(SHORT[name]))

    assert done.exit_code == 0
