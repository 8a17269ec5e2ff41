"""What does not end a run under `on_failure: restart`: the deaths of its evaluator, its fork server, its network.

Method: a real run; something that it stands on is killed by SIGKILL while it trains. The journal tells what came of it.
"""

import os
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import psutil
import pytest
from warm_fork_server import called

from edgebed.core import records
from edgebed.emulation import means
from edgebed.journal.series import Series

UPDATES = 600
SCENARIO = f"""
name: deaths
question: What does a run live through?
task: {{ data: digits, model: small, batch_size: 10 }}
method: adacomp
fleet: {{ edge: {{ count: 3, waiting: 20ms }} }}
evaluation: {{ every: 50 updates }}
stop: {{ updates: {UPDATES} }}
deadlines: {{ join: 60s, stall: 30s }}
restart_delay: 200ms
"""
RESTART = "on_failure: restart\n"
LINKED = SCENARIO.replace("waiting: 20ms", "waiting: 20ms, uplink: 20mbit, downlink: 20mbit")
NODES = ("server", "evaluator", "edge-0", "edge-1", "edge-2")
Begin = Callable[..., "LiveRun"]  # noqa: F821 # of conftest.py, which is no module to import from


@pytest.fixture
def rights() -> None:
    """Of root, with which the kernel holds links."""
    if reason := means.why_no_namespaces():
        pytest.skip(f"no namespaces: {reason}; run the tests as root")


def helper(run, module: str) -> psutil.Process:
    """The process of the run's that was started with this module."""
    (found,) = [each for each in psutil.Process(run.process.pid).children() if module in called(each)]
    return found


def lives(run) -> Counter[str]:
    """So many times each node has joined."""
    return Counter(record.name for record in run.all(records.Node) if record.state == "joined")


def died(run, node: str) -> list[str]:
    """Why a node has died, each time."""
    return [record.reason for record in run.all(records.Node) if (record.name, record.state) == (node, "died")]


def is_whole(run) -> None:
    """The run has come to its end; every update is there once, and the accounts close."""
    assert run.end() == 0, run.err
    series = Series.from_journal(run.trial / "events.jsonl")
    versions = [record.version for record in run.all(records.Update)]
    steps = Counter((record.worker, record.incarnation, record.step) for record in run.all(records.Update))
    (final,) = [record for record in run.all(records.Evaluated) if record.final]
    assert series.outcome == "completed"
    assert versions == list(range(1, versions[-1] + 1))
    assert final.version == versions[-1] >= UPDATES
    assert max(steps.values()) == 1
    assert series.accounting.closes, series.accounting.problems


def test_a_killed_evaluator_is_restarted_and_measures_to_the_end(begin: Begin) -> None:
    """What it did not measure while it was away is noted."""
    run = begin(SCENARIO + RESTART, "--emulation", "model").trains(100)
    run.node("evaluator").kill()
    is_whole(run)

    assert died(run, "evaluator") == ["killed by SIGKILL"]
    assert lives(run) == Counter(NODES) + Counter(["evaluator"])
    entries = run.entries()
    (second,) = [k for k, (_, _, r) in enumerate(entries) if isinstance(r, records.Node) and r.name == "evaluator"
                 and (r.state, r.incarnation) == ("joined", 2)]  # fmt: skip
    last = max(r.version for _, _, r in entries[:second] if isinstance(r, records.Evaluated))
    first, *_ = (r.version for _, _, r in entries[second:] if isinstance(r, records.Evaluated))
    notes = [record.text for record in run.all(records.Note) if "the evaluator was away" in record.text]
    assert len(notes) == (len(range(last // 50 * 50 + 50, first, 50)) > 0)


@pytest.mark.slow
@pytest.mark.parametrize("emulation", ["model", "kernel"])
def test_a_killed_fork_server_is_started_anew_with_its_nodes(begin: Begin, rights: None, emulation: str) -> None:
    """Twice; the server goes on from its log, so nothing that was answered is lost."""
    run = begin(LINKED + RESTART, "--emulation", emulation, "--trace")
    for k, updates in enumerate((100, 300), 1):
        run.trains(updates)
        helper(run, "fork_server").kill()
        run.until(lambda k=k: len(run.all(records.Restored)) == k, "a server that goes on")
    is_whole(run)

    restored = [(k, r) for k, (_, _, r) in enumerate(run.entries()) if isinstance(r, records.Restored)]
    for place, record in restored:
        told = [r for _, _, r in run.entries()[:place] if isinstance(r, records.Received) and r.message == "model"]
        assert record.replayed is not None
        assert record.version >= max(r.version for r in told) > 0
    assert lives(run) == Counter(dict.fromkeys(NODES, 3))
    assert all(len(died(run, node)) == 2 for node in NODES)
    assert "the fork server ended: killed by SIGKILL" in died(run, "edge-0")[0]
    assert "Traceback" not in run.err


@pytest.mark.slow
def test_a_killed_switch_is_mended_and_the_nodes_get_new_networks(begin: Begin, rights: None) -> None:
    """Twice; links are held again, with what a fault has changed of them, and the evaluator goes on as it is."""
    fault = "faults: [{ link: edge-1, at_update: 50, uplink: 5mbit }]\n"
    run = begin(LINKED + RESTART + fault, "--emulation", "kernel")
    for k, updates in enumerate((100, 300), 1):
        run.trains(updates)
        helper(run, "emulation.switch").kill()
        run.until(lambda k=k: len(run.all(records.Restored)) == k, "a server that goes on")
    is_whole(run)

    assert lives(run) == Counter(dict.fromkeys(NODES, 3)) - Counter(evaluator=2)
    assert all("the process that holds the namespaces ended" in reason for reason in died(run, "server"))
    links = [record for _, node, record in run.entries() if isinstance(record, records.Link) and node == "edge-1"]
    assert links[-1].mechanism == "tc"
    assert links[-1].uplink_held == 5_000_000
    assert "Traceback" not in run.err


@pytest.mark.slow
def test_a_network_that_cannot_be_mended_ends_the_run(begin: Begin, rights: None) -> None:
    """Its process is killed as soon as there is a new one, until the run says that nothing goes on."""
    run = begin((LINKED + RESTART).replace("stall: 30s", "stall: 4s"), "--emulation", "kernel").trains(50)
    controller = psutil.Process(run.process.pid)
    while run.process.poll() is None:
        with suppress(psutil.Error, ProcessLookupError):
            for each in controller.children():
                if "emulation.switch" in " ".join(each.cmdline()):
                    os.kill(each.pid, signal.SIGKILL)

    assert run.end() == 3
    assert Series.from_journal(run.trial / "events.jsonl").outcome == "failed"
    assert "error: the process that holds the namespaces ended" in run.err
    assert "Traceback" not in run.err


@pytest.mark.parametrize("policy", ["ignore", "stop"])
def test_with_other_policies_a_lost_network_ends_the_run_with_the_reason(
    begin: Begin, rights: None, policy: str
) -> None:
    """No traceback, and nothing is left."""
    run = begin(LINKED + f"on_failure: {policy}\n", "--emulation", "kernel").trains(50)
    helper(run, "emulation.switch").kill()

    assert run.end() == 3
    assert "error: the process that holds the namespaces ended" in run.err
    assert "Traceback" not in run.err
