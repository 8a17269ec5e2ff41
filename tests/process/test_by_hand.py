"""What a user does to the nodes of a run in progress from another terminal.

Method: a real run; as soon as it trains, `edgebed kill` and the like. The processes, the journal and what the command
says tell what came of it.
"""

import os
from collections.abc import Callable

import psutil
import pytest

from edgebed.core import records
from edgebed.emulation import means
from edgebed.journal.run_folder import RunFolder

SCENARIO = """
name: by-hand
question: Does it do what the user asks for?
task: { data: digits, model: small, batch_size: 10 }
method: adacomp
fleet: { edge: { count: 2, waiting: 10ms }, slow: { count: 1, waiting: 20ms } }
evaluation: { every: 1000 updates }
stop: { updates: 100000 }
checkpoints: { every: 20 updates }
deadlines: { join: 20s, stall: 30s }
"""
Begin = Callable[..., "LiveRun"]  # noqa: F821 # of conftest.py, which is no module to import from


def faults(run) -> list[tuple[str, str]]:
    """What was done by hand: (action, node)."""
    done = [record for record in run.all(records.Fault) if not record.problem and not record.no_op]
    assert {record.name for record in done} <= {"by hand"}
    return [(record.action, record.target) for record in done]


def frozen(process: psutil.Process) -> bool:
    """Whether it stands still."""
    return process.status() == psutil.STATUS_STOPPED


def updates_since_restored(run) -> list[records.Update]:
    """Those that the present server has applied."""
    entries = [record for _, _, record in run.entries()]
    place = max(k for k, record in enumerate(entries) if isinstance(record, records.Restored))
    return [record for record in entries[place:] if isinstance(record, records.Update)]


def pushes_of(run, worker: str, incarnation: int = 1) -> int:
    """How many of its updates have been applied."""
    updates = run.all(records.Update)
    return sum(update.worker == worker and update.incarnation == incarnation for update in updates)


def workers_after_cut(run) -> list[str]:
    """Whose updates have been applied since a link was cut, but for what was on its way: half a second."""
    entries = run.entries()
    (cut_s,) = (time_s for time_s, _, record in entries if isinstance(record, records.Fault) and record.action == "cut")
    return [
        record.worker for time_s, _, record in entries if isinstance(record, records.Update) and time_s > cut_s + 0.5
    ]


def test_nodes_are_killed_frozen_thawed_and_restarted(begin: Begin) -> None:
    """By name, several at once, and by class; each is journaled as what it is."""
    run = begin(SCENARIO, "--emulation", "model").trains()
    code, out, err = run.command("kill", "slow")
    assert (code, err) == (0, "")
    assert out.startswith("killed slow-0 of by-hand/0001 in ")
    run.has(lambda r: isinstance(r, records.Node) and (r.name, r.state) == ("slow-0", "died"), "its end")

    processes = [run.node(f"edge-{k}") for k in range(2)]
    assert run.command("freeze", "edge")[0] == 0
    assert all(map(frozen, processes))
    assert run.command("freeze", "edge-0")[0] == 2
    assert run.command("thaw", "edge-1", "edge-0")[0] == 0
    assert not any(map(frozen, processes))

    assert run.command("restart", "slow-0", "edge-0", "--run", "by-hand")[0] == 0
    for node in ("slow-0", "edge-0"):
        run.has(
            lambda r, node=node: isinstance(r, records.Update) and (r.worker, r.incarnation) == (node, 2),
            f"an update of the new {node}",
        )
    os.kill(run.process.pid, 2)

    assert run.end() == 130
    done = faults(run)
    assert [action for action, node in done if node == "slow-0"] == ["kill", "launch"]
    assert [action for action, node in done if node == "edge-0"] == ["freeze", "thaw", "kill", "launch"]
    assert [action for action, node in done if node == "edge-1"] == ["freeze", "thaw"]
    assert not (run.path / "control.sock").exists()


