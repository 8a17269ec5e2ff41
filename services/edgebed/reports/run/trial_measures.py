"""What a run's trials came to, measure by measure: a column a trial on the page, a row a trial in a terminal."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from edgebed.core.quantities import UNMEASURED, bytes_text, number_text, percent_text, seconds_text
from edgebed.journal.outcome import outcome_text
from edgebed.journal.summary import RunSummary, TrialSummary
from edgebed.reports.run.traffic_text import ingress_interface_text, measured_rows
from edgebed.reports.writing.page import Grid


class Measure(NamedTuple):
    """A measure of a trial."""

    name: str
    text: Callable[[TrialSummary], str]
    column: str = ""
    """Name of its column in a terminal; "" for none."""


def _start_up(phase: str) -> Callable[[TrialSummary], str]:
    return lambda trial: seconds_text(getattr(trial.start_up, phase)) if trial.start_up else UNMEASURED


def _count(value: int) -> str:
    return f"{value:,}" if value else UNMEASURED


def _nodes(trial: TrialSummary) -> str:
    joined, expected = trial.nodes_joined, trial.nodes_expected
    return f"{expected:,}" if joined == expected else f"{joined:,} of {expected:,} joined"


def _staleness(trial: TrialSummary) -> str:
    if trial.staleness_median is None:
        return UNMEASURED
    return ", ".join(map(number_text, (trial.staleness_median, trial.staleness_p90, trial.staleness_max)))


def _idle_end(trial: TrialSummary) -> str:
    return seconds_text(trial.last_update_s) if trial.has_idle_end else UNMEASURED


def _syncs(trial: TrialSummary) -> str:
    if not trial.log_syncs:
        return UNMEASURED
    wait = UNMEASURED if trial.log_wait_s is None else f"{1000 * trial.log_wait_s:.1f} ms"
    return f"{trial.log_syncs:,}, {wait}"


def _saved(trial: TrialSummary) -> str:
    return ", ".join(f"{saved:,}" for saved in trial.log_saved_by_start) or UNMEASURED


MOST_FREQUENT = "most frequent class"
"""What charts call the accuracy of who always says the test set's most frequent class."""
TRIAL = (
    Measure("outcome", outcome_text),
    Measure("method", lambda trial: trial.method),
    Measure("final accuracy", lambda trial: percent_text(trial.final_accuracy), "accuracy"),
    Measure("best accuracy", lambda trial: percent_text(trial.best_accuracy), "best"),
    Measure(f"always the {MOST_FREQUENT}", lambda trial: percent_text(trial.most_frequent_class)),
    Measure("final loss", lambda trial: number_text(trial.final_loss)),
    Measure("updates", lambda trial: number_text(trial.updates), "updates"),
    Measure("time of training", lambda trial: seconds_text(trial.time_s), "time"),
    Measure("time of the last update, where much later training ended", _idle_end, "last update"),
    Measure("updates a second", lambda trial: number_text(trial.updates_per_s), "updates/s"),
)
"""Measures of every trial, which come first."""
PUSHES = (
    Measure("up: payload of the pushes", lambda trial: bytes_text(trial.ingress_bytes), "up"),
    Measure("down: payload of the models sent", lambda trial: bytes_text(trial.egress_bytes), "down"),
    Measure("up and down", lambda trial: bytes_text(trial.traffic_bytes), "total"),
    Measure("up: at the server's interface", ingress_interface_text),
    Measure("a push, mean", lambda trial: bytes_text(trial.push_bytes_mean), "a push"),
    Measure("values in a push, mean", lambda trial: number_text(trial.entries_mean)),
    Measure("staleness, mean", lambda trial: number_text(trial.staleness_mean), "staleness"),
    Measure("staleness: median, 90th percentile, maximum", _staleness),
    Measure(
        "updates of one worker, fewest to most",
        lambda trial: f"{trial.worker_updates_min:,} to {trial.worker_updates_max:,}",
    ),
)
"""Measures of workers that push updates."""
LOG = (
    Measure("the server's log: written", lambda trial: bytes_text(trial.log_bytes)),
    Measure("the server's log: entries", lambda trial: number_text(trial.log_entries)),
    Measure("the server's log: share of its time", lambda trial: percent_text(trial.log_share)),
    Measure("the server's log: syncs, mean wait for one", _syncs),
    Measure("the server's log: updates that the last checkpoint lacked, of each start", _saved),
)
"""Measures of servers with a log."""
SHARDS = (
    Measure("steps a second of the slowest shard", lambda trial: number_text(trial.steps_per_s), "steps/s"),
    Measure("exchanged: payload of all messages", lambda trial: bytes_text(trial.exchanged_bytes), "exchanged"),
    Measure("messages a step", lambda trial: number_text(trial.messages_per_step), "messages a step"),
)
"""Measures of shards."""
NODES = (
    Measure("nodes", _nodes),
    Measure("nodes that died", lambda trial: _count(trial.nodes_died)),
    Measure("nodes that never came", lambda trial: _count(trial.nodes_missing)),
    Measure("from the launch until all nodes had started", _start_up("started_s")),
    Measure("from the launch until all nodes had joined", _start_up("joined_s")),
    Measure("from the launch until training began", _start_up("training_s")),
    Measure("from the launch until each worker had an update applied", _start_up("contributed_s")),
)
"""Measures of every trial, which come last."""
WORDS = {
    "ingress": "bytes up", "egress": "bytes down", "traffic": "bytes up and down", "verdict": "conditions",
    "updates_per": "updates a second", "steps_per": "steps a second",
}  # fmt: skip
"""Words for measures of an expectation that are not those of the measure itself."""
DISPENSABLE = (
    "staleness", "a push", "updates/s", "messages a step", "time", "updates", "up", "down", "total", "exchanged",
    "best",
)  # fmt: skip


