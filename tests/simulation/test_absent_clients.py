"""scenarios/federated/absent-clients.yaml: a client dies, another one freezes, and the others go on to the end."""

import itertools
from pathlib import Path

import pytest
from quick_runs import run as run_quickly

from edgebed.core import records
from edgebed.running.results import Run, Trial

pytestmark = pytest.mark.simulation

SCENARIO = Path(__file__).parents[2] / "scenarios/federated/absent-clients.yaml"
GONE = ("edge-1", "edge-4")


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    """All variants, as shipped."""
    return run_quickly(SCENARIO, runtime="simulation", runs_dir=tmp_path_factory.mktemp("runs"))


def updates_of(trial: Trial) -> list[tuple[float, records.Update]]:
    """When, and which."""
    return [(t, record) for t, _, record in trial.events() if isinstance(record, records.Update)]


def test_it_meets_its_expectations_and_every_update_is_accounted_for(run: Run) -> None:
    """Both faults are done in each variant."""
    assert run.exit_code == 0
    assert list(run.trials) == ["averaged", "held-to-the-model", "buffered"]
    for trial in run.trials.values():
        done = [(record.action, record.target) for _, _, record in trial.events() if isinstance(record, records.Fault)]

        assert trial.summary.outcome == "completed"
        assert done == [("kill", "edge-1"), ("freeze", "edge-4")]
        assert trial.summary.accounting.closes
        assert trial.series.updates.version[-1] >= 150


def test_nobody_waits_for_who_is_gone(run: Run) -> None:
    """Rounds go on with four clients, each ended by its deadline of a second; a buffer does not even wait so long."""
    for name, trial in run.trials.items():
        after = [(t, update) for t, update in updates_of(trial) if update.version > 60]
        gaps_s = [later[0] - earlier[0] for earlier, later in itertools.pairwise(after)]

        assert {update.worker for _, update in after} == {"edge-0", "edge-2", "edge-3", "edge-5"}
        assert max(gaps_s) < (0.5 if name == "buffered" else 1.5)
        assert name == "buffered" or max(gaps_s) > 1.0


def test_a_client_of_which_the_server_has_heard_nothing_is_given_up(tmp_path: Path) -> None:
    """Then rounds end as soon as the four have pushed."""
    options = ["deadlines.silence=3s", "stop.updates=120"]
    run = run_quickly(SCENARIO, runtime="simulation", variants=["averaged"], set=options, runs_dir=tmp_path)
    trial = run.trials["averaged"]
    left = [record for _, _, record in trial.events() if isinstance(record, records.Left)]
    last_s = [t for t, update in updates_of(trial) if update.version > 100]

    assert trial.summary.outcome == "completed"
    assert [(record.worker, record.reason) for record in left if record.worker in GONE] == [
        ("edge-1", "reset"), ("edge-4", "silence"),
    ]  # fmt: skip
    assert last_s[-1] - last_s[0] < 1.0
