"""Every table that an export writes, with what its columns mean; computed from the journal alone."""

import types
import typing
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from edgebed.exporting.table import Column, Filled, Kind, Table, by_rows, joined
from edgebed.observe.conditions_text import trial_link_dicts
from edgebed.observe.ledger import Ledger
from edgebed.observe.summary import TrialSummary
from edgebed.results import Run, Trial

KINDS: dict[type, Kind] = {str: "text", int: "integer", float: "number", bool: "yes or no"}
TIME = Column("time_s", "number", "Seconds since training started; in a simulation virtual ones.")


def _scalar(declared: Any) -> Kind | None:
    """The kind of a field that one cell can hold; None where it takes more."""
    optional = isinstance(declared, types.UnionType)
    members = (
        [member for member in typing.get_args(declared) if member is not types.NoneType] if optional else [declared]
    )
    return KINDS.get(members[0]) if len(members) == 1 else None


MEASURES: dict[str, Kind] = {
    field.name: kind
    for field in msgspec.structs.fields(TrialSummary)
    if field.name != "trial" and (kind := _scalar(field.type)) is not None
}
"""Those fields of a trial's summary that have one value."""


def _trial(run: Run, trial: Trial) -> Filled:
    summary = next(each for each in run.summary.trials if each.trial == trial.name)
    verdict = summary.fidelity.verdict if summary.fidelity else None
    measured = (getattr(summary, name) for name in MEASURES)
    diverged = summary.diverged.text if summary.diverged else ""
    row = (run.summary.runtime, trial.plan.seed, verdict, summary.met, diverged, joined(summary.warnings), *measured)
    return [(value,) for value in row]


def _evaluations(_: Run, trial: Trial) -> Filled:
    found = trial.series.evaluations
    return [
        found.t, found.version, found.accuracy, found.loss, found.final, found.ingress_bytes, found.bits,
        found.egress_bytes, found.traffic_bytes,
    ]  # fmt: skip


def _updates(_: Run, trial: Trial) -> Filled:
    series = trial.series
    found = series.updates
    workers = np.array(series.workers, dtype=object)[found.worker]
    return [
        found.t, workers, found.incarnation, found.step, found.version, found.base, found.staleness, found.entries,
        found.bits, found.bytes, found.loss, found.ingress_bytes, found.egress_bytes, found.traffic_bytes,
    ]  # fmt: skip


def _nodes(_: Run, trial: Trial) -> Filled:
    rows = ((t, node.name, node.state, node.incarnation, node.reason) for t, node in trial.series.nodes)
    return by_rows(rows, 5)


def _faults(_: Run, trial: Trial) -> Filled:
    rows = (
        (
            done.t, done.asked_t, done.back_s, done.was_done, done.record.name, done.record.action, done.record.target,
            done.record.trigger, done.record.change, done.record.problem, done.record.moot,
        )
        for done in trial.series.faults
    )  # fmt: skip
    return by_rows(rows, 11)


def _phases(_: Run, trial: Trial) -> Filled:
    return by_rows(_phase_rows(trial), 3)


def _phase_rows(trial: Trial) -> Iterator[tuple[str, str, float]]:
    for told in (trial.series.phases, trial.series.shard_phases):
        for node, phases in sorted(told.items()):
            for name in phases.__struct_fields__:
                if name.endswith("_s"):
                    yield node, name.removesuffix("_s"), getattr(phases, name)


def _links(_: Run, trial: Trial) -> Filled:
    names = [column.name for column in LINKS.columns]
    return by_rows(([_cell(link[name]) for name in names] for link in trial_link_dicts(trial)), len(names))


def _cell(value: object) -> object:
    return joined(value) if isinstance(value, tuple) else value


def _accounting(_: Run, trial: Trial) -> Filled:
    accounting = trial.series.accounting
    names = [column.name for column in ACCOUNTING.columns]
    rows = ([_count(life, name) for name in names] for life in (accounting.lives if accounting else ()))
    return by_rows(rows, len(names))


def _count(life: Ledger, name: str) -> Any:
    return sum(life.refused.values()) if name == "refused" else getattr(life, name)


def _steps(_: Run, trial: Trial) -> Filled:
    rows = (
        (t, shard, step)
        for shard, made in sorted(trial.series.shard_steps.items())
        for t, step in zip(made.t.tolist(), made.step.tolist(), strict=True)
    )
    return by_rows(rows, 3)


def _module_losses(_: Run, trial: Trial) -> Filled:
    rows = (
        (t, shard, predicts, step, loss)
        for predicts, told in (("gradient", trial.series.module_losses), ("inputs", trial.series.input_losses))
        for shard, found in told.items()
        for t, step, loss in zip(found.t.tolist(), found.step.tolist(), found.loss.tolist(), strict=True)
    )
    return by_rows(rows, 5)