def most_frequent_of(trials: Iterable[TrialSummary]) -> set[float]:
    """Shares of the most frequent classes of the trials' test sets, each once."""
    return {trial.most_frequent_class for trial in trials if trial.most_frequent_class is not None}


def measure_name(measure: str) -> str:
    """A measure that an expectation names, in words: `best accuracy` for best_accuracy, `time` for time_s."""
    stem = measure.removesuffix("_s").removesuffix("_bytes")
    return WORDS.get(stem, stem.replace("_", " "))


def measures_grid(summary: RunSummary) -> Grid:
    """All measures that any trial has, a row each, with a column for each trial that began."""
    pushes = PUSHES if any(not trial.is_layerwise for trial in summary.trials) else ()
    shards = SHARDS if any(trial.is_layerwise for trial in summary.trials) else ()
    measures = (*TRIAL, *pushes, *shards, *LOG, *NODES) if summary.trials else ()
    rows = measured_rows([(each.name, *map(each.text, summary.trials)) for each in measures])
    return Grid(("", *(trial.trial for trial in summary.trials)), rows)


def results_grid(summary: RunSummary) -> Grid:
    """Some measures, a column each, with a row for each trial."""
    is_layerwise = bool(summary.trials) and all(trial.is_layerwise for trial in summary.trials)
    own = SHARDS if is_layerwise else PUSHES
    has_idle_end = any(trial.has_idle_end for trial in summary.trials)
    unwanted = {"" if has_idle_end else "last update", "updates/s" if is_layerwise else ""}
    measures = [each for each in (*TRIAL, *own) if each.column and each.column not in unwanted]
    rows = [(trial.trial, *(each.text(trial) for each in measures)) for trial in summary.trials]
    absent = [(name, *(UNMEASURED for _ in measures)) for name in summary.not_begun]
    return Grid(("trial", *(each.column for each in measures)), [*rows, *absent], dispensable=DISPENSABLE)
