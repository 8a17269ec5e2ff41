"""One body of tests for every runtime: what the simulation predicts, the others do.

What the simulation may simplify stands at the top of runtimes/simulation/simulation.py: time. So where several
workers push, the order of their pushes may differ between runtimes, and with it the numbers; each worker's own sequence
may not.
"""

import functools
import tempfile
from pathlib import Path

import numpy as np
import pytest
from quick_runs import run as run_quickly

from edgebed.core import records
from edgebed.running.results import Run, Trial

RUNTIMES = [
    pytest.param("simulation", marks=pytest.mark.simulation),
    pytest.param("process", marks=pytest.mark.process),
    pytest.param("docker", marks=pytest.mark.docker),
]
SCENARIO = {
    "name": "conformance",
    "question": "Do all runtimes do the same?",
    "seed": 7,
    "task": {"data": "digits", "model": "small", "batch_size": 10, "gradient_time": "1ms"},
    "method": {"preset": "adacomp", "compression": {"fraction": 0.1}},
    "fleet": {"edge": {"count": 4, "waiting": {"uniform": ["1ms", "5ms"]}}},
    "evaluation": {"every": "100 updates"},
    "faults": [{"kill": "edge-0", "at": "1h"}],
    "stop": {"updates": 300},
}


FOLDER = tempfile.TemporaryDirectory(prefix="edgebed-conformance-")  # gone when the tests are over


@functools.cache
def trial(runtime: str, *overrides: str) -> Trial:
    """The scenario's only trial in that runtime, with every message journaled; run once for all tests."""
    folder = Path(FOLDER.name) / f"{runtime}{len(overrides)}"
    run: Run = run_quickly(SCENARIO, runtime=runtime, set=overrides, trace=True, runs_dir=folder)
    (only,) = run.trials.values()

    assert only.summary.outcome == "completed"
    return only


