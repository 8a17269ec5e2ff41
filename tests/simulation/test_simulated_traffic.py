"""What passed the server's data socket is told while virtual time goes on, as often as by a live server."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from edgebed.core import records
from edgebed.journal.series import Series
from edgebed.journal.summary import summarise
from edgebed.runtimes.traffic import OBSERVE_S

Simulate = Callable[..., Any]  # conftest.py
SCENARIO: dict[str, Any] = {
    "name": "traffic",
    "task": {"data": "digits", "model": "small", "batch_size": 5, "gradient_time": "5ms"},
    "method": "asgd",
    "fleet": {"edge": {"count": 4, "waiting": "300ms"}},
    "evaluation": {"every": "50 updates"},
    "stop": {"updates": 150},
}


def told(outcome: Any) -> list[tuple[float, records.Traffic]]:
    """(time, what the server told) of its lives."""
    return outcome.of(records.Traffic, "server")


def passed(outcome: Any, until_s: float) -> tuple[int, int]:
    """Bytes in and out of the server by then, of each single message; those of the evaluator are no traffic."""
    came = sum(
        each.bytes for t, each in outcome.of(records.Received, "server") if t <= until_s and each.sender != "evaluator"
    )
    left = sum(each.bytes for t, each in outcome.of(records.Sent, "server") if t <= until_s and each.to != "evaluator")
    return came, left


def test_each_second_has_the_bytes_of_the_messages_until_then(simulate: Simulate) -> None:
    """And the last line those of all."""
    outcome = simulate(SCENARIO, trace=True)
    times = [t for t, _ in told(outcome)]
    *_, (end_s, _) = outcome.of(records.Node)

    assert times[:-1] == [pytest.approx(OBSERVE_S * count) for count in range(1, len(times))]
    assert len(times) == int(times[-1]) + 1 > 10
    for t, record in told(outcome):
        assert (record.ingress_payload, record.egress_payload) == passed(outcome, t)
    assert (told(outcome)[-1][1].ingress_payload, told(outcome)[-1][1].egress_payload) == passed(outcome, end_s)


def test_nothing_is_told_where_nothing_has_passed(simulate: Simulate) -> None:
    """A line a message at most, and one in the end."""
    outcome = simulate(SCENARIO | {"fleet": {"edge": {"count": 1, "waiting": "40s"}}, "stop": {"updates": 5}})

    assert outcome.ended.outcome == "completed"
    assert len(told(outcome)) <= 7
    assert told(outcome)[-1][0] > 160.0


def test_a_frozen_server_tells_nothing(simulate: Simulate) -> None:
    """Until it is thawed."""
    outcome = simulate(SCENARIO | {"faults": [{"freeze": "server", "at": "2.5s", "for": "4s"}]})
    times = [t for t, _ in told(outcome)]

    assert [t for t in times if 2.5 < t < 6.5] == []
    assert 6.5 in [pytest.approx(t) for t in times]
    assert len([t for t in times if 6.5 < t < 9.0]) in (2, 3)


def test_a_server_that_comes_back_counts_anew(simulate: Simulate) -> None:
    """Its first life has told all that it had; in its second there is again a line a second."""
    fault = {"restart": "server", "at": "3.5s", "delay": "1s"}
    outcome = simulate(SCENARIO | {"faults": [fault], "checkpoints": {"every": "10 updates"}})
    before = [record for t, record in told(outcome) if t < 4.0]
    after = [record for t, record in told(outcome) if t > 4.5]

    assert len(before) == 4
    assert after[0].egress_payload < before[-1].egress_payload
    for life in (before, after):
        assert [each.egress_payload for each in life] == sorted(each.egress_payload for each in life)


def handed_out(outcome: Any) -> list[tuple[int, int]]:
    """(version, bytes) of each model that workers were sent."""
    sent = outcome.of(records.Sent, "server")
    return [(each.version, each.bytes) for _, each in sent if each.message == "model" and each.to != "evaluator"]


@pytest.mark.parametrize(
    ("method", "together"),
    [("asgd", 1), ({"preset": "adacomp", "compression": {"fraction": 0.1}}, 1), ("sync-sgd", 4), ("fedavg", 4)],
)
def test_what_had_gone_down_for_a_version_are_the_models_before_it(
    simulate: Simulate, method: Any, together: int
) -> None:
    """Of an asynchronous method all with a lower version, of rounds all that these began with, to the byte."""
    outcome = simulate(SCENARIO | {"method": method, "pull": "changed-since", "stop": {"updates": 60}}, trace=True)
    updates = Series.from_journal(outcome.journal).updates
    sent = handed_out(outcome)

    for version, egress in zip(updates.version.tolist(), updates.egress_bytes.tolist(), strict=True):
        before = version - (version - 1) % together - 1
        assert egress == sum(size for of, size in sent if of <= before)


@pytest.mark.parametrize("method", ["asgd", "fedavg"])
def test_tables_and_the_last_point_of_curves_have_all_that_went_down(simulate: Simulate, method: str) -> None:
    """To the byte: with the models that workers are sent when no update will follow."""
    outcome = simulate(SCENARIO | {"method": method, "stop": {"updates": 12}}, trace=True)
    series = Series.from_journal(outcome.journal)
    summary, all_sent = summarise(outcome.plan, series), sum(size for _, size in handed_out(outcome))

    assert all_sent > series.updates.egress_bytes[-1]
    assert summary.server.egress_bytes == series.evaluations.egress_bytes[-1] == all_sent
    assert summary.server.traffic_bytes == series.evaluations.traffic_bytes[-1]


@pytest.mark.parametrize("method", ["asgd", "fedavg"])
def test_bytes_of_a_server_that_died_were_paid_for(simulate: Simulate, method: str) -> None:
    """Its lives add up: what it had handed out after its last update as well."""
    fault = {"restart": "server", "at": "3.5s", "delay": "1s"}
    more = {"method": method, "faults": [fault], "checkpoints": {"every": "10 updates"}}
    outcome = simulate(SCENARIO | more, trace=True)
    series = Series.from_journal(outcome.journal)
    last = int(series.updates.version[-1])
    answers = sum(size for version, size in handed_out(outcome) if version == last)

    assert len(series.server.restored) == 1
    assert np.all(np.diff(series.updates.egress_bytes) >= 0)
    assert series.updates.egress_bytes[-1] == sum(size for _, size in handed_out(outcome)) - answers
    assert series.traffic[-1][1].pull_bytes == series.updates.egress_bytes[-1] + answers
