"""The results of a model's shards in words, for the report and the terminal."""

from collections.abc import Iterator, Sequence

from edgebed.core.measures.trial import ShardMeasures, measure_text
from edgebed.core.quantities import UNMEASURED, bytes_text, count_text, number_text
from edgebed.journal.summary import STEP_MESSAGES, TrialSummary

PHASE_HEAD = (
    "trial", "node", "steps a second", "forward", "learning", "teaching modules", "copying states",
    "waiting for inputs", "waiting for answers",
)  # fmt: skip
PAIR_HEAD = ("trial", "from", "to", "message", "messages", "payload")


def shards_text(trial: TrialSummary) -> str:
    """The results of shards in a line; empty where each worker had the whole model."""
    if not (shards := trial.shards):
        return ""
    again = f"; all resumed from a backup {count_text(shards.rollbacks, 'time')}" if shards.rollbacks else ""
    matched = f"; {_matched(shards)}" if shards.matched else ""
    speed = "" if shards.steps_per_s is None else f" at {number_text(shards.steps_per_s)} a second"
    needed = "" if shards.messages_per_step is None else f", {number_text(shards.messages_per_step)} messages a step"
    return f"{_steps(shards)}{speed}{again}{matched}; {shards.payload_text}{needed}"


def shard_rows(trials: Sequence[TrialSummary]) -> list[tuple[str, ...]]:
    """Rows of a report's table, a column a trial; none where there were no shards."""
    found = [trial.shards for trial in trials]
    if not any(found):
        return []
    matches = [
        ("pairs matched by batch", *_texts(trials, "matched")),
        ("epochs that a pair was apart, mean", *_texts(trials, "match_staleness_mean")),
        ("epochs that a pair was apart, at most", *_texts(trials, "match_staleness_max")),
    ]
    return [
        ("steps of every shard", *(_steps_number(shards) if shards else UNMEASURED for shards in found)),
        ("times that all resumed from a backup", *_texts(trials, "rollbacks")),
        ("exchanged: payload of all messages", *_texts(trials, "exchanged_bytes")),
        *(matches if any(shards.matched for shards in found if shards) else []),
    ]


def exchange_rows(trials: Sequence[TrialSummary]) -> list[tuple[str, ...]]:
    """Rows on the messages of a step: all, each kind that any trial has, and their bytes; a column a trial."""
    if all(trial.value("messages_per_step") is None for trial in trials):
        return []
    by_kind = [trial.shards.messages_per_step_by_kind if trial.shards else {} for trial in trials]
    kinds = [kind for kind in STEP_MESSAGES if any(kind in counts for counts in by_kind)]
    return [
        ("messages a step", *_texts(trials, "messages_per_step")),
        *(
            (f"of them: {kind}", *(number_text(counts.get(kind, 0.0) if counts else None) for counts in by_kind))
            for kind in kinds
        ),
        ("their payload a step", *_texts(trials, "bytes_per_step")),
    ]


def phase_rows(trials: Sequence[TrialSummary]) -> list[tuple[str, ...]]:
    """Rows under PHASE_HEAD: steps a second of each shard, and where its time went."""
    return [
        (trial.trial, node, number_text(trial.shards.shard_steps_per_s.get(node)), *map(_share_text, shares))
        for trial in trials
        if trial.shards
        for node, phases in trial.shards.shard_phases.items()
        if (shares := tuple(phases.values()))
    ]


def pair_rows(trials: Sequence[TrialSummary]) -> list[tuple[str, ...]]:
    """Rows under PAIR_HEAD: what each node sent each other one."""
    return [
        (trial.trial, each.source, each.target, each.message, f"{each.count:,}", bytes_text(each.bytes))
        for trial in trials
        if trial.shards
        for each in trial.shards.exchanges
    ]


def _texts(trials: Sequence[TrialSummary], measure: str) -> Iterator[str]:
    return (measure_text(measure, trial.value(measure)) for trial in trials)


def _share_text(share: float) -> str:
    return f"{100 * share:.1f} %" if share else UNMEASURED


def _steps(shards: ShardMeasures) -> str:
    if shards.steps_max in (None, shards.steps_min):
        return f"every shard made {count_text(shards.steps_min or 0, 'step')}"
    return f"shards made {_steps_number(shards)} steps"


def _steps_number(shards: ShardMeasures) -> str:
    if shards.steps_max in (None, shards.steps_min):
        return number_text(shards.steps_min)
    return f"{number_text(shards.steps_min)} to {number_text(shards.steps_max)}"


def _matched(shards: ShardMeasures) -> str:
    mean, most = (number_text(value) for value in (shards.match_staleness_mean, shards.match_staleness_max))
    return f"{count_text(shards.matched, 'pair')} matched by batch, {mean} epochs apart in the mean and {most} at most"
