"""A run in a process of its own, followed by its journal, for tests that do something to it meanwhile."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from warm_command import WarmCommand, warm_fork_servers  # noqa: F401 # the one is a fixture

from edgebed.core import records
from edgebed.journal.journal import Entry, read_journal

DEADLINE_S = 60.0


class LiveRun:
    """`edgebed run` of a scenario of one trial, in a folder of its own."""

    def __init__(self, folder: Path, scenario: str, *options: str) -> None:
        self.runs = folder / "runs"
        self.scenario = folder / "scenario.yaml"
        self.scenario.write_text(scenario)
        self.descendants: list[psutil.Process] = []
        self.process = self.start("run", str(self.scenario), *options)

    def start(self, *words: str) -> WarmCommand:
        """The command `edgebed` with these words, in this run's folder of runs."""
        return WarmCommand(*words, "--runs-dir", str(self.runs))

    def command(self, *words: str) -> tuple[int, str, str]:
        """The same, to its end: (exit code, standard output, standard error)."""
        process = self.start(*words)
        out, err = process.communicate(timeout=DEADLINE_S)
        return process.returncode, out, err

    @property
    def path(self) -> Path:
        """The run's folder."""
        return next(self.runs.glob("*/0001"))

    @property
    def trial(self) -> Path:
        """The folder of its only trial."""
        return next(self.path.glob("*/plan.json")).parent

    def entries(self) -> list[Entry]:
        """What the journal says so far."""
        journals = list(self.runs.glob("*/0001/*/events.jsonl"))
        return list(read_journal(journals[0])) if journals else []

    def all(self, kind: type[records.Record]) -> list[records.Record]:
        """Its records of one kind."""
        return [record for _, _, record in self.entries() if isinstance(record, kind)]

    def states(self, node: str) -> list[str]:
        """Those a node has been in."""
        return [record.state for record in self.all(records.Node) if record.name == node]

    def node(self, name: str) -> psutil.Process:
        """The process that is a node now."""
        joined = [record for record in self.all(records.Node) if record.name == name and record.state == "joined"]
        return psutil.Process(joined[-1].pid)

    def trains(self, updates: int = 20) -> "LiveRun":
        """Wait until so many updates have been applied in all."""
        self.until(
            lambda: self.process.poll() is not None or len(self.all(records.Update)) >= updates, f"{updates} updates"
        )
        assert self.process.poll() is None, self.process.communicate()
        self.descendants = psutil.Process(self.process.pid).children(recursive=True)
        return self

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for something that must come."""
        deadline_s = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline_s, f"{what} has not come within {DEADLINE_S:g} s"
            time.sleep(0.02)

    def has(self, condition: Callable[[records.Record], bool], what: str) -> None:
        """Wait until the journal has such a record."""
        self.until(lambda: any(condition(record) for _, _, record in self.entries()), what)

    def end(self) -> int:
        """Wait for its end, and for that of every process it started; return its exit code."""
        self.out, self.err = self.process.communicate(timeout=DEADLINE_S)
        _, alive = psutil.wait_procs(self.descendants, timeout=10)
        assert alive == []
        return self.process.returncode


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., LiveRun]]:
    """Begins the test's run, from the text of a scenario and options of `edgebed run`."""
    begun: list[LiveRun] = []

    def begin(scenario: str, *options: str) -> LiveRun:
        begun.append(LiveRun(tmp_path, scenario, *options))
        return begun[-1]

    yield begin
    for run in begun:
        run.process.kill()
        run.process.wait()
