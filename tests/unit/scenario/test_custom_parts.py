"""Parts and faults by import path: found, checked, tried and refused where they are written."""

import sys
from pathlib import Path

import mistaken
import pytest
from quick_runs import run as run_quickly

import edgebed
from edgebed.core.errors import EdgebedError, ScenarioError
from edgebed.core.imports import forgetting
from edgebed.planning.checking import check
from edgebed.planning.memory import needs_of
from edgebed.planning.planning import plan_trials
from edgebed.scenario.load import resolved_yaml

SIZE = 4810
"""Parameters of the model `small`."""
FILES, _ = mistaken.blocks()["own parts"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the scenario is, with modules beside it; what they bring into this process is gone after the test."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    with forgetting(tmp_path, tmp_path / "beside"):
        yield tmp_path


def line_of(text: str) -> int:
    """Where in `own_all.py` something is written."""
    return 1 + FILES["own_all.py"].partition(text)[0].count("\n")


def test_settings_of_an_own_part_are_as_of_any_other(folder, load, good):
    """A name alone, one by one on top of it, defaults filled in; the resolved form gives the same method."""
    scenario = load(good, "method.compression=own_all:All", "method.compression.after=9")
    (trial,) = scenario.trials.values()
    part = trial.method.parts["compression"]

    assert (part.name, part.settings) == ("own_all:All", {"fails": "never", "after": 9})
    (again,) = load(resolved_yaml(scenario)).trials.values()
    assert again.method == trial.method


@pytest.mark.parametrize(
    ("option", "says", "at"),
    [
        (
            "compression={name: own_all:All, fails: raise}",
            (
                "edge-0, step 5: compression own_all:All failed in compress: "
                f"IndexError: index {SIZE} is out of bounds for axis 0 with size {SIZE}"
            ),
            "# too far",
        ),
        (
            "aggregation=own_all:Plain",
            "server, step 3 of edge-1: aggregation own_all:Plain failed in push: KeyError: 'seven'",
            "# too many",
        ),
    ],
)
def test_a_part_that_fails_later_ends_the_trial_with_node_step_and_line(folder, good, option, says, at):
    """And with no frame of edgebed's; the run's folder says so, too."""
    (folder / "s.yaml").write_text(good)
    sets = [f"method.{option}", "method.local_work=gradient-step", "stop.updates=40", "fleet.edge.memory=null"]
    with pytest.raises(EdgebedError) as caught:
        run_quickly("s.yaml", runtime="simulation", set=sets, runs_dir=folder / "runs")
    run = edgebed.load("small", runs_dir=folder / "runs")

    assert str(caught.value) == f"{says} ({folder}/own_all.py:{line_of(at)})"
    assert run.exit_code == 3
    assert says in next(iter(run.trials.values())).summary.reason


def test_a_run_with_own_parts_is_resumed_from_its_own_folder(folder, good):
    """The resolved scenario lies elsewhere; modules are found where the scenario file was."""
    (folder / "beside").mkdir()
    for name in ("own_all.py", "own_faults.py"):
        (folder / name).rename(folder / "beside" / name)
    (folder / "beside/s.yaml").write_text(good)
    sets = ["method.compression=own_all:All", "faults=[{own_faults:Nap: edge-0, at: 10ms}]", "fleet.edge.memory=null"]
    run = run_quickly("beside/s.yaml", runtime="simulation", set=sets, runs_dir="runs")

    with pytest.raises(ScenarioError, match="is complete: there is nothing to resume"):
        edgebed.resume(str(run.path), runs_dir="runs")


def test_what_an_own_aggregation_holds_is_counted(folder, load, good):
    """One that says nothing is taken to keep a model for each worker."""
    option = "fleet.edge.count=40"
    (plain,) = plan_trials(load(good, option, "method={preset: asgd, aggregation: {staleness: none}}"))
    (own,) = plan_trials(load(good, option, "method={preset: asgd, aggregation: own_all:Plain}"))

    more = needs_of(own)["server"].bytes - needs_of(plain)["server"].bytes
    assert more == 40 * 4 * SIZE


# --- faults ----------------------------------------------------------------------------------------------------------


def test_a_fault_of_ones_own_is_an_entry_like_any_other(folder, load, good):
    """Its steps are in the plan, its name is that of its kind; the resolved form has the import path."""
    scenario = load(good, "faults=[{own_faults:Nap: edge, at: 1s}]")
    (planned,) = plan_trials(scenario)

    assert [(fault.name, fault.node) for fault in planned.plan.faults] == [("nap-1", "edge-0"), ("nap-1", "edge-1")]
    again = load(resolved_yaml(scenario))
    assert resolved_yaml(again) == resolved_yaml(scenario)
    assert "own_faults:Nap: edge" in resolved_yaml(scenario)


def test_modules_looked_at_for_one_scenario_are_forgotten(folder, good):
    """Another folder may have another of that name."""
    (folder / "s.yaml").write_text(good)

    assert check(Path("s.yaml"), ["method.compression=own_all:All", "fleet.edge.memory=null"]).valid
    assert "own_all" not in sys.modules
