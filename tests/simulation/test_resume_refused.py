"""When a run is not gone on with: it would not be the same, or cannot be told to be."""

import json
from pathlib import Path

import pytest
from quick_runs import run as run_quickly

import edgebed
from edgebed.core.errors import ScenarioError
from edgebed.core.measures.task import Level
from edgebed.journal.overview import overview_of
from edgebed.journal.run_folder import RunFolder, TrialFolder
from edgebed.roles.control.controller import ResumedTrial
from edgebed.running import resume as resuming
from edgebed.running.resume import past_of

MODULE = """
from torch import nn

def tiny(input_shape, outputs):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, outputs))
"""
SCENARIO = """
name: refused
question: Is it the same run?
task: { data: digits, model: "{module}:tiny", batch_size: 10 }
method: asgd
fleet: { edge: { count: 2 } }
evaluation: { every: 2000 updates }
checkpoints: { every: 20 updates }
stop: { updates: 4000 }  # for some tenths of a second, after which it is looked at
"""


class Impatient:
    """Ends the run as Ctrl-C between two steps does, as soon as it trains."""

    def trial_started(self, plan):
        """A trial begins."""

    def update(self, status):
        """This is how it stands."""
        if status.updates > 20:
            raise KeyboardInterrupt

    def trial_ended(self, summary):
        """It is over."""


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """A run of a user's own model that has broken off."""
    module = f"nets_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{module}.py").write_text(MODULE)
    (tmp_path / "scenario.yaml").write_text(SCENARIO.replace("{module}", module))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run_quickly("scenario.yaml", runtime="simulation", processes=1, runs_dir="runs", progress=Impatient())
    return RunFolder.find(tmp_path / "runs", "refused")


def change_manifest(folder: RunFolder, **fields: object) -> None:
    """Other facts of how the run was begun; None: nothing about it."""
    changed = {key: value for key, value in (folder.read_manifest() | fields).items() if value is not None}
    folder.manifest.write_text(json.dumps(changed))


def test_it_goes_on_from_any_folder(broken: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's module is found where it was found first; afterwards everything is as it was before."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert edgebed.load(broken.path).trials["asgd"].summary.outcome == "interrupted"
    assert edgebed.load(broken.path).can_be_resumed
    run = edgebed.resume("../runs/refused/0001", processes=1)

    assert run.exit_code == 0
    assert Path.cwd() == elsewhere
    assert not run.can_be_resumed


def test_its_old_result_is_gone_before_its_journals_are_read(
    broken: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which takes a while for a large one: whoever lists runs meanwhile sees that it is in progress."""
    listed = []

    def list_and_read(folder: TrialFolder, **options: bool) -> ResumedTrial | None:
        listed.append(overview_of(broken).result)
        return past_of(folder, **options)

    assert overview_of(broken).result != "running"
    monkeypatch.setattr(resuming, "past_of", list_and_read)
    edgebed.resume(broken.path, processes=1)

    assert listed == ["running"]


def test_the_users_own_code_has_to_be_the_same(broken: RunFolder, tmp_path: Path) -> None:
    """The model would have the same shape, and be another."""
    (module,) = tmp_path.glob("nets_*.py")
    module.write_text(MODULE.replace("nn.Flatten()", "nn.Flatten(), nn.ReLU()"))

    with pytest.raises(ScenarioError, match=rf"was begun with another {module.name}; restore it, or begin a new run"):
        edgebed.resume(broken.path)


def test_a_run_in_progress_is_left_alone(broken: RunFolder) -> None:
    """Two controllers would write one journal."""
    broken.summary.unlink()
    with broken.locked(), pytest.raises(ScenarioError, match="run refused/0001 is in progress"):
        edgebed.resume(broken.path)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"options": None}, "does not say how the run was begun"),
        ({"code": "0123456789abcdef", "commit": "abc"}, r"begun by other code .* \(commit abc\), or begin a new run"),
    ],
)
def test_what_it_was_begun_with_has_to_be_known(broken: RunFolder, fields: dict[str, object], said: str) -> None:
    """Another version could do something else under the same name."""
    change_manifest(broken, **fields)

    with pytest.raises(ScenarioError, match=said):
        edgebed.resume(broken.path)


def test_the_accuracy_of_a_sweep_outlasts_the_resolved_scenario(broken: RunFolder, tmp_path: Path) -> None:
    """A run of a sweep's scenario goes on, though the section is not in the scenario of its folder."""
    swept = "sweep: { accuracy: 0.3, over: { fleet.edge.count: [2, 3] } }\n"
    (tmp_path / "scenario.yaml").write_text((tmp_path / "scenario.yaml").read_text() + swept)
    with pytest.raises(KeyboardInterrupt):
        run_quickly("scenario.yaml", runtime="simulation", processes=1, runs_dir="runs", progress=Impatient())
    folder = RunFolder.find(tmp_path / "runs", "refused")
    assert folder.path != broken.path
    (trial,) = edgebed.resume(folder.path).trials.values()

    assert (trial.summary.outcome, trial.plan.sweep_level) == ("completed", Level("accuracy", 0.3, 3))


def test_the_plan_has_to_be_the_same(broken: RunFolder) -> None:
    """The first difference is named."""
    broken.scenario.write_text(broken.scenario.read_text().replace("updates: 4000", "updates: 3999"))

    with pytest.raises(ScenarioError, match=r"nodes\[0\]\.stop_updates was 4000 and is 3999"):
        edgebed.resume(broken.path)
