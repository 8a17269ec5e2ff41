"""Scenarios, and parts of some, that README and pages show are valid."""

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from edgebed.scenario.load import load_scenario

ROOT = Path(__file__).parents[3]
REST = {
    "name": "rest",
    "task": {"data": "digits", "model": "small", "batch_size": 10},
    "method": "adacomp",
    "fleet": {name: {"count": 4} for name in ("phone", "home", "car")},
    "stop": {"time": "3m", "updates": 100_000},
}
"""What a part of a scenario is put into, key by key."""
PARTS = ("docs/shaping.md", "docs/faults.md", "docs/layers.md")


def blocks(document: str) -> list[str]:
    """The blocks of YAML of a document."""
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_scenario_of_the_readme_is_the_one_that_its_commands_run():
    """To the letter."""
    assert blocks("README.md") == [(ROOT / "scenarios/two-classes.yaml").read_text(encoding="utf-8")]


@pytest.mark.parametrize("document", PARTS)
def test_the_part_of_a_scenario_that_a_page_shows_is_valid(document, tmp_path):
    """Within a scenario whose other keys are ordinary."""
    (block,) = blocks(document)
    yaml = YAML(typ="safe")
    shown = yaml.load(block)
    with (tmp_path / "rest.yaml").open("w", encoding="utf-8") as file:
        yaml.dump(REST | shown, file)

    scenario = load_scenario(tmp_path / "rest.yaml")

    assert shown
    assert len(scenario.trials) == 1
