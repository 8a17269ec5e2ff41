"""Some of a scenario's variants alone: the others are as if they had not been written."""

from pathlib import Path

import pytest
from tiny_paper import SCENARIO

from edgebed.core.errors import ScenarioError
from edgebed.reports.reported import run
from edgebed.scenario.load import load_scenario, resolved_yaml
from edgebed.scenario.schema import Scenario


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    """One of two variants."""
    path = tmp_path / "tiny.yaml"
    path.write_text(SCENARIO)
    return load_scenario(path)


def test_chosen_variants_keep_the_order_of_the_file(scenario: Scenario) -> None:
    """However they are named, and how often; none at all means all."""
    assert list(scenario.only(["adacomp", "asgd", "adacomp"]).trials) == ["asgd", "adacomp"]
    assert list(scenario.only(["adacomp"]).trials) == ["adacomp"]
    assert scenario.only([]).trials == scenario.trials


def test_every_unknown_variant_is_named(scenario: Scenario) -> None:
    """With those there are."""
    with pytest.raises(ScenarioError) as error:
        scenario.only(["ada", "asgd", "nothing"])
    assert [problem.split(": ", 1)[1] for problem in error.value.problems] == [
        "no variant 'ada'; did you mean 'adacomp'? allowed: asgd, adacomp",
        "no variant 'nothing'; allowed: asgd, adacomp",
    ]


def test_the_resolved_scenario_has_the_chosen_variants_alone(scenario: Scenario, tmp_path: Path) -> None:
    """So that whoever goes on with the run plans no other."""
    chosen = scenario.only(["adacomp"])
    path = tmp_path / "resolved.yaml"
    path.write_text(resolved_yaml(chosen))

    assert load_scenario(path).trials == chosen.trials


def test_a_single_name_is_no_list_of_names() -> None:
    """It would be taken letter by letter."""
    with pytest.raises(ScenarioError, match="variants: 'asgd' is one string"):
        run("tiny.yaml", variants="asgd")
