"""Scenarios by name: what a name means, and what is said where it means nothing."""

from pathlib import Path

import pytest

from edgebed.core.errors import ScenarioError
from edgebed.core.package import SHIPPED
from edgebed.scenario.load import load_scenario
from edgebed.scenario.shipped import scenario_file, shipped_scenarios

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    """The folder that one is in has nothing in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_shipped_scenario_has_a_name():
    """Its path below scenarios/ without the ending, which any of the commands takes."""
    names = shipped_scenarios()

    assert {"quickstart", "faults/churn", "hardy2017/adacomp", "sweeps/links"} <= set(names)
    assert [scenario_file(name) for name in names] == [SHIPPED / "scenarios" / f"{name}.yaml" for name in names]


def test_the_path_in_the_repository_is_a_name_too():
    """So the commands of the documents work in any folder."""
    assert scenario_file("scenarios/faults/churn.yaml") == SHIPPED / "scenarios/faults/churn.yaml"


def test_what_lies_in_the_folder_comes_first(empty_folder):
    """A file called so, then one of its scenarios/, then the one that comes with edgebed."""
    own = Path("scenarios/quickstart.yaml")
    own.parent.mkdir()
    own.touch()
    assert scenario_file("quickstart") == own
    assert scenario_file("scenarios/quickstart.yaml") == own

    Path("quickstart").touch()
    assert scenario_file("quickstart") == Path("quickstart")


def test_a_folder_of_that_name_hides_no_scenario():
    """A folder is no scenario."""
    Path("quickstart").mkdir()

    assert scenario_file("quickstart") == SHIPPED / "scenarios/quickstart.yaml"


def test_a_scenario_is_loaded_by_its_name_and_knows_its_file():
    """Messages and manifests name the file; overrides work as ever."""
    scenario = load_scenario("quickstart", ["stop.updates=7"])

    assert (scenario.name, scenario.source) == ("quickstart", str(SHIPPED / "scenarios/quickstart.yaml"))
    assert {trial.stop.updates for trial in scenario.trials.values()} == {7}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("quikstart", r"^quikstart: there is no such file, nor a scenario of that name; did you mean 'quickstart'\?"),
        ("churn", r"^churn: there is no such file, nor .*; did you mean 'faults/churn'\? allowed: chen2019/"),
        ("quickstart.yaml", r"^quickstart\.yaml: there is no such file\.$"),
        ("scenarios/none.yaml", r"^scenarios/none\.yaml: there is no such file\.$"),
        ("/quickstart", r"^/quickstart: there is no such file.*, nor a scenario of that name; "),
        ("../quickstart", r"^\.\./quickstart: there is no such file"),
    ],
)
def test_a_name_that_means_nothing_is_refused_with_those_there_are(given, message):
    """A path of a file says of the file alone that it is not there."""
    with pytest.raises(ScenarioError, match=message):
        load_scenario(given)


def test_the_files_beside_a_missing_one_are_named():
    """As for every path: what was meant is often there."""
    Path("mine.yaml").touch()

    with pytest.raises(ScenarioError, match=r"^min: there is no such file, nor .*; this folder has mine\.yaml$"):
        load_scenario("min")
