"""The scenarios in scenarios/faults/ show what they say, in virtual time."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from quick_runs import run as run_quickly

from edgebed.core import records
from edgebed.running.results import Trial

pytestmark = [pytest.mark.simulation, pytest.mark.slow]

FOLDER = Path(__file__).parents[2] / "scenarios/faults"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))


def updates(trial: Trial, since_s: float = 0.0, until_s: float = 1e9) -> Counter[str]:
    """How many each class has brought between two times."""
    return Counter(
        record.worker.rpartition("-")[0]
        for t, _, record in trial.events()
        if isinstance(record, records.Update) and since_s <= t < until_s
    )


def accuracies(trial: Trial, since_s: float, until_s: float) -> list[float]:
    """Those measured between two times."""
    return [
        record.measured["accuracy"]
        for t, _, record in trial.events()
        if isinstance(record, records.Evaluated) and since_s <= t < until_s
    ]


def about_half_of_the_fleet_freezes_and_the_others_make_up_for_it(trials):
    """Eight of sixteen are to be expected; two standard deviations are allowed."""
    living, freezing = (trials[name] for name in ("living", "freezing"))
    frozen = {record.target for _, _, record in freezing.events() if isinstance(record, records.Fault)}

    assert 4 <= len(frozen) <= 12
    assert freezing.summary.updates == living.summary.updates == 2000
    assert freezing.summary.time_s > 1.3 * living.summary.time_s
    assert freezing.summary.final["accuracy"] > living.summary.final["accuracy"] - 0.02


def three_speeds_share_the_updates_as_their_rates_say(trials):
    """100 : 10 : 1 with 3, 4 and 3 workers is 87.5, 11.7 and 0.9 per cent, a little less for the time of a gradient."""
    shares = updates(trials["adacomp"])

    assert shares["fast"] / shares.total() == pytest.approx(0.87, abs=0.03)
    assert shares["slow"] / shares.total() == pytest.approx(0.01, abs=0.005)


def flapping_devices_bring_half_and_the_others_as_much_as_ever(trials):
    """Nobody waits for them."""
    without, flapping = updates(trials["without"]), updates(trials["with"])

    assert flapping["steady"] == pytest.approx(without["steady"], rel=0.05)
    assert 0.4 < flapping["flapping"] / without["flapping"] < 0.7


def a_partition_makes_the_model_forget_and_its_healing_makes_it_learn_again(trials):
    """Those on the other side bring nothing meanwhile."""
    parted = trials["parted"]

    assert updates(parted, 11.0, 30.0)["far"] == 0
    assert updates(parted, 35.5)["far"] > 0
    assert min(accuracies(parted, 20.0, 30.5)) < max(accuracies(parted, 5.0, 10.5)) - 0.03
    assert max(accuracies(parted, 31.0, 35.0)) > max(accuracies(parted, 5.0, 10.5)) + 0.03


def churn_costs_rounds_more_than_training_that_waits_for_nobody(trials):
    """Updates while devices come and go, against before, a second."""
    kept = {
        name: (updates(trial, 5.0, 41.0).total() / 36.0) / (updates(trial, 0.5, 5.0).total() / 4.5)
        for name, trial in trials.items()
    }

    assert kept["asynchronous"] > 0.65
    assert kept["synchronous"] < kept["asynchronous"] - 0.15


def a_straggler_costs_as_much_as_is_waited_for_it(trials):
    """Updates after it has become slow, against before, a second."""
    kept = {
        name: (updates(trial, 10.0).total() / 25.0) / (updates(trial, 0.5, 10.0).total() / 9.5)
        for name, trial in trials.items()
    }

    assert kept["waits-for-all"] < 0.4
    assert kept["waits-for-most"] > 0.7
    assert kept["waits-for-nobody"] > 0.75


def a_killed_server_goes_on_from_its_checkpoints(trials):
    """What it had applied since is lost and made again; the model is as good."""
    living, killed = (trials[name] for name in ("living", "killed"))
    restored = [record.version for _, _, record in killed.events() if isinstance(record, records.Restored)]

    assert restored == [600, 1400]
    assert killed.summary.updates == living.summary.updates == 2000
    assert 200 <= killed.summary.server.updates_lost <= 240
    assert killed.summary.final["accuracy"] > living.summary.final["accuracy"] - 0.02
    logged = trials["logged"]
    assert [each.version for _, _, each in logged.events() if isinstance(each, records.Restored)] == [700, 1500]
    assert (logged.summary.updates, logged.summary.server.updates_lost) == (2000, 0)


EFFECTS: dict[str, Callable[[dict[str, Trial]], None]] = {
    "half-freezes": about_half_of_the_fleet_freezes_and_the_others_make_up_for_it,
    "three-speeds": three_speeds_share_the_updates_as_their_rates_say,
    "flapping-uplink": flapping_devices_bring_half_and_the_others_as_much_as_ever,
    "partition-heals": a_partition_makes_the_model_forget_and_its_healing_makes_it_learn_again,
    "churn": churn_costs_rounds_more_than_training_that_waits_for_nobody,
    "straggler": a_straggler_costs_as_much_as_is_waited_for_it,
    "server-killed": a_killed_server_goes_on_from_its_checkpoints,
}
"""What each scenario is to show."""
QUICKER = {
    "straggler": ("task.model=small", "task.batch_size=20", "evaluation.every=200 updates"),
    "half-freezes": ("task.model=small", "stop.updates=2000", "variants.freezing.faults.0.probability=0.004"),
    "three-speeds": ("task.model=small", "stop.updates=1500"),
    "churn": ("evaluation.every=500 updates", "stop.time=42s"),
    "server-killed": ("evaluation.every=1000 updates",),
    "partition-heals": ("stop.time=40s",),
    "flapping-uplink": ("evaluation.every=500 updates", "stop.time=44s"),
}
"""What changes nothing of it: a gradient of any model takes as long in virtual time, and nobody asks for the end."""


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_shows_its_effect_and_every_update_is_accounted_for(name, tmp_path):
    """It meets its expectations, and each fault that the plan has is in the journal, by its name."""
    scenario, quicker = FOLDER / f"{name}.yaml", QUICKER.get(name, ())
    done = run_quickly(scenario, runtime="simulation", runs_dir=tmp_path, set=quicker)

    assert done.exit_code == 0
    for trial in done.trials.values():
        journaled = {record.name for _, _, record in trial.events() if isinstance(record, records.Fault)}
        assert journaled == {fault.name for fault in trial.plan.faults}
        assert trial.summary.accounting.closes
    EFFECTS[name](done.trials)
