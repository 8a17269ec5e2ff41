"""What is measured of the report's runs, on a small run of the same kind."""

import pytest
from quick_runs import run as run_quickly
from tong2016.measures import last_over_first

from edgebed.studies.trial_result import FinishedTrial

SCENARIO = {
    "name": "small",
    "task": {"data": "digits", "model": "sigmoid-200", "batch_size": 10, "gradient_time": "5ms"},
    "method": {"preset": "synthetic-inputs", "learning": {"labels": False, "hidden_layers": 0}},
    "fleet": {"edge": {"count": 2}},
    "shards": {"cuts": "even"},
    "evaluation": {"every": "200 updates"},
    "stop": {"updates": 200},
    "variants": {
        "even": {},
        "slow": {"fleet": {"edge": {"count": 1}, "last": {"count": 1, "compute_speed": 0.25}}},
        "alone": {"method": "back-propagation", "fleet": {"edge": {"count": 1}}},
    },
}


@pytest.fixture(scope="module")
def trials(tmp_path_factory):
    """By variant."""
    run = run_quickly(SCENARIO, runtime="simulation", runs_dir=tmp_path_factory.mktemp("runs"))
    return {name: FinishedTrial.of(trial) for name, trial in run.trials.items()}


def test_a_device_of_a_quarter_of_the_speed_works_four_times_as_long(trials):
    """Waiting is no work, and so much of it as there is in a run does not matter."""
    even, slow = (last_over_first(name)(trials) for name in ("even", "slow"))

    assert slow == pytest.approx(4 * even, rel=0.02)


def test_one_device_is_the_first_and_the_last(trials):
    """It works as long as itself."""
    assert last_over_first("alone")(trials) == 1.0
