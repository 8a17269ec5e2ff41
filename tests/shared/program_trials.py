"""Trials of programs that are small Python texts, in processes as root or in containers, with plans made by hand."""

import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from edgebed.core import records
from edgebed.core.plan import ProgramsPlan
from edgebed.core.planned.link import LinkPlan
from edgebed.core.planned.program import Program, ProgramPlan
from edgebed.core.runtimes import Runtime
from edgebed.journal.journal import JournalWriter, read_journal
from edgebed.journal.run_folder import TrialFolder
from edgebed.roles.programs.controller import ProgramController
from edgebed.runtimes.containers.programs.launcher import ContainedPrograms
from edgebed.runtimes.processes.program_launcher import ProgramLauncher
from edgebed.runtimes.programs.output import KEPT_BYTES
from edgebed.runtimes.programs.shell import ProgramLauncher as Launcher
from edgebed.runtimes.programs.shell import ProgramShell
from edgebed.runtimes.watch import StatusFeed

LINK = LinkPlan(uplink_bit_s=10_000_000, downlink_bit_s=10_000_000)
R = TypeVar("R", bound=records.Record)


def python(text: str) -> tuple[str, ...]:
    """The command that runs a text as a Python program, without a brace that would be a placeholder."""
    return sys.executable, "-c", text.replace("{", "{{").replace("}", "}}")


def nodes(*runs: tuple[str, ...], **of_all: Any) -> tuple[ProgramPlan, ...]:
    """Nodes `home-0`, `home-1`, …, with these commands."""
    common = {"device_class": "home", "seed": 7, "link": LINK, "changeable": True} | of_all
    return tuple(ProgramPlan(node=f"home-{k}", index=k, rank=k, run=run, **common) for k, run in enumerate(runs))


def plan(programs: Sequence[ProgramPlan], *, program: Program = Program(), **settings: Any) -> ProgramsPlan:  # noqa: B008
    """A trial of these programs."""
    return ProgramsPlan(
        scenario="programs", trial="program", question="", seed=7, nodes=tuple(programs), program=program, **settings
    )


class ProgramTrial:
    """A trial that is over: its journal, and what its programs printed."""

    def __init__(self, folder: TrialFolder, plan: ProgramsPlan) -> None:
        self.folder = folder
        self.plan = plan
        self.entries = list(read_journal(folder.journal))

    def all(self, kind: type[R], node: str = "") -> list[R]:
        """Its records of a kind, said by a node or by any."""
        return [record for _, said_by, record in self.entries if isinstance(record, kind) and node in ("", said_by)]

    def exits(self, node: str) -> list[records.Exited]:
        """How the program of a node ended, each time."""
        return [record for record in self.all(records.Exited) if record.name == node]

    def states(self, node: str) -> list[str]:
        """The states of a node."""
        return [record.state for record in self.all(records.Node) if record.name == node]

    @property
    def ended(self) -> records.Ended:
        """How it ended."""
        return self.all(records.Ended)[-1]

    def output(self, node: str) -> str:
        """What a node printed."""
        return self.folder.log(node).read_text()


def run(
    path: Path,
    plan: ProgramsPlan,
    kept_bytes: int = KEPT_BYTES,
    *,
    runtime: Runtime = "process",
    look: Callable[[ProgramShell], None] = lambda _: None,
) -> ProgramTrial:
    """Run a trial to its end. `look` is called once, in a thread, as soon as the trial has begun."""
    folder = TrialFolder(path / "run" / "program")
    folder.logs.mkdir(parents=True)
    heart = ProgramController(plan, runtime)
    watch = StatusFeed(heart, lambda _: None, lambda *_: None)
    with JournalWriter(folder.journal) as journal:
        shell = ProgramShell(heart, _launcher(plan, folder, runtime), journal, watch, None, folder.logs, kept_bytes)
        is_over = threading.Event()
        looking = threading.Thread(target=_look, args=(shell, look, is_over))
        looking.start()
        try:
            shell.run()
        finally:
            is_over.set()
            looking.join()
    return ProgramTrial(folder, plan)


def _look(shell: ProgramShell, look: Callable[[ProgramShell], None], is_over: threading.Event) -> None:
    while not shell.has_begun and not is_over.wait(0.05):
        pass
    if shell.has_begun:
        look(shell)


def _launcher(plan: ProgramsPlan, folder: TrialFolder, runtime: Runtime) -> Launcher:
    if runtime == "docker":
        return ContainedPrograms(plan, f"programs-{os.getpid()}/0001", folder.path)
    return ProgramLauncher(plan, folder.path, folder.logs)
