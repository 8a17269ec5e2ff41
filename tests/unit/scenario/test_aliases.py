"""YAML's aliases in a scenario: what is meant once may be repeated, and no file can grow by them without limit."""

import pytest

from edgebed.core.errors import ScenarioError
from edgebed.scenario.load import load_scenario


def test_aliases_of_aliases_are_counted_before_they_are_followed(tmp_path):
    """Eight lines of nine aliases each stand for five million values; nobody waits for them."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]" for k in range(1, 8)]
    file = tmp_path / "bomb.yaml"
    file.write_text("\n".join(lines))

    with pytest.raises(ScenarioError, match=r"bomb\.yaml: aliases of aliases make [\d,]+ values of \d+ characters"):
        load_scenario(file)


def test_aliases_may_repeat_what_is_meant(tmp_path):
    """A class like another, written once."""
    file = tmp_path / "alike.yaml"
    file.write_text(
        "name: a\ntask: {data: digits, model: small}\nmethod: asgd\nstop: {updates: 10}\n"
        "fleet: {one: &one {count: 2, uplink: 1mbit}, two: *one}\n"
    )

    fleet = load_scenario(file).trials["asgd"].fleet

    assert fleet["two"] == fleet["one"]
