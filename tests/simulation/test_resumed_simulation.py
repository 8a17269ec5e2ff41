"""Going on with a simulation that was killed: in virtual time the trial's clock has not even stood still."""

import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from quick_runs import run as run_quickly
from warm_command import WarmCommand

import edgebed
from edgebed.core import records
from edgebed.core.errors import ScenarioError
from edgebed.journal.journal import journal_hash, read_journal
from edgebed.journal.run_folder import RunFolder
from edgebed.running.results import Run

UPDATES = 900
EVERY = 50
SCENARIO = f"""
name: resumed
question: Is it one run?
task: {{ data: digits, model: small, batch_size: 10 }}
fleet: {{ edge: {{ count: 6, waiting: {{ exponential: 20ms }} }} }}
evaluation: {{ every: 100 updates }}
checkpoints: {{ every: {EVERY} updates }}
stop: {{ updates: {UPDATES} }}
faults:
  - {{ restart: edge-0, at: 200ms, delay: 100ms }}
  - {{ freeze: edge-1, at_update: 150, for: 50ms }}
  - {{ cut: edge-2, at_update: 100, for: 1h }}
variants:
  asgd: {{ method: asgd, stop: {{ updates: 100 }}, faults: [] }}
  adacomp: {{ method: adacomp }}
  comp-asgd: {{ method: comp-asgd, stop: {{ updates: 100 }}, faults: [] }}
"""
DEADLINE_S = 60.0
WORKERS = tuple(f"edge-{k}" for k in range(6))


def applied(journal: Path) -> int:
    """Updates in the journal so far."""
    return sum(isinstance(r, records.Update) for _, _, r in read_journal(journal)) if journal.exists() else 0


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs whose only one was killed in its second trial."""
    folder = tmp_path_factory.mktemp("killed")
    scenario, runs = folder / "scenario.yaml", folder / "runs"
    scenario.write_text(SCENARIO)
    process = WarmCommand("run", str(scenario), "--runtime", "simulation", "--processes", "1", "--runs-dir", str(runs))
    deadline_s = time.monotonic() + DEADLINE_S
    while applied(runs / "resumed/0001/adacomp/events.jsonl") < 300:
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return runs


@pytest.fixture
def runs_again(broken: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Makes a copy of it that a test may go on with."""

    def copy(name: str) -> Path:
        return Path(shutil.copytree(broken, tmp_path / name, symlinks=True))

    return copy


