"""Links in virtual time: what arithmetic says an update takes, it takes, to the microsecond."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from quick_runs import run as run_quickly

from edgebed.core import records
from edgebed.core.framing import ACK_BYTES_A_SEGMENT, num_segments, wire_bytes
from edgebed.journal.journal import journal_hash
from edgebed.running.results import Trial

SCENARIO = {
    "name": "links",
    "question": "How long does an update take?",
    "seed": 5,
    "task": {"data": "digits", "model": "small", "batch_size": 10, "gradient_time": "1ms"},
    "method": "asgd",
    "fleet": {"edge": {"count": 1, "waiting": "50ms", "uplink": "1mbit", "downlink": "10mbit", "latency": "20ms"}},
    "evaluation": {"every": "50 updates"},
    "stop": {"updates": 50},
}


def run(folder: Path, *overrides: str, trace: bool = False) -> Trial:
    """The scenario's only trial."""
    run = run_quickly(SCENARIO, runtime="simulation", set=overrides, trace=trace, runs_dir=folder)
    (trial,) = run.trials.values()

    assert trial.summary.outcome == "completed"
    return trial


def times_of_updates(trial: Trial) -> np.ndarray:
    """When each was applied."""
    return np.array([t for t, _, record in trial.events() if isinstance(record, records.Update)])


def events_of(trial: Trial, node: str, kind: type) -> list[tuple[float, Any]]:
    """The records of that kind that a node wrote."""
    return [(t, record) for t, name, record in trial.events() if name == node and isinstance(record, kind)]


def test_an_update_takes_its_work_its_waiting_and_its_way_there_and_back(tmp_path: Path) -> None:
    """A millisecond of gradient, 50 of waiting, latency twice, the model at 10 mbit, the push at 1 mbit.

    Between two messages of one direction its bucket fills again, so that 1,600 bytes of each pass at once.
    """
    trial = run(tmp_path, trace=True)
    pushes = [record.bytes for _, record in events_of(trial, "edge-0", records.Sent) if record.message == "push"]
    models = [record.bytes for _, record in events_of(trial, "edge-0", records.Received) if record.message == "model"]
    took_s = np.diff(times_of_updates(trial))

    assert set(models) == {models[0]}
    for push, found_s in zip(pushes[1:], took_s, strict=False):
        pull_s = (wire_bytes(models[0]) - 1600) * 8 / 10e6
        push_s = (wire_bytes(push) - 1600) * 8 / 1e6
        assert found_s == pytest.approx(pull_s + 0.02 + 0.001 + 0.05 + 0.02 + push_s, abs=3e-6)


def test_acknowledgements_of_the_model_are_in_the_way_of_a_push_that_follows_at_once(tmp_path: Path) -> None:
    """Without waiting and latency, and down so fast that they are the limit: up carries nothing else, all the time."""
    settings = (
        "fleet.edge.waiting=0s",
        "fleet.edge.latency=0s",
        "fleet.edge.downlink=100mbit",
        "task.gradient_time=1us",
    )
    trial = run(tmp_path, *settings, trace=True)
    pushes = [record.bytes for _, record in events_of(trial, "edge-0", records.Sent) if record.message == "push"]
    (model, *_) = [
        record.bytes for _, record in events_of(trial, "edge-0", records.Received) if record.message == "model"
    ]
    took_s = np.diff(times_of_updates(trial))

    for push, found_s in zip(pushes[1:], took_s, strict=False):
        acknowledgements = ACK_BYTES_A_SEGMENT * num_segments(model)
        assert found_s >= (wire_bytes(push) + acknowledgements - 1600) * 8 / 1e6 - 3e-6


def test_messages_tell_when_their_first_byte_left(tmp_path: Path) -> None:
    """After the sender's latency, and before its uplink: what is left of the way is what the bytes take."""
    trial = run(tmp_path, trace=True)
    came = [(t, record) for t, record in events_of(trial, "server", records.Received) if record.message == "push"]

    assert len(came) == 50
    for t, push in came:
        assert t - push.sent_s == pytest.approx((wire_bytes(push.bytes) - 1600) * 8 / 1e6, abs=3e-6)


