"""A run in a line of a list: what, when, what came of it, its key figures, and the room it takes.

Read from its manifest and its summary alone, and of the summary only what a line shows, and of its other files their
sizes, so that a list of a thousand runs is quick.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from edgebed.core.errors import EdgebedError, ScenarioError
from edgebed.core.measures.task import TaskMeasure
from edgebed.core.measures.trial import ServerMeasures, ShardMeasures
from edgebed.core.quantities import RESULTS as TRIAL_RESULTS
from edgebed.core.quantities import UNMEASURED
from edgebed.core.reading import read_json
from edgebed.journal.run_folder import RunFolder

DAMAGED = "damaged"
IN_PROGRESS = ("running", "unfinished")
RESULTS = (*reversed(TRIAL_RESULTS), *IN_PROGRESS, DAMAGED)
"""All that can have come of a run."""


class TrialFigures(msgspec.Struct, frozen=True, kw_only=True):
    """A trial's key figures. None: not measured."""

    trial: str
    measures: tuple[TaskMeasure, ...] = ()
    best: dict[str, float | None] = {}
    final: dict[str, float | None] = {}
    time_s: float | None = None
    server: ServerMeasures | None = None
    shards: ShardMeasures | None = None

    @property
    def best_value(self) -> float | None:
        """The best value of the headline."""
        return self.best.get(self.measures[0].name) if self.measures else None

    def best_text(self, *, is_named: bool) -> str:
        """The best value of the headline, as people read it; with the last model's where that is far from it."""
        if not self.measures:
            return UNMEASURED
        headline, best, final = self.measures[0], self.best_value, self.final.get(self.measures[0].name)
        fell = best is not None and final is not None and headline.has_fallen(best, final)
        text = headline.told(best) if is_named else headline.text(best)
        return text + (f", final {headline.text(final)}" if fell else "")

    @property
    def passed_bytes(self) -> int | None:
        """Payload up and down; of shards, of all messages."""
        own = self.server or self.shards
        return own.payload_bytes if own else None


class RunOverview(msgspec.Struct, frozen=True, kw_only=True):
    """A run in a line."""

    name: str
    started: str = ""
    """Moment of ISO 8601; empty here and below where it is not known."""
    runtime: str = ""
    trials: tuple[str, ...] = ()
    """Trials that were planned."""
    question: str = ""
    result: str = ""
    """As of a summary; running or unfinished without one, damaged where the manifest cannot be read."""
    conditions: str = ""
    badge: str = ""
    exit_code: int = 3
    wall_s: float | None = None
    """Seconds for which the run was worked on."""
    changed: tuple[str, ...] = ()
    """What its options set, `key=value` each."""
    note: str = ""
    disk_bytes: int = 0
    """Room that its folder takes on the disk."""
    figures: tuple[TrialFigures, ...] = ()
    """Figures of each trial that began."""
    problem: str = ""
    """Why the manifest cannot be read."""

    @property
    def best(self) -> TrialFigures | None:
        """The trial with the best headline, of those that have the first one's; None: nothing was measured."""
        known = [each for each in self.figures if each.best_value is not None]
        alike = [each for each in known if each.measures[0] == known[0].measures[0]]
        values = [each.best_value or 0.0 for each in alike]
        return alike[values.index(alike[0].measures[0].best(values))] if alike else None

    @property
    def rank(self) -> float | None:
        """A number that is the greater the better the best trial is; None: nothing was measured."""
        if self.best is None or self.best.best_value is None:
            return None
        return self.best.best_value if self.best.measures[0].better == "more" else -self.best.best_value

    @property
    def time_s(self) -> float | None:
        """The longest of all trials."""
        return max((each.time_s for each in self.figures if each.time_s is not None), default=None)