@pytest.fixture(scope="module")
def gone_on(broken: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The run of a copy of it, to its end; no test writes to it."""
    runs = shutil.copytree(broken, tmp_path_factory.mktemp("gone-on") / "runs", symlinks=True)
    return edgebed.resume("resumed", runs_dir=runs, processes=1)


def test_a_trial_that_lost_updates_at_its_resume_is_degraded(gone_on: Run) -> None:
    """Times and bytes have what was made twice; how much that is depends on when it was killed."""
    trial = gone_on.trials["adacomp"]
    fidelity, remade = trial.summary.fidelity, trial.series.server.remade_updates
    assert fidelity is not None
    told = [text for text in (*fidelity.reasons, *fidelity.remarks) if text.startswith("resumed: ")]

    assert 0 <= remade < EVERY + 7
    assert [text.startswith(f"resumed: {remade} update") for text in told] == [True] * bool(remade)
    assert ("resumed" in fidelity.causes) is (remade > 0.02 * UPDATES)


def test_a_trial_that_was_resumed_says_that_it_is_another_than_its_seed_says(gone_on: Run) -> None:
    """Wherever its figures are shown; the others of its run are what they would have been."""
    said = {
        name: [each for each in trial.summary.warnings if "resumed" in each] for name, trial in gone_on.trials.items()
    }

    assert (said["asgd"], said["comp-asgd"]) == ([], [])
    (text,) = said["adacomp"]
    assert text.startswith("it was resumed at ")
    assert text.endswith(
        "nodes started anew, and draw other random numbers than in an uninterrupted trial of this seed"
    )


def test_a_killed_simulation_goes_on_to_its_end(broken: Path, gone_on: Run) -> None:
    """What had completed is kept, what had not begun follows, and what was under way is one trial."""
    run, folder = gone_on, gone_on.folder
    kept = journal_hash(RunFolder.find(broken, "resumed").trial("asgd").journal)

    assert run.exit_code == 0
    assert {name: trial.summary.outcome for name, trial in run.trials.items()} == dict.fromkeys(
        ("asgd", "adacomp", "comp-asgd"), "completed"
    )
    assert journal_hash(folder.trial("asgd").journal) == kept
    entries = list(run.trials["adacomp"].events())
    (place,) = [k for k, (_, _, record) in enumerate(entries) if isinstance(record, records.Restored)]
    restored = entries[place][2]
    times = [t for t, _, _ in entries]
    assert times == sorted(times)
    assert restored.incarnation == 2
    assert restored.version % EVERY == 0
    assert restored.version >= 250
    versions = [record.version for _, _, record in entries[place:] if isinstance(record, records.Update)]
    assert versions == list(range(restored.version + 1, UPDATES + 1))
    joined = {r.name: r.incarnation for _, _, r in entries if isinstance(r, records.Node) and r.state == "joined"}
    assert joined == {"server": 2, "evaluator": 2, "edge-0": 3} | dict.fromkeys(WORKERS[1:], 2)
    with pytest.raises(ScenarioError, match="run resumed/0001 is complete"):
        edgebed.resume(folder.path)


def test_faults_that_have_been_are_not_done_again(gone_on: Run) -> None:
    """Neither those by time nor those by update, although the checkpoint may be older."""
    faults = [r.action for _, _, r in gone_on.trials["adacomp"].events() if isinstance(r, records.Fault)]

    assert sorted(faults) == ["cut", "freeze", "kill", "launch", "thaw"]


def test_a_worker_that_is_cut_off_still_is(gone_on: Run) -> None:
    """It is there in a new life, and contributes nothing until it is healed."""
    trial = gone_on.trials["adacomp"]
    entries = list(trial.events())
    (place,) = [k for k, (_, _, record) in enumerate(entries) if isinstance(record, records.Restored)]
    workers = {record.worker for _, _, record in entries[place:] if isinstance(record, records.Update)}

    assert workers == set(WORKERS) - {"edge-2"}
    assert trial.summary.accounting.closes


def test_the_same_past_has_the_same_future(gone_on: Run, runs_again: Callable[[str], Path]) -> None:
    """However many processes compute it."""
    hashes = {journal_hash(gone_on.trials["adacomp"].folder.journal)}
    for name, processes in (("again", 1), ("two", 2)):
        run = edgebed.resume("resumed", runs_dir=runs_again(name), processes=processes)
        hashes.add(journal_hash(run.trials["adacomp"].folder.journal))

    assert len(hashes) == 1


def test_a_trial_that_had_not_begun_to_train_is_begun_anew(runs_again: Callable[[str], Path]) -> None:
    """There is nothing to go on from, and its journal says nothing else."""
    runs = runs_again("early")
    trial = RunFolder.find(runs, "resumed").trial("adacomp")
    journal = trial.journal
    trial.latest_checkpoint.unlink()  # as it has none before its first update
    lines = journal.read_bytes().splitlines(keepends=True)
    before = next(k for k, line in enumerate(lines) if b'"kind":"trial"' in line)
    journal.write_bytes(b"".join(lines[: before - 1]))
    run = edgebed.resume("resumed", runs_dir=runs, processes=1)
    entries = list(run.trials["adacomp"].events())

    assert not any(isinstance(record, records.Restored) for _, _, record in entries)
    assert [r.version for _, _, r in entries if isinstance(r, records.Update)] == list(range(1, UPDATES + 1))
    assert {r.incarnation for _, _, r in entries if isinstance(r, records.Node) and r.name == "server"} == {0, 1}


def test_a_run_that_was_killed_before_its_results_were_written_gets_them(tmp_path: Path) -> None:
    """Its trials are over, so that nothing is run; then there is nothing left to resume."""
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(SCENARIO)
    run = run_quickly(scenario, runtime="simulation", variants=["asgd"], runs_dir=tmp_path)
    summary = run.folder.summary.read_bytes()
    run.folder.summary.unlink()
    journal = journal_hash(run.folder.trial("asgd").journal)

    resumed = edgebed.resume(run.path)

    assert resumed.folder.summary.read_bytes() == summary
    assert journal_hash(run.folder.trial("asgd").journal) == journal
    with pytest.raises(ScenarioError, match="is complete: there is nothing to resume"):
        edgebed.resume(run.path)
