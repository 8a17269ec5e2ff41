"""A small scenario to vary, and a way to read what is wrong with one."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from edgebed.errors import ScenarioError
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