def test_a_link_that_changes_changes_the_time_of_an_update(tmp_path: Path) -> None:
    """Ten times the uplink from a second on, counted from the beginning of training."""
    steps = json.dumps([{"at": "1s", "uplink": "10mbit"}])
    took_s = np.diff(times_of_updates(run(tmp_path, f"fleet.edge.link_steps={steps}")))
    before = np.diff(times_of_updates(run(tmp_path)))

    assert took_s[0] == pytest.approx(before[0])
    assert took_s[-1] < before[-1] / 1.5


def test_a_shaped_run_repeats_to_the_byte(tmp_path: Path) -> None:
    """Jitter, several workers, a server with a link of its own, one process or two."""
    settings = (
        "fleet.edge.count=5", "fleet.edge.jitter=15ms", "server.uplink=20mbit", "server.downlink=5mbit",
        "fleet.edge.waiting.exponential=20ms", "stop.updates=200",
    )  # fmt: skip
    hashes = []
    for processes in (1, 2, 1):
        run = run_quickly(SCENARIO, runtime="simulation", set=settings, processes=processes, runs_dir=tmp_path)
        (trial,) = run.trials.values()
        assert trial.summary.outcome == "completed"
        hashes.append(journal_hash(trial.folder.journal))

    assert len(set(hashes)) == 1


def test_the_evaluator_is_not_held_by_the_servers_link(tmp_path: Path) -> None:
    """Watching uses a network of its own: the model that is measured leaves in the instant it is reached."""
    settings = ("server.uplink=100kbit", "server.latency=100ms", "stop.updates=3", "evaluation.every=1 updates")
    trial = run(tmp_path, *settings)
    at = dict(zip((1, 2, 3), times_of_updates(trial), strict=True))

    for t, record in events_of(trial, "evaluator", records.Evaluated):
        if record.version:
            assert t == at[record.version]


def test_the_first_model_takes_no_longer_than_later_ones(tmp_path: Path) -> None:
    """It leaves at 0, when training begins, and passes both links at a time."""
    settings = ("server.uplink=10mbit", "fleet.edge={latency: 0s, uplink: null}", "stop.updates=3")
    trial = run(tmp_path, *settings, trace=True)
    received = events_of(trial, "edge-0", records.Received)
    took_s = [t - record.sent_s for t, record in received if record.message == "model"]

    assert received[0][1].sent_s == 0.0
    assert took_s[1:] == pytest.approx(took_s[:1] * len(took_s[1:]), rel=0.05)


def test_between_two_no_more_passes_than_asked_and_the_other_has_its_whole_link(tmp_path: Path) -> None:
    """Each way what the bytes take at that rate, in the next life, too; before and after it as fast as the links are.

    Within what some bytes take: the numbers in messages get longer.
    """
    settings = ("fleet.edge.count=2", "fleet.edge.latency=0s", "fleet.edge.uplink=10mbit", "stop.updates=400")
    faults = [
        {"link": {"between": ["edge-0", "server"]}, "rate": "500kbit", "at": "1s", "for": "10s"},
        {"restart": "edge-0", "at": "5s"},
    ]
    run = run_quickly(SCENARIO | {"faults": faults}, runtime="simulation", set=settings, trace=True, runs_dir=tmp_path)
    (trial,) = run.trials.values()
    (push, *_) = [record.bytes for _, record in events_of(trial, "edge-0", records.Sent) if record.message == "push"]
    (model, *_) = [each.bytes for _, each in events_of(trial, "edge-0", records.Received) if each.message == "model"]
    applied = [(t, record.worker) for t, _, record in trial.events() if isinstance(record, records.Update)]

    def takes_s(rate_bit_s: float) -> float:
        return sum(wire_bytes(size) - 1600 for size in (push, model)) * 8 / rate_bit_s + 0.051

    def span_s(worker: str, since_s: float, until_s: float) -> tuple[float, float]:
        times = [t for t, each in applied if each == worker and since_s < t < until_s]
        return min(np.diff(times)), max(np.diff(times))

    for since_s, until_s in ((2.0, 5.0), (8.0, 11.0)):
        assert span_s("edge-0", since_s, until_s) == pytest.approx((takes_s(500e3),) * 2, abs=1e-4)
    assert span_s("edge-0", 0.0, 1.0) == pytest.approx((takes_s(10e6),) * 2, abs=1e-4)
    assert span_s("edge-0", 12.5, 15.0) == pytest.approx((takes_s(10e6),) * 2, abs=1e-4)
    assert span_s("edge-1", 0.0, 15.0) == pytest.approx((takes_s(10e6),) * 2, abs=1e-4)
