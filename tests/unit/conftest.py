"""Fixtures for tests of several folders: a small scenario to vary; sample plans, journals and runs."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from sample_runs import make_plan, sample_entries, write_sample_run

from edgebed.core.errors import ScenarioError
from edgebed.scenario.load import load_scenario
from edgebed.scenario.schema import Scenario

GOOD = """\
name: small
question: Does it load?
seed: 3
task:
  data: digits
  model: small
method: adacomp
fleet:
  edge: { count: 2, cpus: 0.5, memory: 256MiB }
stop: { updates: 10 }
"""


@pytest.fixture
def scenario_file(tmp_path, monkeypatch) -> Callable[[str], str]:
    """Writes a text as `s.yaml` in the current folder and returns that name."""
    monkeypatch.chdir(tmp_path)

    def write(text: str) -> str:
        Path("s.yaml").write_text(text, encoding="utf-8")
        return "s.yaml"

    return write


@pytest.fixture
def load(scenario_file) -> Callable[..., Scenario]:
    """Loads a text, with `--set` options."""

    def load(text: str = GOOD, *sets: str) -> Scenario:
        return load_scenario(scenario_file(text), sets)

    return load


@pytest.fixture
def problems(load) -> Callable[..., Sequence[str]]:
    """What is wrong with a text; fails if nothing is."""

    def problems(text: str = GOOD, *sets: str) -> Sequence[str]:
        with pytest.raises(ScenarioError) as caught:
            load(text, *sets)
        return caught.value.problems

    return problems


@pytest.fixture
def good() -> str:
    """The text of a scenario without variants: ten lines of block YAML, one worker class `edge`."""
    return GOOD


@pytest.fixture
def make_sample_plan():
    """`make_plan`, since a test cannot import from here."""
    return make_plan


@pytest.fixture
def make_sample_entries():
    """`sample_entries`."""
    return sample_entries


@pytest.fixture
def make_sample_run():
    """`write_sample_run`."""
    return write_sample_run


@pytest.fixture
def sample_run(tmp_path):
    """A completed run of two trials."""
    return write_sample_run(tmp_path / "runs")
