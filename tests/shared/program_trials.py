"""Trials of programs that are small Python texts, run in processes as root, with plans made by hand."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from edgebed.core import records
from edgebed.core.plan import ProgramsPlan
from edgebed.core.planned.link import LinkPlan
from edgebed.core.planned.program import Program, ProgramPlan
from edgebed.journal.journal import JournalWriter, read_journal
from edgebed.journal.run_folder import TrialFolder
from edgebed.roles.programs.controller import ProgramController
from edgebed.runtimes.processes.program_launcher import ProgramLauncher
from edgebed.runtimes.programs.output import KEPT_BYTES
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


def run(path: Path, plan: ProgramsPlan, kept_bytes: int = KEPT_BYTES) -> ProgramTrial:
    """Run a trial to its end."""
    folder = TrialFolder(path / "run" / "program")
    folder.logs.mkdir(parents=True)
    heart = ProgramController(plan, "process")
    watch = StatusFeed(heart, lambda _: None, lambda *_: None)
    with JournalWriter(folder.journal) as journal:
        launcher = ProgramLauncher(plan, folder.path, folder.logs)
        ProgramShell(heart, launcher, journal, watch, None, folder.logs, kept_bytes).run()
    return ProgramTrial(folder, plan)
