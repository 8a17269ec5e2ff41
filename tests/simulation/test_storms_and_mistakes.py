"""Storms find mistakes that are planted in a server with a log, and name the fewest faults that show each."""

from collections.abc import Callable
from typing import Any

import pytest
import random_faults
import storms
from planted_mistakes import MISTAKES, Mistake, planted
from ruamel.yaml import YAML

Simulate = Callable[..., Any]  # conftest.py
SEEDS_MAX = 60
BEGINS_AT = {
    "forgets-held": 35,
    "forgets-changes": 49,
    "restores-first-state": 51,
    "counts-refused": 12,
    "forgets-waiting": 125,
}
"""Seed of the storm that finds it, where no storm before does: the search begins there."""
FEW = {"skips-an-append": 1, "restores-first-state": 1, "restores-version-before": 1, "forgets-held": 2}
"""Faults of the shortest schedule, at most, of those for which it is known."""


def first_failure(simulate: Simulate, mistake: Mistake) -> tuple[int, dict[str, Any], Exception]:
    """Seed, scenario and error of the first storm that fails."""
    first = BEGINS_AT.get(mistake.name, 1)
    for seed in range(first, first + SEEDS_MAX):
        scenario = random_faults.scenario_of(seed, methods=mistake.methods, hubs=True)
        if error := storms.failure_of(simulate, scenario):
            return seed, scenario, error
    pytest.fail(f"{mistake.name}: {SEEDS_MAX} storms did not find that {mistake.breaks}")


@pytest.mark.parametrize(
    "mistake",
    [
        pytest.param(each, id=each.name, marks=() if each.name in FEW else pytest.mark.soak)
        for each in MISTAKES
        if each.storm
    ],
)
def test_a_planted_mistake_is_found_and_its_schedule_cut_down(simulate: Simulate, mistake: Mistake) -> None:
    """Within so many seeds; the shorter schedule still shows it, and shows nothing where the mistake is not there."""
    with planted(mistake):
        _, scenario, error = first_failure(simulate, mistake)
        short = storms.shortened(simulate, scenario, error)
        assert type(storms.failure_of(simulate, short)) is type(error)

    assert storms.failure_of(simulate, short) is None
    assert len(short["faults"]) <= FEW.get(mistake.name, len(scenario["faults"]))


def test_a_storm_that_failed_says_which_faults_are_enough(simulate: Simulate) -> None:
    """As text that a scenario can have in place of its own: many faults come down to one."""
    (mistake,) = (each for each in MISTAKES if each.name == "restores-first-state")
    with planted(mistake):
        seed, scenario, error = first_failure(simulate, mistake)
        said = storms.complaint(simulate, seed, scenario, error)
        text = "faults:" + said.partition("\nfaults:")[2]
        faults = YAML(typ="safe").load(text)["faults"]
        assert len(scenario["faults"]) > 4
        assert len(faults) == 1
        assert f"EDGEBED_RANDOM_FAULTS={seed}-{seed}" in said
        assert storms.failure_of(simulate, scenario | {"faults": faults})
