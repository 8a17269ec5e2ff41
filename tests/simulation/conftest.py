"""A trial in virtual time with what only the simulation knows: what became of each message."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import random_shards
import storms
from warm_command import warm_jobs  # noqa: F401 # a fixture of all tests here

from edgebed.core import records
from edgebed.core.plan import TrainingPlan
from edgebed.journal.accounts.ledger import Accounting
from edgebed.journal.accounts.update_accounts import UpdateAccounting
from edgebed.journal.checkpoints import CheckpointStore
from edgebed.journal.folds import Timeline
from edgebed.journal.journal import JournalWriter
from edgebed.journal.run_folder import TrialFolder
from edgebed.learning.beginning import Beginning
from edgebed.planning.planning import plan_trials
from edgebed.running.results import Trial
from edgebed.runtimes.simulation.jobs import jobs_of
from edgebed.runtimes.simulation.simulated_connection import THE_TRIAL_ENDED
from edgebed.runtimes.simulation.simulation import Simulation
from edgebed.runtimes.watch import StatusFeed
from edgebed.scenario.load import load_scenario


class Outcome(NamedTuple):
    """What came of a trial."""

    plan: TrainingPlan
    journal: Path
    entries: list[tuple[float, str, records.Record]]
    lost: dict[tuple[str, int, int], str]
    """(worker, incarnation, step) of pushes that were never received: why."""
    under_way: set[tuple[str, int, int]]
    """Those that were never received since the trial ended."""
    accounting: Accounting
    truth: random_shards.Truth
    """What became of each step of a layer shard."""
    servers: storms.ServerTruth
    """That servers went on where they had ended."""

    def of(self, kind: type, node: str | None = None) -> list[tuple[float, Any]]:
        """(time, record) of a kind, by one node or by all."""
        return [(t, record) for t, who, record in self.entries if isinstance(record, kind) and node in (None, who)]

    def faults(self, target: str | None = None) -> list[tuple[float, str]]:
        """(time, action) of what was done."""
        return [(t, record.action) for t, record in self.of(records.Fault) if target in (None, record.target)]

    def states(self, node: str) -> list[tuple[float, str]]:
        """(time, state) that the controller saw a node in."""
        return [(t, record.state) for t, record in self.of(records.Node) if record.name == node]

    @property
    def ended(self) -> records.Ended:
        """How the trial ended."""
        ((_, ended),) = self.of(records.Ended)
        return ended


Simulate = Callable[..., Outcome]


@pytest.fixture
def simulate(tmp_path: Path) -> Simulate:
    """Runs a scenario of one trial, in a folder of its own each time."""
    count = iter(range(10**6))

    def run(scenario: dict[str, Any], *, processes: int = 1, trace: bool = False) -> Outcome:
        (planned,) = plan_trials(load_scenario(scenario, []), trace=trace)
        folder = TrialFolder(tmp_path / str(next(count)))
        folder.make(planned.plan)
        beginning = Beginning(planned.plan)
        with JournalWriter(folder.journal) as journal:
            simulation = Simulation(
                planned.plan,
                CheckpointStore(folder, beginning.theta),
                jobs_of(planned, beginning),
                processes,
                journal,
                lambda heart: StatusFeed(heart, lambda _: None, lambda *_: None),
            )
            truth, servers = random_shards.Truth(simulation), storms.ServerTruth(simulation)
            simulation.run()
        entries = list(Trial(folder).events())
        accounting = UpdateAccounting(Timeline()).add_all(entries).close()
        assert accounting is not None
        fates = simulation.network.losses.pushes
        lost = {push: why for push, why in fates.items() if why != THE_TRIAL_ENDED}
        return Outcome(
            planned.plan, folder.journal, entries, lost, fates.keys() - lost.keys(), accounting, truth, servers
        )

    return run
