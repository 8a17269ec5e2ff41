"""Sweeps whose runs are made at the same time: the same results to the byte, whoever dies meanwhile or interrupts."""

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tiny_sweep import SMALL, write_sweep
from warm_command import WarmCommand

import edgebed
from edgebed.journal.run_folder import RunFolder, runs_of
from edgebed.reports.studies.study import RunOptions

DEADLINE_S = 200.0
TIMED = SMALL.replace("batch_size: 10", "batch_size: 10, gradient_time: 5ms, compression_time: 1ms")
"""With times that nobody measures, so that each sweep plans the same."""
OWN = TIMED.replace("model: small", "model: doomed_net:net")
MODULE = """
import os
import signal
from pathlib import Path

import torch
from torch import nn

calls = 0


class Doomed(nn.Module):
    def forward(self, inputs):
        global calls
        calls += 1
        if calls == 200 and Path("doomed").exists():
            parent = Path("doomed").read_text() == "parent"
            Path("doomed").unlink()
            os.kill(os.getppid() if parent else os.getpid(), signal.SIGKILL)
        return inputs


def net(outputs):
    return nn.Sequential(Doomed(), nn.Flatten(), nn.Linear(64, outputs))
"""
"""A module of one's own. In training it kills its process or that one's parent, once, where a file asks for it."""
FILES = ("events.jsonl", "plan.json", "checkpoints/final.npz")


@pytest.fixture(scope="module")
def shared_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sweep, its module, and the runs of a sweep that were made one after the other."""
    place = tmp_path_factory.mktemp("place")
    write_sweep(place, OWN)
    (place / "doomed_net.py").write_text(MODULE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        swept("one-by-one", "--processes", "1")
    return place


@pytest.fixture
def place(shared_place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same folder as the current one."""
    monkeypatch.chdir(shared_place)
    return shared_place


@pytest.fixture
def scheduler(place: Path) -> Iterator[str]:
    """The address of a scheduler of dask with two workers that nobody starts anew."""
    pytest.importorskip("distributed", reason="no distributed: pip install 'edgebed[dask]'")
    options = ("--no-dashboard", "--scheduler-file", "scheduler.json")
    worker = ("worker", *options, "--nthreads", "1", "--no-nanny", "--local-directory", str(place))
    with contextlib.ExitStack() as processes:
        for words in (("scheduler", *options, "--host", "127.0.0.1", "--port", "0"), worker, worker):
            process = processes.enter_context(
                subprocess.Popen([sys.executable, "-m", "dask", *words], stderr=subprocess.DEVNULL)
            )
            processes.callback(process.kill)
        file = Path("scheduler.json")
        until(lambda: file.exists() and file.read_text())  # it is there before its text is
        yield json.loads(file.read_text())["address"]


def until(is_so, process: WarmCommand | None = None) -> None:
    """Wait, for as long as the process runs."""
    latest_s = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < latest_s
        assert process is None or process.poll() is None, process.communicate()[1]
        time.sleep(0.02)


def folders(root: str) -> list[RunFolder]:
    """The runs there are."""
    return runs_of(Path(root), "tiny-sweep")


def exit_codes(root: str) -> list[int]:
    """Those of the runs there are."""
    return [json.loads(run.summary.read_bytes())["exit_code"] for run in folders(root)]


def results(root: str) -> dict[tuple[str, ...], list[bytes]]:
    """What the completed runs of a sweep have left, by the options of each, and what its page is made from."""
    found = {}
    for run in folders(root):
        manifest = run.read_manifest()
        if run.summary.exists():
            trial = run.path / manifest["trials"][0]
            found[*manifest["trials"], *manifest["sets"]] = [(trial / file).read_bytes() for file in FILES]
    lines = [json.loads(line) for line in Path(root, "sweeps/tiny-sweep/runs.jsonl").read_text().splitlines()]
    page = [json.dumps(line | {"run": line["run"]["seed"]}).encode() for line in lines]  # without when and how fast
    assert len(found) == len(page) == 4
    return found | {("page",): page}


def swept(root: str, *words: str) -> str:
    """Sweep by a command that ends well; what it said."""
    command = WarmCommand("sweep", "tiny.yaml", "--runs-dir", root, *words)
    assert command.wait(DEADLINE_S) == 0, command.output
    return command.output[1]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_two_at_a_time_give_the_same_bytes_though_a_process_is_killed(place: Path) -> None:
    """Its run is made once more; the other goes on, and the progress is that of all."""
    Path("doomed").write_text("process")
    said = swept("at-once", "--jobs", "2")

    assert results("at-once") == results("one-by-one")
    assert "ended: killed by SIGKILL; it is run once more" in said
    assert said.count("it is run once more") == 1
    assert "4 runs in virtual time: several at once" in said
    assert "[4/4] " in said
    assert said.count("; about ") == 3
    assert len(folders("at-once")) == 4 + 1
    assert list(Path("at-once").glob(".study-*")) == []


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_workers_of_dask_give_the_same_bytes_though_one_is_killed(place: Path, scheduler: str) -> None:
    """Its run is made on the other; results go on as ever: nothing is run again."""
    Path("doomed").write_text("parent")
    said = swept("dask", "--dask", scheduler)

    assert results("dask") == results("one-by-one")
    assert f"{scheduler}: " in said
    assert len(folders("dask")) == 4 + 1
    assert "4 of 4 runs are there already" in swept("dask", "--dask", scheduler, "--resume")
    assert len(folders("dask")) == 4 + 1


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_an_interruption_ends_all_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has completed is kept, and counts when the sweep is resumed; none is left in progress."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EDGEBED_RUNS_DIR", raising=False)
    write_sweep(tmp_path, TIMED.replace("16mbit,", "16mbit, 4mbit,").replace("accuracy: 0.6", "accuracy: 0.99"))
    sweep = WarmCommand("sweep", "tiny.yaml", "--jobs", "2", "--set", "stop.updates=120")
    until(lambda: len(folders("runs")) > 2, sweep)
    sweep.send_signal(signal.SIGINT)
    assert sweep.wait(DEADLINE_S) == 130, sweep.output
    assert "interrupted; to resume: edgebed sweep tiny.yaml --jobs 2 --set stop.updates=120 --resume" in sweep.output[1]
    codes = exit_codes("runs")
    assert 0 in codes
    assert set(codes) <= {0, 130, 3}  # 3 where the trial had not begun
    assert len(codes) < 6
    assert list(Path("runs").glob(".study-*")) == []

    with ThreadPoolExecutor(1) as executor:
        study = edgebed.sweep(
            "tiny.yaml", set=["stop.updates=120"], executor=executor, run_options=RunOptions(resume=True)
        )
    assert study.problems == ()
    assert exit_codes("runs").count(0) == 6