class _Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What of a summary is shown."""

    question: str = ""
    exit_code: int = 3
    result: str = ""
    conditions: str = ""
    badge: str = ""
    trials: tuple[TrialFigures, ...] = ()


def best_column(runs: Sequence[RunOverview]) -> tuple[str, list[str]]:
    """The heading and the cells of a column of the best headlines, whose name is in the heading if it is one alone."""
    found = {run.best.measures[0].words for run in runs if run.best}
    heading = f"best {found.pop()}" if len(found) == 1 else "best"
    return heading, [run.best.best_text(is_named=heading == "best") if run.best else UNMEASURED for run in runs]


def overview_of(folder: RunFolder) -> RunOverview:
    """The run in a line, whatever is left of it."""
    try:
        manifest = folder.read_manifest()
    except EdgebedError as error:
        room = folder.disk_bytes()
        return RunOverview(name=folder.name, result=DAMAGED, badge=DAMAGED, problem=str(error), disk_bytes=room)
    begun = RunOverview(
        name=folder.name,
        started=manifest.get("started", ""),
        runtime=manifest.get("runtime", ""),
        trials=tuple(manifest.get("trials", ())),
        wall_s=manifest.get("wall_s"),
        changed=tuple(manifest.get("sets", ())),
        note=manifest.get("note", ""),
        disk_bytes=folder.disk_bytes(),
    )
    try:
        found = _summary_of(folder)
    except EdgebedError:
        result = IN_PROGRESS[0] if folder.is_running() else IN_PROGRESS[1]
        return msgspec.structs.replace(begun, result=result, badge=result)
    told = {name: getattr(found, name) for name in ("question", "exit_code", "result", "conditions", "badge")}
    return msgspec.structs.replace(begun, figures=found.trials, **told)


def _summary_of(folder: RunFolder) -> _Summary:
    found = read_json(folder.summary, _Summary, "a summary")
    if found.badge:
        return found

    from edgebed.journal.outcome import (
        RunSummary,
        outcome_of,  # loads numpy, which no other run needs
    )

    whole = read_json(folder.summary, RunSummary, "a summary")  # an older edgebed has written no outcome
    outcome = outcome_of(whole.trials, whole.not_begun)
    told = {name: getattr(outcome, name) for name in ("exit_code", "result", "conditions", "badge")}
    return msgspec.structs.replace(found, **told)


ORDERS: dict[str, tuple[Callable[[RunOverview], Any], bool]] = {
    "name": (lambda _: (), False),  # as they are found
    "started": (lambda run: run.started or None, True),
    "best": (lambda run: run.rank, True),
    "time": (lambda run: run.time_s, False),
    "size": (lambda run: run.disk_bytes, True),
    "result": (lambda run: RESULTS.index(run.result) if run.result in RESULTS else None, False),
}
"""By what runs can be sorted, each with whether the greatest comes first."""


def sorted_by(runs: Iterable[RunOverview], order: str) -> list[RunOverview]:
    """The runs in one of the `ORDERS`, those without a value last; ScenarioError for another."""
    if order not in ORDERS:
        raise ScenarioError(f"--sort: {order!r} is none of {', '.join(ORDERS)}")
    value_of, is_greatest_first = ORDERS[order]
    runs = list(runs)
    known = [run for run in runs if value_of(run) is not None]
    return [
        *sorted(known, key=value_of, reverse=is_greatest_first),
        *(run for run in runs if value_of(run) is None),
    ]


def chosen_by(runs: Iterable[RunOverview], words: Sequence[str], results: Sequence[str]) -> list[RunOverview]:
    """The runs in whose line every word is found, whatever its case, and that have one of the results, if any is given.

    ScenarioError for a word of nothing, which every line has, and for a result that there is not.
    """
    if not all(word.strip() for word in words):
        raise ScenarioError("WORD: one is empty, which would mean every run; leave it out, or say what the runs have")
    for result in results:
        if result not in RESULTS:
            raise ScenarioError(f"--result: {result!r} is none of {', '.join(RESULTS)}")
    return [
        run
        for run in runs
        if (not results or run.result in results) and all(word.casefold() in _searched(run) for word in words)
    ]


def _searched(run: RunOverview) -> str:
    """What a word is looked for in."""
    return "\n".join((run.name, run.note, *run.changed, *run.trials, run.runtime, run.badge, run.question)).casefold()
