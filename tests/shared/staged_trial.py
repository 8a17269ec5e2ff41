"""A live trial whose controller is in the test's own process, with what it tells nodes in hand."""

import atexit
import functools
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from edgebed.core.package import fingerprint
from edgebed.journal.checkpoints import CheckpointStore
from edgebed.journal.journal import JournalWriter
from edgebed.journal.run_folder import TrialFolder
from edgebed.journal.series import Series
from edgebed.learning.beginning import Beginning
from edgebed.planning.planning import PlannedTraining, plan_trials
from edgebed.roles.control.admission import Admission
from edgebed.roles.control.controller import Controller
from edgebed.runtimes.live.authentication import Credentials
from edgebed.runtimes.live.live_controller import LiveController
from edgebed.runtimes.live.payload import payload_of
from edgebed.runtimes.processes.forking import ForkServer
from edgebed.runtimes.processes.launcher import ProcessLauncher
from edgebed.runtimes.watch import StatusFeed
from edgebed.scenario.load import load_scenario


@functools.cache
def fork_server() -> ForkServer:
    """What forks the nodes of every trial."""
    forker = ForkServer(Path(os.devnull))
    atexit.register(forker.close)
    return forker


class Telling:
    """What a launcher remembers of what it tells nodes."""

    address = secret = ""
    by_environment = False
    """Whether nodes get the secret in their environment."""

    def launch(self, node: str, controller_address: str, secret: str) -> bool:
        """Start a node."""
        self.address, self.secret = controller_address, secret
        return super().launch(node, controller_address, secret)  # type: ignore[misc]

    @property
    def credentials(self) -> Credentials:
        """What a node would show."""
        return Credentials.of(self.secret, self.plan.security)


class TellingLauncher(Telling, ProcessLauncher):
    """Starts processes."""

    @classmethod
    def of(cls, planned: PlannedTraining, folder: TrialFolder) -> "TellingLauncher":
        """The launcher of a trial."""
        return cls(planned.plan, folder.logs, fork_server())


class StagedTrial:
    """The only trial of a scenario, with all that belongs to its controller."""

    def __init__(self, folder: Path, scenario: str, *settings: str, launcher: type[Telling] = TellingLauncher) -> None:
        path = folder / "staged.yaml"
        path.write_text(scenario)
        (self.planned,) = plan_trials(load_scenario(path, settings))
        self.folder = TrialFolder(folder / "trial")
        self.folder.make(self.planned.plan)
        beginning = Beginning(self.planned.plan)
        self.checkpoints = CheckpointStore(self.folder, beginning.theta)
        payload = payload_of(self.planned, self.checkpoints, beginning)
        admission = Admission(self.planned.plan, payload, time.monotonic_ns(), code=fingerprint())
        self.launcher = launcher.of(self.planned, self.folder)
        self.heart = Controller(self.planned.plan, admission, self.launcher.name)

    def run(self, saboteur: Callable[["StagedTrial"], None] | None = None) -> Series:
        """Run to the end; `saboteur` works in a thread of its own meanwhile, and what it raises is raised here."""
        raised: list[BaseException] = []
        self.watch = StatusFeed(self.heart, lambda _: None, lambda *_: None)

        def sabotage() -> None:
            try:
                saboteur(self)
            except BaseException as error:  # noqa: BLE001 - a failed assertion is the test's
                raised.append(error)

        thread = threading.Thread(target=sabotage) if saboteur else None
        with JournalWriter(self.folder.journal) as journal:
            self.controller = LiveController(self.heart, self.launcher, journal, self.checkpoints, self.watch)
            if thread:
                thread.start()
            self.controller.run()
        if thread:
            thread.join()
        for error in raised:
            raise error
        return Series.from_journal(self.folder.journal)
