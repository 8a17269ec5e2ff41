"""Broken messages at every socket of a live run, by somebody who has its secret and by somebody who has not.

A few in the suite, more and others in `scripts/test soak`. The run goes on to its end and learns as ever, its accounts
close, and no node takes more memory.
"""

import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import broken_sender
import psutil
import pytest
import quick_runs
import soaking
from raw_zmtp import closes, frame, greeting, no_mechanism, plain_hello
from staged_trial import StagedTrial
from waiting import until

from edgebed.core import records
from edgebed.journal.journal import Entry, read_journal
from edgebed.roles.events import Woken

MESSAGES = soaking.count(1500, 30_000)
A_SECOND = 100
"""Messages, at least, on any machine."""
WITHOUT_SECRET = 20
"""Connections without the secret to each socket."""
GROWTH_MAX = 20_000_000  # bytes
AT = 500
"""The update at which accuracies are compared."""
CHANCE = 0.02  # of 359 images, see server_killed.py
SCENARIO = """
name: broken
question: Does a run go on whatever it is sent?
task: { data: digits, model: small, batch_size: 10 }
method: asgd
fleet: { edge: { count: 2, waiting: 5ms } }
evaluation: { every: 100 updates }
stop: { time: 10h }
"""


@pytest.mark.slow
@pytest.mark.random
@pytest.mark.timeout(120 + MESSAGES // A_SECOND)
def test_a_run_goes_on_among_broken_messages(tmp_path: Path) -> None:
    """With the secret, and under the names of its nodes; and without it, in the same bytes."""
    stage = StagedTrial(tmp_path, SCENARIO)
    series = stage.run(attack)

    assert series.outcome == "completed"
    assert series.accounting.closes, series.accounting.problems
    assert series.accounting.total.unexplained == 0
    assert {node.state for _, node in series.nodes}.isdisjoint({"died", "unresponsive"})
    entries = list(read_journal(stage.folder.journal))
    assert {r.worker for _, _, r in entries if isinstance(r, records.Update)} == {"edge-0", "edge-1"}
    assert [r for _, _, r in entries if isinstance(r, records.Left)] == []
    dropped = sum(record.count for _, _, record in entries if isinstance(record, records.Dropped))
    assert dropped > MESSAGES / 3
    undisturbed = [accuracy_at(each) for each in living(tmp_path)]
    assert accuracy_at(entries) >= min(undisturbed) - max(max(undisturbed) - min(undisturbed), CHANCE)


def living(folder: Path) -> list[list[Entry]]:
    """What the journals of the same tell, without anybody else, in virtual time, with several seeds."""
    path = folder / "living.yaml"
    path.write_text(SCENARIO)
    found = []
    for seed in (1, 2, 3):
        settings = [f"stop.updates={AT}", f"seed={seed}"]
        run = quick_runs.run(path, set=settings, runtime="simulation", runs_dir=folder / "runs")
        found += [list(trial.events()) for trial in run.trials.values()]
    return found


def accuracy_at(entries: list[Entry]) -> float:
    """That of the first evaluation from this update on."""
    return next(r.measured["accuracy"] for _, _, r in entries if isinstance(r, records.Evaluated) and r.version >= AT)


def attack(stage: StagedTrial) -> None:
    """All of it in the middle of training; then the end of training, once there is an accuracy to compare."""
    try:
        until(lambda: stage.watch.state.updates > 20, "training", every_s=0.02)
        ready = stage.heart.members["server"].ready
        doors = (
            (ready.data_address, "data"),
            (ready.management_address, "data"),
            (stage.launcher.address, "management"),
        )
        pids = dict(stage.launcher.pids)
        send(stage, doors, 300)  # what is made once is there
        before = {name: psutil.Process(pid).memory_info().rss for name, pid in pids.items()}
        send(stage, doors, MESSAGES)
        for address, network in doors:
            come_without_secret(address, network)
        since = stage.watch.state.updates
        until(lambda: stage.watch.state.updates > max(since + 50, AT + 100), "updates")
        assert stage.launcher.pids == pids
        grown = {name: psutil.Process(pid).memory_info().rss - before[name] for name, pid in pids.items()}
        assert max(grown.values()) < GROWTH_MAX, grown
    finally:
        stage.controller.timers.add(0.0, Woken("time"))


def send(stage: StagedTrial, doors: tuple[tuple[str, str], ...], count: int) -> None:
    """Send so many, a third of them to each door, from processes of their own."""
    processes = []
    for seed, (address, network) in enumerate(doors, soaking.SEED):
        words = [sys.executable, broken_sender.__file__, address, network, str(count // len(doors)), str(seed)]
        processes.append(subprocess.Popen(words, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True))
        processes[-1].stdin.write(f"{stage.launcher.secret}\n")
        processes[-1].stdin.flush()
    said = [process.communicate() for process in processes]
    for (_, network), process, (out, err) in zip(doors, processes, said, strict=True):
        assert process.returncode == 0, (network, err)
        answers, took_s = out.split()
        print(f"{network}: {count // len(doors)} messages in {took_s} s, {answers} answers")


def come_without_secret(address: str, network: str) -> None:
    """The same messages behind a handshake that shows nothing, or something else: nobody reads them."""
    for k, frames in enumerate(broken_sender.broken(network, WITHOUT_SECRET, 7)):
        said = b"".join(frame(each, more=True) for each in frames[:-1]) + frame(frames[-1])
        if k % 2:
            assert closes(address, greeting(b"NULL"), no_mechanism(), said)
        else:
            assert closes(address, greeting(b"PLAIN"), plain_hello(b"edgebed", b"guessed"), said)