def test_a_link_is_cut_and_healed_and_changed(begin: Begin) -> None:
    """Who is cut off contributes nothing until it is healed."""
    run = begin(SCENARIO, "--emulation", "model").trains()
    assert run.command("cut", "edge-0")[0] == 0
    run.until(lambda: len(workers_after_cut(run)) >= 100, "updates of the others")
    assert "edge-0" not in workers_after_cut(run)
    assert run.command("heal", "edge-0")[0] == 0
    healed = pushes_of(run, "edge-0")
    run.until(lambda: pushes_of(run, "edge-0") > healed + 10, "its updates")
    assert run.command("link", "set", "edge-0", "--uplink", "1mbit", "--latency", "5ms")[0] == 0
    assert run.command("link", "set", "edge-0", "--as-planned")[0] == 0
    assert run.command("cpus", "edge-1", "0.5")[0] == 0
    assert run.command("cpus", "edge-1", "as-planned")[0] == 0
    os.kill(run.process.pid, 2)

    assert run.end() == 130
    assert faults(run) == [
        ("cut", "edge-0"), ("heal", "edge-0"), ("link", "edge-0"), ("link", "edge-0"), ("cpus", "edge-1"),
        ("cpus", "edge-1"),
    ]  # fmt: skip
    changes = [record.change for record in run.all(records.Fault)]
    assert changes[2:] == ["uplink 1mbit, latency 5ms", "as planned", "0.5", "as planned"]


def test_a_server_that_is_restarted_goes_on_where_it_ended(begin: Begin) -> None:
    """By its log; the workers find it again."""
    run = begin(SCENARIO, "--emulation", "model").trains(100)
    assert run.command("restart", "server")[0] == 0
    run.has(lambda r: isinstance(r, records.Restored), "the new server")
    (restored,) = run.all(records.Restored)
    run.until(lambda: len(updates_since_restored(run)) >= 100, "updates of the new server")
    os.kill(run.process.pid, 2)

    assert run.end() == 130
    assert restored.version >= 100
    assert restored.replayed == restored.version
    assert restored.incarnation == 2
    versions = [update.version for update in updates_since_restored(run)]
    assert versions[:100] == list(range(restored.version + 1, restored.version + 101))


def test_what_cannot_be_done_is_said(begin: Begin) -> None:
    """By the command where it knows, else in the controller's words; the run goes on."""
    run = begin(SCENARIO, "--emulation", "model").trains()
    for words, said in (
        ("thaw edge-0", "error: by-hand/0001: edge-0: it is not frozen\n"),
        ("kill edge-9", "error: no node 'edge-9'; there are server, evaluator, edge-0, edge-1, slow-0; "),
        ("cut evaluator", "error: by-hand/0001: evaluator: it has no link"),
    ):
        left, out, err = run.command(*words.split())
        seen = len(run.all(records.Update))
        run.until(lambda seen=seen: len(run.all(records.Update)) > seen + 20, "more updates")

        assert (left, out) == (2, "")
        assert err.startswith(said)
        assert RunFolder(run.path).is_running()


def test_a_change_that_the_kernel_cannot_make_is_refused_and_the_run_goes_on(begin: Begin) -> None:
    """The link stays as it was."""
    if reason := means.why_no_namespaces():
        pytest.skip(reason)
    if means.mechanisms_of("process").netem:
        pytest.skip("this kernel has netem")
    run = begin(SCENARIO.replace("count: 2,", "count: 2, uplink: 10mbit,"), "--emulation", "kernel").trains()
    for what, said in (("--loss 1%", "packets cannot be lost here"), ("--latency 40ms", "latency cannot be made here")):
        left, _, err = run.command("link", "set", "edge-0", *what.split())
        assert left == 3, "it is the kernel's lack"
        assert f"{said}: this kernel has no netem" in err
    assert run.command("link", "set", "edge-0", "--uplink", "5mbit")[0] == 0
    run.has(lambda r: isinstance(r, records.Link) and r.uplink_held == 5_000_000, "what the kernel holds")
    os.kill(run.process.pid, 2)

    assert run.end() == 130
    assert not any(record.problem for record in run.all(records.Link))
