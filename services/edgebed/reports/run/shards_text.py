"""The results of a model's shards in words, for the report and the terminal."""

from collections.abc import Sequence

from edgebed.core.quantities import UNMEASURED, bytes_text, count_text, number_text
from edgebed.journal.summary import STEP_MESSAGES, TrialSummary

PHASE_HEAD = (
    "trial", "node", "steps a second", "forward", "learning", "teaching modules", "copying states",
    "waiting for inputs", "waiting for answers",
)  # fmt: skip
PAIR_HEAD = ("trial", "from", "to", "message", "messages", "payload")


def shards_text(trial: TrialSummary) -> str:
    """The results of shards in a line; empty where each worker had the whole model."""
    if trial.steps_min is None:
        return ""
    again = f"; all resumed from a backup {count_text(trial.rollbacks, 'time')}" if trial.rollbacks else ""
    matched = f"; {_matched(trial)}" if trial.matched else ""
    speed = "" if trial.steps_per_s is None else f" at {number_text(trial.steps_per_s)} a second"
    exchanged = f"{bytes_text(trial.exchanged_bytes)} exchanged"
    needed = "" if trial.messages_per_step is None else f", {number_text(trial.messages_per_step)} messages a step"
    return f"{_steps(trial)}{speed}{again}{matched}; {exchanged}{needed}"


def shard_rows(trials: Sequence[TrialSummary]) -> list[tuple[str, ...]]:
    """Rows of a report's table, a column a trial; none where there were no shards."""
    if all(trial.steps_min is None for trial in trials):
        return []
    matches = [
        ("pairs matched by batch", *(_number(trial.matched) for trial in trials)),
        ("epochs that a pair was apart, mean", *(number_text(trial.match_staleness_mean) for trial in trials)),
        ("epochs that a pair was apart, at most", *(number_text(trial.match_staleness_max) for trial in trials)),
    ]
    return [
        ("steps of every shard", *(_steps_number(trial) for trial in trials)),
        ("times that all resumed from a backup", *(_number(trial.rollbacks) for trial in trials)),
        ("exchanged: payload of all messages", *(bytes_text(trial.exchanged_bytes) for trial in trials)),
        *(matches if any(trial.matched for trial in trials) else []),
    ]


def exchange_rows(trials: Sequence[TrialSummary]) -> list[tuple[str, ...]]:
    """Rows on the messages of a step: all, each kind that any trial has, and their bytes; a column a trial."""
    if all(trial.messages_per_step is None for trial in trials):
        return []
    kinds = [kind for kind in STEP_MESSAGES if any(kind in trial.messages_per_step_by_kind for trial in trials)]
    return [
        ("messages a step", *(number_text(trial.messages_per_step) for trial in trials)),
        *((f"of them: {kind}", *(number_text(_of_kind(trial, kind)) for trial in trials)) for kind in kinds),
        ("their payload a step", *(bytes_text(trial.bytes_per_step) for trial in trials)),
    ]


def phase_rows(trials: Sequence[TrialSummary]) -> list[tuple[str, ...]]:
    """Rows under PHASE_HEAD: steps a second of each shard, and where its time went."""
    return [
        (trial.trial, node, number_text(trial.shard_steps_per_s.get(node)), *map(_share_text, shares))
        for trial in trials
        for node, phases in trial.shard_phases.items()
        if (shares := tuple(phases.values()))
    ]


def pair_rows(trials: Sequence[TrialSummary]) -> list[tuple[str, ...]]:
    """Rows under PAIR_HEAD: what each node sent each other one."""
    return [
        (trial.trial, each.source, each.target, each.message, f"{each.count:,}", bytes_text(each.bytes))
        for trial in trials
        for each in trial.exchanges
    ]


def _share_text(share: float) -> str:
    return f"{100 * share:.1f} %" if share else UNMEASURED


def _of_kind(trial: TrialSummary, kind: str) -> float | None:
    return None if trial.messages_per_step is None else trial.messages_per_step_by_kind.get(kind, 0.0)


def _steps(trial: TrialSummary) -> str:
    if trial.steps_max in (None, trial.steps_min):
        return f"every shard made {count_text(trial.steps_min or 0, 'step')}"
    return f"shards made {_steps_number(trial)} steps"


def _steps_number(trial: TrialSummary) -> str:
    if trial.steps_max in (None, trial.steps_min):
        return _number(trial.steps_min)
    return f"{_number(trial.steps_min)} to {_number(trial.steps_max)}"


def _matched(trial: TrialSummary) -> str:
    mean, most = (number_text(value) for value in (trial.match_staleness_mean, trial.match_staleness_max))
    return f"{count_text(trial.matched, 'pair')} matched by batch, {mean} epochs apart in the mean and {most} at most"


def _number(value: int | None) -> str:
    return UNMEASURED if value is None else f"{value:,}"
