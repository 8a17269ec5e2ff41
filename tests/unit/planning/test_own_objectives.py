"""An objective of one's own in a plan, and at an evaluation; mistakes are in tests/shared/mistaken_scenarios.txt."""

from pathlib import Path

import pytest
import yaml

from edgebed.core.errors import OwnCodeError
from edgebed.planning.checking import check
from edgebed.planning.planning import plan_trials
from edgebed.reports.plan.description import describe_plan
from edgebed.roles.work import EvaluationJob, Scores, evaluated
from edgebed.scenario.load import load_scenario

GOALS = """
from edgebed.core.measures.task import TaskMeasure
from edgebed.learning.objectives.classification import Classification

def one(name="error", **more):
    return (TaskMeasure(name=name, **more),)

class Good(Classification):
    measures = one(unit="share")
    def sums_of(self, outputs, targets):
        return {"error": ((outputs.argmax(1) != targets).sum(), len(targets))}
"""
SCENARIO = {
    "name": "own",
    "seed": 1,
    "task": {"data": "digits", "model": "small", "batch_size": 10, "objective": "goals_of_mine:Good"},
    "method": "asgd",
    "fleet": {"edge": {"count": 2}},
    "stop": {"updates": 20},
}


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scenario with an objective of its own, beside the others."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "goals_of_mine.py").write_text(GOALS, encoding="utf-8")
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump(SCENARIO), encoding="utf-8")
    return path


def test_one_that_works_is_planned_without_the_share_of_the_most_frequent_class(scenario: Path) -> None:
    """Which is what accuracy comes to, and no other measure."""
    assert check(scenario).valid
    own, usual = (load_scenario(scenario, sets) for sets in ([], ["task.objective=classification"]))

    assert describe_plan(plan_trials(own)[0], runtime="simulation").most_frequent is None
    assert describe_plan(plan_trials(usual)[0], runtime="simulation").most_frequent is not None


def test_a_measure_of_no_example_ends_the_node() -> None:
    """It has no mean, and no journal could have one."""
    part = Scores((("test", {"error": (0.0, 0.0), "loss": (3.0, 2.0)}),))

    with pytest.raises(OwnCodeError, match="no example of the test part has weight in error, so"):
        evaluated(EvaluationJob(None, 3, True), [part])  # type: ignore[arg-type]
