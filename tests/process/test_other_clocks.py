"""Nodes whose monotonic clocks are a thousand seconds apart, in time namespaces: nothing of a run shows it."""

import itertools
import math
import time
from pathlib import Path

import pytest
from other_clocks import set_ahead, why_not
from quick_runs import run as run_quickly
from shuffled import check_shuffled

from edgebed.core import records
from edgebed.journal.journal import Entry, read_journal
from edgebed.journal.series import Series
from edgebed.journal.verdict.fidelity import Fidelity, judge

pytestmark = [pytest.mark.slow, pytest.mark.timed]

OFFSET_S = 1000
LOOSE_S = 0.02
STEP_S = 3.0
"""When the link of edge-0 is made slower."""
SCENARIO = {
    "name": "other-clocks",
    "question": "Does a run notice that its hosts were started at other times?",
    "seed": 3,
    "task": {"data": "digits", "model": "small", "batch_size": 10},
    "method": "asgd",
    "fleet": {
        "edge": {
            "count": 2, "uplink": "2mbit", "downlink": "20mbit", "latency": "10ms",
            "waiting": "50ms",
            "link_steps": [{"at": f"{STEP_S:g}s", "uplink": "300kbit"}],  # with less, TCP sends again what is under way
        },
    },
    "evaluation": {"every": "1h"},
    "stop": {"time": "8s"},
}  # fmt: skip


@pytest.fixture(autouse=True)
def rights() -> None:
    """Of root, who alone makes time namespaces."""
    if reason := why_not():
        pytest.skip(f"no time namespaces: {reason}")


def ran(folder: Path, scenario: dict[str, object], emulation: str) -> tuple[list[Entry], Series, Fidelity]:
    """The journal of a run's only trial, its series and the verdict."""
    run = run_quickly(scenario, emulation=emulation, trace=True, runs_dir=folder)
    assert run.exit_code == 0
    (trial,) = run.trials.values()
    series = Series.from_journal(trial.folder.journal)
    fidelity = judge(trial.folder.read_plan(), series)
    assert fidelity
    return list(read_journal(trial.folder.journal)), series, fidelity


def of(entries: list[Entry], kind: type, node: str) -> list[tuple[float, records.Record]]:
    """A node's records of a kind."""
    return [(t, record) for t, who, record in entries if isinstance(record, kind) and who == node]


def check(entries: list[Entry], series: Series, fidelity: Fidelity, ahead_s: dict[str, int]) -> None:
    """What must hold of a run in which these nodes' clocks are so far ahead."""
    assert series.accounting
    assert series.accounting.closes, series.accounting.problems
    check_shuffled(entries, 1)
    assert {node for _, node, record in entries if isinstance(record, records.Clock)} == ahead_s.keys()
    for node, seconds in ahead_s.items():
        for _, told in of(entries, records.Clock, node):
            assert abs(told.offset_s + seconds) <= told.error_s, "the truth lies within the error that is stated"
            assert abs(told.offset_s + seconds) < LOOSE_S
    for node in ahead_s:
        own = [t for t, who, _ in entries if who == node]
        assert own == sorted(own)
        assert 0.0 <= own[0] <= own[-1] <= entries[-1][0] + LOOSE_S
    assert not [cause for cause in fidelity.causes if cause in ("link", "clock")], fidelity.lines
    ways = [way for row in fidelity.nodes for way in (row.uplink, row.downlink) if way.messages]
    assert {way.direction for way in ways} == {"up", "down"}
    for way in ways:
        assert way.impossible == 0
        assert way.time_s / way.messages >= 0.010 - LOOSE_S
        assert way.error_s / way.messages < LOOSE_S


def slower_s(entries: list[Entry], series: Series, worker: str) -> float:
    """When the last push of a worker came that took no longer than the first ones, in seconds since training began."""
    took = [
        (t - series.training_s, t - record.sent_s)
        for t, record in of(entries, records.Received, "server")
        if record.sender == worker and record.message == "push" and record.sent_s >= 0.0
    ]
    quick_s = min(seconds for _, seconds in took)
    return max(t for t, seconds in took if seconds < 4.0 * quick_s + LOOSE_S)


@pytest.mark.parametrize(
    ("emulation", "whose"),
    [pytest.param("kernel", "edge-0", marks=pytest.mark.soak), ("kernel", "server"), ("model", "server")],
)
def test_a_clock_of_another_host_changes_nothing(tmp_path, monkeypatch, emulation, whose):
    """A worker is ahead, or the server behind; links step at the right moment, messages take what they are asked to."""
    seconds = OFFSET_S if whose == "edge-0" else -min(OFFSET_S, math.floor(time.monotonic() / 2))
    set_ahead(monkeypatch, {whose: seconds})
    entries, series, fidelity = ran(tmp_path, SCENARIO, emulation)

    check(entries, series, fidelity, {whose: seconds})
    for worker in ("edge-0", "edge-1"):
        assert slower_s(entries, series, worker) == pytest.approx(STEP_S, abs=1.0)


def test_lives_and_losses_are_accounted_for_with_any_clocks(tmp_path, monkeypatch):
    """A worker that is killed, one that is cut off and a server that is killed, each on a host of its own."""
    ahead_s = {"edge-0": OFFSET_S, "edge-1": 2 * OFFSET_S, "server": 3 * OFFSET_S}
    set_ahead(monkeypatch, ahead_s)
    faults = [
        {"restart": "edge-0", "at": "2s", "delay": "1s"},
        {"cut": "edge-1", "at": "3s", "for": "2s"},
        {"restart": "server", "at": "6s", "delay": "1s"},
    ]
    entries, series, fidelity = ran(tmp_path, SCENARIO | {"faults": faults, "stop": {"time": "11s"}}, "kernel")

    check(entries, series, fidelity, ahead_s)
    done = sorted((fault.record.action, fault.record.target) for fault in series.faults if fault.was_done)
    assert done == [
        ("cut", "edge-1"), ("heal", "edge-1"), ("kill", "edge-0"), ("kill", "server"), ("launch", "edge-0"),
        ("launch", "server"),
    ]  # fmt: skip
    for fault in series.faults:
        assert fault.record.problem == ""


def test_nodes_on_the_controllers_own_host_are_not_asked_for_the_time(tmp_path):
    """Their clock is the controller's: nothing is measured, nothing is written, nothing is corrected."""
    entries, _, fidelity = ran(tmp_path, SCENARIO | {"stop": {"updates": 20}}, "model")

    assert not [record for _, _, record in entries if isinstance(record, records.Clock)]
    assert all(way.error_s == 0.0 for row in fidelity.nodes for way in (row.uplink, row.downlink))


def test_a_wall_clock_that_is_set_changes_nothing(tmp_path, monkeypatch):
    """The controller's jumps by an hour whenever it is read, there and back: the run is as long as it is."""
    jumps_s = itertools.cycle((3600.0, -3600.0))
    wall_s = time.time
    monkeypatch.setattr(time, "time", lambda: wall_s() + next(jumps_s))
    began_s = time.monotonic()
    entries, series, _ = ran(tmp_path, SCENARIO | {"stop": {"updates": 20}}, "model")

    assert series.accounting
    assert series.accounting.closes
    assert 0.0 <= entries[0][0] <= entries[-1][0] <= time.monotonic() - began_s
