"""Shows a run that goes on elsewhere, in another process or container, as its controller would: from its journals.

    plan.json, events.jsonl --> Standing --> Status --> Progress

The run does not notice. It has ended when nobody works on it any more, however that came.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from edgebed.observe.following import GrowingFile, Pause, looks, trial_names
from edgebed.observe.journal import decode_line, not_a_line
from edgebed.observe.progress import Progress
from edgebed.observe.run_folder import RunFolder, TrialFolder
from edgebed.observe.standing import Standing, Status
from edgebed.results import Trial

LOOK_EVERY_S = 0.25
RESULTS_S_MAX = 20.0  # charts and report of a long run, on a busy machine


class Watched:
    """One trial, followed by its journal."""

    def __init__(self, folder: TrialFolder, *, is_simulated: bool, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` tells rates, and how the trial's time goes on since its last record; virtual time does not."""
        self.folder = folder
        self.plan = folder.read_plan()
        self.standing = Standing(self.plan)
        self._file = GrowingFile(folder.journal)
        self._count = 0
        self._is_simulated = is_simulated
        self._clock = clock
        self._heard_at_s = clock()

    def look(self) -> Status:
        """How it stands now; EdgebedError where the journal cannot be read."""
        last_t = self.standing.last_t
        for line in self._file.new_lines(whole_only=True):
            self._count += 1
            try:
                self.standing.follow(*decode_line(line))
            except msgspec.DecodeError as error:
                raise not_a_line(self.folder.journal, self._count, error) from error
        now_s = self._clock()
        if self.standing.last_t > last_t:
            self._heard_at_s = now_s
        silent_s = 0.0 if self._is_simulated or self.standing.ended else now_s - self._heard_at_s
        return self.standing.status(self.standing.last_t + silent_s, now_s)

    @property
    def is_complete(self) -> bool:
        """Whether it is over for good: one that broke off may be gone on with."""
        return self.standing.ended is not None and self.standing.ended.outcome == "completed"


def watch_run(folder: RunFolder, progress: Progress, pause: Pause = time.sleep) -> None:
    """Show a run until nobody works on it any more, and wait for its results where somebody is about to write them."""
    shown: Watched | None = None
    over: list[Watched] = []
    for is_last in looks(folder, pause=pause, every_s=LOOK_EVERY_S):
        for each in folder.trials()[len(over) :]:
            is_new = shown is None
            if shown is None:
                shown = Watched(each, is_simulated=folder.read_manifest().get("runtime") == "simulation")
                progress.trial_started(shown.plan)
            status = shown.look()
            if not is_new:  # a rate takes two looks
                progress.update(status)
            if not is_last and not shown.is_complete:
                break
            progress.trial_ended(Trial(each).summary)
            over.append(shown)
            shown = None
    if _has_ended(folder, over):
        _await(folder.report, pause)


def _has_ended(folder: RunFolder, over: Sequence[Watched]) -> bool:
    """Whether whoever worked on it has come to an end, so that the results follow; who was killed writes none."""
    if not over or not over[-1].standing.ended:
        return False
    return not over[-1].is_complete or len(over) == len(trial_names(folder))


def _await(path: Path, pause: Pause) -> None:
    for _ in range(round(RESULTS_S_MAX / LOOK_EVERY_S)):
        if path.exists():
            return
        pause(LOOK_EVERY_S)
