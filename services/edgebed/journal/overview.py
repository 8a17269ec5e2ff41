"""A run in a line of a list: what, when, what came of it, and its key figures.

Read from its manifest and its summary alone, and of the summary only what a line shows, so that a list of a thousand
runs is quick.
"""

import msgspec

from edgebed.core.errors import EdgebedError
from edgebed.core.reading import read_json
from edgebed.journal.run_folder import RunFolder

DAMAGED = "damaged"
IN_PROGRESS = ("running", "unfinished")


class TrialFigures(msgspec.Struct, frozen=True, kw_only=True):
    """A trial's key figures. None: not measured."""

    trial: str
    best_accuracy: float | None = None
    time_s: float | None = None
    traffic_bytes: int | None = None
    exchanged_bytes: int | None = None

    @property
    def passed_bytes(self) -> int | None:
        """Payload up and down; of shards, of all messages."""
        return self.exchanged_bytes if self.traffic_bytes is None else self.traffic_bytes


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
    figures: tuple[TrialFigures, ...] = ()
    """Figures of each trial that began."""
    problem: str = ""
    """Why the manifest cannot be read."""


class _Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What of a summary is shown."""

    question: str = ""
    exit_code: int = 3
    result: str = ""
    conditions: str = ""
    badge: str = ""
    trials: tuple[TrialFigures, ...] = ()


def overview_of(folder: RunFolder) -> RunOverview:
    """The run in a line, whatever is left of it."""
    try:
        manifest = folder.read_manifest()
    except EdgebedError as error:
        return RunOverview(name=folder.name, result=DAMAGED, badge=DAMAGED, problem=str(error))
    begun = RunOverview(
        name=folder.name,
        started=manifest.get("started", ""),
        runtime=manifest.get("runtime", ""),
        trials=tuple(manifest.get("trials", ())),
        wall_s=manifest.get("wall_s"),
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

    from edgebed.journal.outcome import outcome_of  # loads numpy, which no other run needs
    from edgebed.journal.summary import RunSummary

    whole = read_json(folder.summary, RunSummary, "a summary")  # an older edgebed has written no outcome
    outcome = outcome_of(whole.trials, whole.not_begun)
    told = {name: getattr(outcome, name) for name in ("exit_code", "result", "conditions", "badge")}
    return msgspec.structs.replace(found, **told)
