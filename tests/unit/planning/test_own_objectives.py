"""An objective of one's own that could not work is refused before anything starts, with what it has to give."""

from pathlib import Path

import pytest
import yaml

from edgebed.core.errors import OwnCodeError
from edgebed.learning.objectives.registry import TAKEN
from edgebed.planning.checking import check
from edgebed.planning.planning import plan_trials
from edgebed.reports.plan.description import describe_plan
from edgebed.roles.work import EvaluationJob, Scores, evaluated
from edgebed.scenario.load import load_scenario
from edgebed.scenario.schema import StopSection
from edgebed.scenario.sweep_section import SweepSection

GOALS = """
import torch
from edgebed.core.measures.task import TaskMeasure
from edgebed.learning.objectives.classification import Classification

def one(name="error", **more):
    return (TaskMeasure(name=name, **more),)

class Good(Classification):
    measures = one(unit="share")
    def sums_of(self, outputs, targets):
        return {"error": ((outputs.argmax(1) != targets).sum(), len(targets))}

class Unit(Good):
    measures = one(unit="percent")

class Better(Good):
    measures = one(better="higher")

class Name(Good):
    measures = one(5)

class Text(Good):
    measures = ("error", *one())

class Single(Good):
    measures = TaskMeasure(name="error")

class Taken(Good):
    measures = one("update_s")

class Needs(Good):
    def __init__(self, alpha):
        self.alpha = alpha

class Lacking(Good):
    measures = (*one(), *one("other"))

class Number(Good):
    def sums_of(self, outputs, targets):
        return 3

class NoPair(Good):
    def sums_of(self, outputs, targets):
        return {"error": 3.0}

class EachOne(Good):
    def sums_of(self, outputs, targets):
        return {"error": (outputs.argmax(1) != targets, len(targets))}

class Negative(Good):
    def sums_of(self, outputs, targets):
        return {"error": (1.0, -1)}

class Raises(Good):
    def sums_of(self, outputs, targets):
        raise RuntimeError("what now")

class OfEach(Good):
    def loss_of(self, outputs, targets):
        return outputs.sum(dim=1)

class Constant(Good):
    def loss_of(self, outputs, targets):
        return torch.tensor(3.0)

class Float(Good):
    def loss_of(self, outputs, targets):
        return 3.0

class InPlace(Good):
    def loss_of(self, outputs, targets):
        lost = outputs.exp()
        total = lost.square().sum()
        lost += 1
        return total
"""
SCENARIO = {
    "name": "own",
    "seed": 1,
    "task": {"data": "digits", "model": "small", "batch_size": 10, "objective": "goals:Good"},
    "method": "asgd",
    "fleet": {"edge": {"count": 2}},
    "stop": {"updates": 20},
}


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scenario with an objective of its own, beside the others."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "goals.py").write_text(GOALS, encoding="utf-8")
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump(SCENARIO), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Unit", "no measure: TaskMeasure(name='error'): Invalid enum value 'percent'"),
        ("Better", "no measure: TaskMeasure(name='error'): Invalid enum value 'higher'"),
        ("Name", "no measure: TaskMeasure(name=5): Expected `str`, got `int`"),
        ("Text", "give a tuple of TaskMeasure"),
        ("Single", "give a tuple of TaskMeasure"),
        ("Taken", "no name of a measure: 'update_s'"),
        ("Needs", "it is called with config, as far as it names them; alpha is none of these and needs a default"),
        ("Lacking", "`sums` has no 'other', of which the measure 'other' is the mean"),
        ("Number", "failed in sums_of: returned int, not a dict of sums by name"),
        ("NoPair", "failed in sums_of: returned float as error, not a sum and its weight"),
        ("EachOne", "its sum 'error' is an array (20,); add it up"),
        ("Negative", "failed in sums_of: returned -1 as the weight of error"),
        ("Raises", "failed in sums_of: RuntimeError: what now"),
        ("OfEach", "failed in loss_of: returned Tensor (10,), not a tensor of one number"),
        ("Constant", "its loss does not depend on the model's parameters, so nothing could be learnt"),
        ("Float", "failed in loss_of: returned float, not a tensor of one number"),
        ("InPlace", "small with goals:InPlace: no gradient for the first batch of train: RuntimeError: one of the"),
    ],
)
def test_an_objective_that_could_not_work_is_refused(scenario: Path, name: str, said: str) -> None:
    """Where it is named, with the user's own line where one is reached."""
    found = check(scenario, [f"task.objective=goals:{name}"])

    assert not found.valid
    assert "task.objective" in found.problems[0]
    assert said in found.problems[0]


def test_one_that_works_is_planned_without_the_share_of_the_most_frequent_class(scenario: Path) -> None:
    """Which is what accuracy comes to, and no other measure."""
    assert check(scenario).valid
    own, usual = (load_scenario(scenario, sets) for sets in ([], ["task.objective=classification"]))

    assert describe_plan(plan_trials(own)[0], runtime="simulation").most_frequent is None
    assert describe_plan(plan_trials(usual)[0], runtime="simulation").most_frequent is not None


def test_a_measure_of_no_example_ends_the_node() -> None:
    """It has no mean, and no journal could have one."""
    part = Scores(({"error": (0.0, 0.0), "loss": (3.0, 2.0)},))

    with pytest.raises(OwnCodeError, match="no example of the test set has weight in error, so"):
        evaluated(EvaluationJob(None, 3, True), [part])  # type: ignore[arg-type]


def test_no_measure_has_a_name_that_stands_beside_it_in_a_section() -> None:
    """Where it could not be told from the section's own key."""
    assert {*StopSection.known_keys(), *SweepSection.known_keys()} <= TAKEN
