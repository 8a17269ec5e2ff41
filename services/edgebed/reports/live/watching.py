"""Shows a run that is in progress in another process or container, as its controller would: from its journals.

    plan.json, events.jsonl --> TrialState --> TrialStatus --> ProgressDisplay

The run is not affected. It has ended when no process works on it any more, for whatever reason.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from edgebed.core.plan import TrainingPlan
from edgebed.core.runtimes import is_virtual
from edgebed.journal.following import GrowingFile, Pause, looks, trial_names
from edgebed.journal.journal import decode_line, not_a_line
from edgebed.journal.run_folder import RunFolder, TrialFolder
from edgebed.journal.trial_state import TrialState, TrialStatus
from edgebed.reports.live.progress import ProgressDisplay
from edgebed.running.results import Trial

LOOK_EVERY_S = 0.25
RESULTS_S_MAX = 20.0  # charts and report of a long run, on a busy machine


class WatchedTrial:
    """One trial, followed by its journal."""

    def __init__(self, folder: TrialFolder, *, is_simulated: bool, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` is for rates, and for the trial's time since its last record; virtual time stands still."""
        self.folder = folder
        self.plan = folder.read_any_plan()
        self.state = TrialState(self.plan)
        self._file = GrowingFile(folder.journal)
        self._count = 0
        self._is_simulated = is_simulated
        self._clock = clock
        self._heard_at_s = clock()

    def look(self) -> TrialStatus:
        """The trial's state now; EdgebedError where the journal cannot be read."""
        last_t = self.state.last_t
        for line in self._file.new_lines(whole_only=True):
            self._count += 1
            try:
                self.state.add(*decode_line(line))
            except msgspec.DecodeError as error:
                raise not_a_line(self.folder.journal, self._count, error) from error
        now_s = self._clock()
        if self.state.last_t > last_t:
            self._heard_at_s = now_s
        silent_s = 0.0 if self._is_simulated or self.state.ended else now_s - self._heard_at_s
        return self.state.status(self.state.last_t + silent_s, now_s)

    @property
    def is_complete(self) -> bool:
        """Whether the trial is over for good: one that broke off may be resumed."""
        return self.state.ended is not None and self.state.ended.outcome == "completed"


def watch_run(folder: RunFolder, progress: ProgressDisplay, pause: Pause = time.sleep) -> None:
    """Show a run until no process works on it any more, and wait for its results if they are about to be written."""
    shown: WatchedTrial | None = None
    over: list[WatchedTrial] = []
    for is_last in looks(folder, pause=pause, every_s=LOOK_EVERY_S):
        for each in folder.trials()[len(over) :]:
            is_new = shown is None
            if shown is None:
                shown = WatchedTrial(each, is_simulated=is_virtual(folder.read_manifest().get("runtime")))
                progress.trial_started(shown.plan)
            status = shown.look()
            if not is_new:  # a rate takes two looks
                progress.update(status)
            if not is_last and not shown.is_complete:
                break
            if isinstance(shown.plan, TrainingPlan):
                progress.trial_ended(Trial(each).summary)
            over.append(shown)
            shown = None
    if _has_ended(folder, over):
        _await(folder.report, pause)


def _has_ended(folder: RunFolder, over: Sequence[WatchedTrial]) -> bool:
    """Whether the process that worked on the run ended by itself, so that results follow; a killed one writes none."""
    if not over or not over[-1].state.ended:
        return False
    return not over[-1].is_complete or len(over) == len(trial_names(folder))


def _await(path: Path, pause: Pause) -> None:
    for _ in range(round(RESULTS_S_MAX / LOOK_EVERY_S)):
        if path.exists():
            return
        pause(LOOK_EVERY_S)
