"""A device that needs long for a push takes part as any other; one that is frozen or cut off is as silent as ever."""

import copy
from typing import Any

import pytest

from edgebed.core import records
from edgebed.core.plan import TrainingPlan
from edgebed.journal.outcome import outcome_of
from edgebed.journal.series import Series
from edgebed.journal.summary import TrialSummary, summarise

from .conftest import Outcome, Simulate

TOY: dict[str, Any] = {
    "name": "toy",
    "seed": 1,
    "task": {"data": "digits", "model": "small", "batch_size": 32, "gradient_time": "5800ms", "fraction": 0.2},
    "method": {
        "preset": "asgd",
        "local_work": {"name": "local-steps", "steps": 2},
        "aggregation": {"staleness": "none"},
    },
    "fleet": {
        "a": {},
        "b": {"compute_speed": 0.773333},
        "c": {"compute_speed": 0.384106},
        "d": {"compute_speed": 0.174174},
    },
    "evaluation": {"every": "500 updates"},
    "stop": {"updates": 280},
}
"""Four devices of which the slowest needs 66.6 s a push, as with 20 steps between pushes of 3.33 s each."""


def scenario(**more: Any) -> dict[str, Any]:
    """The toy with other sections."""
    return copy.deepcopy(TOY) | more


def summary_of(outcome: Outcome, plan: TrainingPlan | None = None) -> TrialSummary:
    """The numbers of a trial, and its verdict, by its own plan or by another."""
    return summarise(plan or outcome.plan, Series.from_journal(outcome.journal))


def of_worker(outcome: Outcome, worker: str) -> list[Any]:
    """Updates of a worker."""
    return [record for _, record in outcome.of(records.Update) if record.worker == worker]


def test_a_slow_device_keeps_its_place_and_the_fleet_its_staleness(simulate: Simulate) -> None:
    """Each of its pushes is applied, and the mean staleness is that of four workers."""
    outcome = simulate(scenario())
    summary = summary_of(outcome)

    assert outcome.ended.outcome == "completed"
    assert outcome.of(records.Left) == []
    assert len(of_worker(outcome, "d-0")) >= 20
    assert summary.refused == 0
    assert summary.server.staleness_mean == pytest.approx(3.0, rel=0.05)
    assert summary.fidelity is not None
    assert summary.fidelity.verdict == "modelled"


def test_a_round_that_takes_longer_than_a_minute_is_progress(simulate: Simulate) -> None:
    """Nobody gives it up."""
    outcome = simulate(scenario(method={"preset": "fedavg", "local_work": {"steps": 2}}, stop={"updates": 12}))

    assert (outcome.ended.outcome, len(outcome.of(records.Update))) == ("completed", 12)
    assert outcome.of(records.Update)[-1][0] == pytest.approx(3 * 66.6, rel=0.01)


def test_a_silence_little_longer_than_a_push_costs_a_few_bytes_and_nothing_else(simulate: Simulate) -> None:
    """The worker says that it works, once in each third of the silence, and only one for whom that is too short."""
    stop = {"updates": 40}
    long = simulate(scenario(stop=stop))
    short = simulate(scenario(stop=stop, deadlines={"silence": "67s"}), trace=True)
    said = [record for _, record in short.of(records.Received) if record.message == "working"]
    pushes = {worker: len(of_worker(short, worker)) for worker in ("a-0", "b-0", "c-0", "d-0")}

    assert [record for _, record in short.of(records.Update)] == [record for _, record in long.of(records.Update)]
    assert short.of(records.Left) == []
    by_worker = {worker: sum(record.sender == worker for record in said) for worker in pushes}
    assert by_worker["a-0"] == by_worker["b-0"] == 0
    assert pushes["c-0"] <= by_worker["c-0"] <= pushes["c-0"] + 1
    assert 2 * pushes["d-0"] <= by_worker["d-0"] <= 2 * pushes["d-0"] + 2
    assert max(record.bytes for record in said) < 32
    ingress = [outcome.of(records.Traffic, "server")[-1][1].ingress_payload for outcome in (short, long)]
    assert ingress[0] - ingress[1] == sum(record.bytes for record in said)


@pytest.mark.parametrize("fault", ["freeze", "cut"])
def test_a_worker_that_is_frozen_or_cut_off_while_it_computes_is_silent(simulate: Simulate, fault: str) -> None:
    """It is given up when it has been silent for as long as is allowed, counted from what it said last."""
    outcome = simulate(
        scenario(
            deadlines={"silence": "67s"}, stop={"updates": 40}, faults=[{fault: "d-0", "at": "30s", "for": "120s"}]
        ),
        trace=True,
    )
    (first_t, left), *_ = outcome.of(records.Left)
    said = [t for t, record in outcome.of(records.Received, "server") if record.sender == "d-0" and t < first_t]

    assert (left.worker, left.reason) == ("d-0", "silence")
    assert max(said) < 30.5
    assert first_t == pytest.approx(max(said) + 67.0, abs=0.01)
    fidelity = summary_of(outcome).fidelity
    assert fidelity is not None
    assert fidelity.reasons == ()


def test_a_push_of_a_device_takes_what_it_is_planned_to(simulate: Simulate) -> None:
    """What deadlines rest on is what virtual time makes of it, with local steps, a pause, a cap and a link."""
    fleet = {
        "a": {"waiting": "3s", "cpus": 0.5, "uplink": "100kbit", "downlink": "200kbit", "latency": "50ms"},
    }
    outcome = simulate(scenario(fleet=fleet, stop={"updates": 5}, deadlines={}))
    times = [t for t, _ in outcome.of(records.Update)]
    planned_s = outcome.plan.server.silence_s

    assert planned_s == pytest.approx(3 * (times[-1] - times[0]) / 4, rel=0.03)


def test_a_class_of_which_nothing_was_applied_is_in_the_headline(simulate: Simulate) -> None:
    """A quorum that leaves the slowest out for good: its pushes came, and none was applied."""
    method = {
        "preset": "fedavg",
        "local_work": {"steps": 2},
        "aggregation": {"quorum": 0.75},
    }
    outcome = simulate(scenario(method=method, stop={"updates": 30}))
    summary = summary_of(outcome)
    pushes = sum(record.worker == "d-0" for _, record in outcome.of(records.Refused) if record.code != "finished")

    assert pushes > 1
    assert summary.unheard == (f"none of the {pushes:,} pushes of class d was applied",)
    assert summary.warnings == summary.unheard
    assert outcome_of([summary]).text.endswith(f" None of the {pushes:,} pushes of class d was applied.")
