"""Runs of `edgebed run` in processes of their own, so that several go on side by side and none can hang a test."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import psutil
import pytest
from random_faults import Told
from warm_command import WarmCommand

from edgebed.core import records
from edgebed.emulation.cgroups import PREFIX, mounts
from edgebed.journal.journal import read_journal
from edgebed.journal.run_folder import TrialFolder

DEADLINE_S = 150.0  # of which a run takes a tenth on a machine of its own
MARK = "EDGEBED_TEST_RUN"
"""In the environment of all processes of a run: its folder."""


class LiveRun(NamedTuple):
    """A run that is over."""

    exit_code: int
    trial: TrialFolder
    told: Told


def run_live(
    scenario: dict[str, Any],
    folder: Path,
    *options: str,
    deadline_s: float = DEADLINE_S,
    meanwhile: Callable[[WarmCommand, Path], None] = lambda _, __: None,
) -> LiveRun:
    """Run a scenario of one trial to its end, in a new folder; one that does not end is ended, and has failed.

    Whatever its end, it leaves no process and no cgroup. `meanwhile` is called with the controller and the folder as
    soon as it has begun.
    """
    folder.mkdir(parents=True)
    (folder / "scenario.yaml").write_bytes(msgspec.json.encode(scenario))
    environment = os.environ | {MARK: str(folder)}
    process = WarmCommand("run", "scenario.yaml", "--runs-dir", "runs", *options, cwd=folder, env=environment)
    try:
        meanwhile(process, folder)
        exit_code = process.wait(deadline_s)
    except subprocess.TimeoutExpired:
        _end(process, folder)
        text = process.communicate()[1]
        pytest.fail(f"{folder}: no end after {deadline_s:g} s; the last that it said: {text[-2000:]}")
    _, alive = psutil.wait_procs(_marked(folder), timeout=5)
    assert alive == []
    assert not [path for mount in mounts().values() for path in mount.glob(f"{PREFIX}*_{process.pid}_*")]
    journals = list((folder / "runs").glob("*/0001/*/events.jsonl"))
    assert journals, process.communicate()[1][-2000:]
    trial = TrialFolder(journals[0].parent)
    return LiveRun(exit_code, trial, Told(trial.read_plan(), list(read_journal(trial.journal))))


def pids_when_it_trains(runs: Path, ended: threading.Event) -> dict[str, int]:
    """Wait until the only run there has an update, or a step; return the processes of its nodes but the evaluator's.

    Nothing: it ended before.
    """
    while not ended.wait(0.1):
        for path in runs.glob("*/0001/**/events.jsonl"):
            seen = [record for _, _, record in read_journal(path)]
            if any(isinstance(each, records.Update | records.Step) for each in seen):
                nodes = {each.name: each.pid for each in seen if isinstance(each, records.Node) and each.pid}
                return {name: pid for name, pid in nodes.items() if name != "evaluator"}
    return {}


def updates_in(journal: Path) -> int:
    """Updates that a journal has so far, which need not be there yet."""
    return journal.read_bytes().count(b'"kind":"update"') if journal.exists() else 0


def side_by_side(run: Callable[[int], None], seeds: Iterable[int], at_once: int) -> None:
    """Call `run` with each seed; the failures are told together, each with its seed."""
    with ThreadPoolExecutor(at_once) as threads:
        started = {seed: threads.submit(run, seed) for seed in seeds}
    failures = {seed: error for seed, future in started.items() if (error := future.exception())}
    assert not failures, "; ".join(f"seed {seed}: {error}" for seed, error in failures.items())


def _end(process: WarmCommand, folder: Path) -> None:
    """Ask, then kill it and whatever it has started."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for each in _marked(folder):
        each.kill()


def _marked(folder: Path) -> list[psutil.Process]:
    """The processes of a run."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == str(folder):
                found.append(process)
        except psutil.Error:
            continue
    return found
