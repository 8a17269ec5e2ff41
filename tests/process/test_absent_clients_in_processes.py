"""A federated round ends without a client that has died and one that is frozen, both real processes."""

from pathlib import Path

import pytest
from quick_runs import run as run_quickly

from edgebed.core import records

SCENARIO = Path(__file__).parents[2] / "scenarios/federated/absent-clients.yaml"
SETS = (
    "stop.updates=110", "variants.averaged.method.aggregation.deadline_s=0.5", "deadlines.silence=2s",
    "fleet.edge.waiting=100ms",  # so that faults come soon, by updates, on a busy machine too
)  # fmt: skip


@pytest.mark.process
def test_rounds_go_on_with_the_clients_that_are_left(tmp_path: Path) -> None:
    """To the end, with every update accounted for; the frozen one is given up when it has been silent."""
    run = run_quickly(SCENARIO, runtime="process", variants=["averaged"], set=SETS, runs_dir=tmp_path)
    trial = run.trials["averaged"]
    after = [record for _, _, record in trial.events() if isinstance(record, records.Update) and record.version > 100]

    assert run.exit_code == 0
    assert trial.summary.outcome == "completed"
    assert trial.summary.accounting.closes
    assert trial.series.updates.version[-1] >= 110
    assert {record.worker for record in after} == {"edge-0", "edge-2", "edge-3", "edge-5"}