def messages_of(trial: Trial, node: str) -> list[tuple[str, str]]:
    """What `node` sent and received on the data network, in its own order, up to what it sent last.

    The answer to that may come when the worker is told to end, or just before.
    """
    found = [
        ("sent" if isinstance(record, records.Sent) else "received", record.message)
        for _, name, record in trial.events()
        if name == node and isinstance(record, records.Sent | records.Received)
    ]
    while found[-1][0] == "received":
        found.pop()
    return found


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_each_worker_has_the_same_message_sequence(runtime: str) -> None:
    """Join, model, then push and model by turns; a worker in any runtime goes as far as the trial lets it."""
    expected = messages_of(trial("simulation"), "edge-0")
    for node in ("edge-0", "edge-1", "edge-2", "edge-3"):
        found = messages_of(trial(runtime), node)

        shorter = min(len(found), len(expected))
        assert shorter > 20
        assert expected[:shorter] == found[:shorter]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_fault_that_training_ended_before_is_told(runtime: str) -> None:
    """The plan has it and the journal has not."""
    summary = trial(runtime).summary
    assert summary.fidelity is not None

    assert summary.faults_missed == 1
    assert any(reason.startswith("faults: kill-1 at 1 h 00 min did not") for reason in summary.fidelity.reasons)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_one_worker_pushes_equal_bytes_and_leaves_equal_weights(runtime: str) -> None:
    """With one worker nothing depends on the order of pushes: every runtime gives the same bits."""
    expected, found = trial("simulation", "fleet.edge.count=1"), trial(runtime, "fleet.edge.count=1")

    assert messages_of(expected, "edge-0") == messages_of(found, "edge-0")
    for column in ("version", "step", "base", "staleness", "entries", "bits", "bytes", "loss"):
        assert getattr(expected.series.updates, column).tolist() == getattr(found.series.updates, column).tolist()
    assert np.array_equal(expected.checkpoint(), found.checkpoint())
    assert expected.series.evaluations.final_value == found.series.evaluations.final_value


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_both_parts_are_measured_alike_in_every_runtime(runtime: str) -> None:
    """The same examples are held out, and neither part's values depend on where they are measured."""
    settings = ("fleet.edge.count=1", "task.validation=20%")
    expected, found = (trial(each, *settings).series.evaluations for each in ("simulation", runtime))

    assert expected.version.tolist() == found.version.tolist()
    assert (expected.selects_by, found.selects_by) == ("validation", "validation")
    for name in ("accuracy", "loss"):
        assert expected.measured[name].tolist() == found.measured[name].tolist()
        assert expected.validation[name].tolist() == found.validation[name].tolist()
    assert found.measured["loss"].tolist() != found.validation["loss"].tolist()


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_changed_entries_bring_the_same_model_as_whole_ones_with_fewer_bytes(runtime: str) -> None:
    """With one worker: the same messages and updates, the same bits at the end; one whole model after the join."""
    whole = trial(runtime, "fleet.edge.count=1")
    found = trial(runtime, "fleet.edge.count=1", "pull=changed-since")
    traffic, before = found.series.traffic[-1][1], whole.series.traffic[-1][1]

    assert messages_of(whole, "edge-0") == messages_of(found, "edge-0")
    assert whole.series.updates.loss.tolist() == found.series.updates.loss.tolist()
    assert np.array_equal(whole.checkpoint(), found.checkpoint())
    assert (traffic.pulls, traffic.pulls_changed) == (301, 299)  # all but the first and the final one
    assert (before.pulls, before.pulls_changed, before.pull_changed_bytes) == (301, 0, 0)
    assert traffic.pull_bytes < before.pull_bytes / 2
    assert traffic.pull_bytes == sum(
        record.bytes
        for _, node, record in found.events()
        if node == "server" and isinstance(record, records.Sent) and record.to.startswith("edge-0")
    )


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_changed_entries_are_what_they_are_in_every_runtime(runtime: str) -> None:
    """One worker is sent the same bytes; several differ in the order of their pushes alone."""
    expected = trial("simulation", "fleet.edge.count=1", "pull=changed-since").series.traffic[-1][1]
    found = trial(runtime, "fleet.edge.count=1", "pull=changed-since").series.traffic[-1][1]

    assert (expected.pulls, expected.pulls_changed) == (found.pulls, found.pulls_changed)
    assert found.pull_changed_bytes == pytest.approx(expected.pull_changed_bytes, rel=0.001)  # times differ in length
    assert (found.ack_bytes is None) == (runtime == "simulation")


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_several_workers_push_equal_entries_and_nearly_equal_bytes(runtime: str) -> None:
    """The count of entries is the method's; their encoded size depends a little on which ones they are."""
    expected, found = trial("simulation").series.updates, trial(runtime).series.updates

    assert expected.entries.tolist() == found.entries.tolist()
    assert found.bytes.mean() == pytest.approx(expected.bytes.mean(), rel=0.02)


@pytest.mark.parametrize("runtime", RUNTIMES[:2])
@pytest.mark.parametrize("method", ["asgd", "comp-asgd"])
def test_every_method_trains_in_simulation_and_in_processes(runtime: str, method: str) -> None:
    """300 updates have twice the accuracy of chance at least; staleness is what the number of workers makes it."""
    found = trial(runtime, f"method={method}", "evaluation.every=150 updates")

    assert found.series.evaluations.final_value is not None
    assert found.series.evaluations.final_value > 0.2
    assert found.series.updates.staleness.mean() == pytest.approx(3, abs=1)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_update_that_ends_the_trial_is_the_last_and_is_evaluated(runtime: str) -> None:
    """`stop.updates` is exact, and the final accuracy belongs to exactly that version."""
    series = trial(runtime).series

    assert series.updates.version.tolist() == list(range(1, 301))
    assert series.evaluations.version[-1] == 300


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_traffic_counted_at_the_socket_is_that_of_the_journal(runtime: str) -> None:
    """Payload into the server's data socket is what workers sent; the evaluator's pulls are not traffic."""
    found = trial(runtime)
    received = [
        record.bytes
        for _, node, record in found.events()
        if node == "server" and isinstance(record, records.Received) and record.message in ("join", "push")
    ]

    assert found.series.traffic[-1][1].ingress_payload == sum(received)
    assert sum(received) >= found.series.updates.bytes.sum()
