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
from edgebed.learning.objectives.classification import CrossEntropy

def one(name="error", **more):
    return (TaskMeasure(name=name, **more),)

class Good(CrossEntropy):
    measures = one(unit="share")
    def measured(self, outputs, labels):
        return {"error": ((outputs.argmax(1) != labels).sum(), len(labels))}

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
    def measured(self, outputs, labels):
        return 3

class NoPair(Good):
    def measured(self, outputs, labels):
        return {"error": 3.0}

class EachOne(Good):
    def measured(self, outputs, labels):
        return {"error": (outputs.argmax(1) != labels, len(labels))}

class Negative(Good):
    def measured(self, outputs, labels):
        return {"error": (1.0, -1)}

class Raises(Good):
    def measured(self, outputs, labels):
        raise RuntimeError("what now")

class OfEach(Good):
    def loss(self, outputs, labels):
        return outputs.sum(dim=1)

class Constant(Good):
    def loss(self, outputs, labels):
        return torch.tensor(3.0)

class Float(Good):
    def loss(self, outputs, labels):
        return 3.0

class InPlace(Good):
    def loss(self, outputs, labels):
        lost = outputs.exp()
        total = lost.square().sum()
        lost += 1
        return total
"""
SCENARIO = {
    "name": "own",
    "seed": 1,
    "task": {"data": "digits", "model": "small", "batch_size": 10, "loss": "goals:Good"},
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
        ("Needs", "it is called with nothing, as far as it names them; alpha needs a default"),
        ("Lacking", "failed in measured: returned error, not a sum and its weight for each of error, other"),
        ("Number", "failed in measured: returned int, not a sum and its weight for each of error"),
        ("NoPair", "failed in measured: returned float as error, not a sum and its weight"),
        ("EachOne", "failed in measured: returned (Tensor (10,), int) as error, not a sum and its weight"),
        ("Negative", "failed in measured: returned -1 as the weight of error"),
        ("Raises", "failed in measured: RuntimeError: what now"),
        ("OfEach", "failed in loss: returned Tensor (10,), not a tensor of one number"),
        ("Constant", "failed in loss: returned a tensor that does not follow from the outputs"),
        ("Float", "failed in loss: returned float, not a tensor of one number"),
        ("InPlace", "goals:InPlace: no gradient can be computed with small: RuntimeError: one of the variables"),
    ],
)
def test_an_objective_that_could_not_work_is_refused(scenario: Path, name: str, said: str) -> None:
    """Where it is named, with the user's own line where one is reached."""
    found = check(scenario, [f"task.loss=goals:{name}"])

    assert not found.valid
    assert "task.loss" in found.problems[0]
    assert said in found.problems[0]


def test_one_that_works_is_planned_without_the_share_of_the_most_frequent_class(scenario: Path) -> None:
    """Which is what accuracy comes to, and no other measure."""
    assert check(scenario).valid
    own, usual = (load_scenario(scenario, sets) for sets in ([], ["task.loss=cross-entropy"]))

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