def _exchanges(_: Run, trial: Trial) -> Filled:
    rows = ((each.source, each.target, each.message, each.count, each.bytes) for each in trial.summary.exchanges)
    return by_rows(rows, 5)


TRIALS = Table(
    "trials",
    "A row a trial: `summary.json` without what is nested there, which is in the other tables.",
    (
        Column("runtime", "text", "docker, process or simulation."),
        Column("seed", "integer", "What all chance of the trial comes from."),
        Column(
            "verdict",
            "text",
            "Whether what was asked held: trusted, degraded or unknown; modelled in a simulation.",
        ),
        Column("met", "yes or no", "It completed, and all its expectations that are judged are met."),
        Column("diverged", "text", "What was not finite first, and at which node."),
        Column("warnings", "text", "What a reader must know before trusting the numbers."),
        *(Column(name, kind, "") for name, kind in MEASURES.items()),
    ),
    _trial,
)
EVALUATIONS = Table(
    "evaluations",
    "A row a measurement on the test set, of the versions that led to the final model.",
    (
        Column("time_s", "number", "When the model had this version, not when its evaluation was done."),
        Column("version", "integer", "Updates applied until then."),
        Column("accuracy", "number", "Fraction of the test set, 0 to 1."),
        Column("loss", "number", "`nan`: not finite."),
        Column("final", "yes or no", "It is that of the last model."),
        Column("ingress_bytes", "integer", "Up: payload of all pushes until this version."),
        Column("bits", "integer", "What the algorithm needs for them, without encoding or framing."),
        Column("egress_bytes", "number", "Down: payload of the models sent for this version; of the final one, all."),
        Column("traffic_bytes", "number", "Up and down together. `nan`, here and above: not known, or of shards."),
    ),
    _evaluations,
)
UPDATES = Table(
    "updates",
    "A row an update that the server applied and that is in the final model. In layer-wise training the last shard's"
    " steps, without any bytes.",
    (
        TIME,
        Column("worker", "text", "Who pushed it."),
        Column("incarnation", "integer", "In which of its lives, from 1; 0: not told."),
        Column("step", "integer", "The worker's own count of its pushes in this life, from 0."),
        Column("version", "integer", "The model's after this update: the number of updates applied so far."),
        Column("base", "integer", "The version the gradient was computed at."),
        Column("staleness", "integer", "Updates applied between the worker's pull and this push."),
        Column("entries", "integer", "Values in the push."),
        Column("bits", "integer", "What the algorithm needs, without encoding or framing."),
        Column("bytes", "integer", "Payload of the push."),
        Column("loss", "number", "The worker's mini-batch loss; `nan`: not finite."),
        Column("ingress_bytes", "integer", "Payload of this push and all before it, of those lost with a server, too."),
        Column("egress_bytes", "number", "Payload of the models handed out before, without the answer to this push."),
        Column("traffic_bytes", "number", "Up and down together. `nan`, here and above: not known, or of shards."),
    ),
    _updates,
)
NODES = Table(
    "nodes",
    "A row a change of a node's state, as the controller saw it.",
    (
        TIME,
        Column("node", "text", "Whose."),
        Column("state", "text", "expected, started, joined, ready, running, stopped, died, missing, or unresponsive."),
        Column("incarnation", "integer", "In which of its lives, from 1; 0: not told."),
        Column("reason", "text", "Why, if there is one."),
    ),
    _nodes,
)
FAULTS = Table(
    "faults",
    "A row a thing done to a node on purpose, or tried.",
    (
        Column("time_s", "number", "When it was done, in seconds since training started."),
        Column("asked_time_s", "number", "When it was to be done."),
        Column("back_s", "number", "How long after a heal, a thaw or a launch the server heard of the node again."),
        Column("done", "yes or no", "It could be done, and there was something to do."),
        Column("fault", "text", "The scenario's entry, e.g. `kill-1`; else `by hand`, or `on_failure`."),
        Column("action", "text", "kill, launch, freeze, thaw, cut, heal, link, cpus or memory."),
        Column("target", "text", "The node."),
        Column("trigger", "text", "What made it happen, e.g. `at 30s`."),
        Column("change", "text", "What of a link or a cap changed, e.g. `uplink 1mbit`."),
        Column("problem", "text", "Why it could not be done."),
        Column("moot", "text", "Why there was nothing to do."),
    ),
    _faults,
)
PHASES = Table(
    "phases",
    "A row a node and a phase: where its time went, over all its lives. Workers have theirs in live runtimes alone.",
    (
        Column("node", "text", "A worker, a shard, or the node that has all gradient modules."),
        Column(
            "phase",
            "text",
            "Worker: compute, encode, wait, pause; shard: forward, learn, teach, copy, inputs, answers.",
        ),
        Column("spent_s", "number", "Seconds."),
    ),
    _phases,
)
LINKS = Table(
    "links",
    "A row a direction of a link that was asked for or that something held, as `edgebed link show --json` has it.",
    (
        Column("node", "text", "Whose link."),
        Column("direction", "text", "uplink or downlink."),
        Column("latency_s", "number", "As asked at the beginning."),
        Column("latency_measured_s", "number", "Of the message that was held back least, with its handling."),
        Column("jitter_s", "number", "Around the latency."),
        Column("loss", "number", "Share of the packets, 0 to 1."),
        Column("asked_low_bit_s", "integer", "The lowest rate asked over time, bits a second; empty: no limit."),
        Column("asked_high_bit_s", "integer", "The highest."),
        Column("held_bit_s", "integer", "What holds it says so, as read back last."),
        Column("burst_bytes", "integer", "What may leave at once after a silence."),
        Column("measured_bit_s", "number", "While a message passed; of the server in its third-busiest two seconds."),
        Column("messages", "integer", "Messages that were timed."),
        Column(
            "time_s", "number", "For so long these were on their way, together: a duration, unlike in other tables."
        ),
        Column("asked_s", "number", "So long they would have been over links exactly as asked."),
        Column("drops", "number", "Share of the packets that the queue dropped."),
        Column("mechanism", "text", "What held it: tc, model or none."),
        Column("delay", "text", "What made latency and jitter: netem, line, or nothing."),
        Column("problems", "text", "What the read-back found to differ."),
        Column("differed_s", "integer", "In how many of its looks, one a second."),
    ),
    _links,
)
ACCOUNTING = Table(
    "accounting",
    "A row a life of a worker: what became of every update that it began, or of every step that a layer shard began. "
    "`begun` is the sum of all others.",
    (
        Column("worker", "text", "Whose updates, or steps."),
        Column("incarnation", "integer", "In which of its lives, from 1."),
        Column("begun", "integer", "Those it began to compute."),
        Column("applied", "integer", "They are in the final model."),
        Column("refused", "integer", "The server did not take them."),
        Column("lost_in_flight", "integer", "Pushed, never received."),
        Column("lost_with_worker", "integer", "In progress or on their way when the worker died."),
        Column("lost_with_server", "integer", "Not in the checkpoint that the next server was restored to."),
        Column("rolled_back", "integer", "Steps in a history that all shards gave up, to go on from a backup."),
        Column("unfinished", "integer", "In progress at the end; steps, too, that the final model was too early for."),
        Column("unexplained", "integer", "Missing, and nothing in the journal says why."),
    ),
    _accounting,
)
STEPS = Table(
    "steps",
    "Layer-wise training: a row a mini-batch that a shard learnt of, without those that were rolled back.",
    (
        Column("time_s", "number", "When the shard said so, in seconds since training started."),
        Column("shard", "text", "The node."),
        Column("step", "integer", "The mini-batch, from 0."),
    ),
    _steps,
    is_layerwise=True,
)
MODULE_LOSSES = Table(
    "module_losses",
    "Layer-wise training: a row a time that a module learnt what it had predicted.",
    (
        TIME,
        Column("shard", "text", "Whose module."),
        Column("predicts", "text", "gradient or inputs."),
        Column("step", "integer", "The mini-batch, from 0."),
        Column("loss", "number", "Its squared error before, summed over values and averaged over the batch."),
    ),
    _module_losses,
    is_layerwise=True,
)
EXCHANGES = Table(
    "exchanges",
    "Layer-wise training: a row a pair of nodes and a kind of message between them.",
    (
        Column("source", "text", "Who sent."),
        Column("target", "text", "Who received."),
        Column("message", "text", "The kind: activation, gradient, taken, fetch, backup, …"),
        Column("count", "integer", "Messages received."),
        Column("bytes", "integer", "Their payload."),
    ),
    _exchanges,
    is_layerwise=True,
)
TABLES = (
    TRIALS, EVALUATIONS, UPDATES, NODES, FAULTS, PHASES, LINKS, ACCOUNTING, STEPS, MODULE_LOSSES, EXCHANGES
)  # fmt: skip


def tables_of(run: Run) -> tuple[Table, ...]:
    """Those that this run has."""
    is_layerwise = any(trial.summary.is_layerwise for trial in run.trials.values())
    return tuple(table for table in TABLES if is_layerwise or not table.is_layerwise)
