"""Every table that an export writes, with what its columns mean; computed from the journal alone."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from edgebed.core.actions import ACTIONS
from edgebed.core.measures.task import TaskMeasure
from edgebed.core.measures.trial import all_measures, meanings
from edgebed.core.planned.link import IMPAIRMENTS
from edgebed.exporting import programs
from edgebed.exporting.table import Column, ExportTable, Filled, by_rows, joined
from edgebed.journal.accounts.ledger import Ledger
from edgebed.journal.columns.clients import names_of
from edgebed.learning.objectives.registry import all_declared
from edgebed.reports.run.conditions_text import trial_link_dicts
from edgebed.running.results import AnyTrial, Run, Trial

TIME = Column("time_s", "number", "Seconds since training started; in a simulation virtual ones.")
FACTS = ("method", "outcome", "reason", "interface")
"""What a trial's summary says in a text."""


def _trial(run: Run, trial: Trial) -> Filled:
    summary = trial.summary
    verdict = summary.fidelity.verdict if summary.fidelity else None
    measured = (*(getattr(summary, name) for name in FACTS), *map(summary.value, all_measures(_measures(run))))
    diverged = summary.diverged.text if summary.diverged else ""
    row = (run.summary.runtime, trial.plan.seed, verdict, summary.met, diverged, joined(summary.warnings), *measured)
    return [(value,) for value in row]


def _evaluations(run: Run, trial: Trial) -> Filled:
    found = trial.series.evaluations
    unmeasured = np.full(len(found), np.nan)
    test, validation = (
        [values.get(each.name, unmeasured) for each in _measures(run)] for values in (found.measured, found.validation)
    )
    return [
        found.t, found.version, *test, found.final, found.ingress_bytes, found.bits, found.egress_bytes,
        found.traffic_bytes, *validation,
    ]  # fmt: skip


def _clients(run: Run, trial: Trial) -> Filled:
    found, by = trial.series.clients, trial.plan.by_client
    rows, columns = len(found), len(found.clients)
    sizes = dict(zip(by.clients, by.sizes, strict=True)) if by else {}
    clients = [int(client) for client in found.clients]
    unmeasured = np.full((rows, columns), np.nan)
    values = [
        part.get(each.name, unmeasured).reshape(-1) for each in _measures(run) for part in (found.measured, found.tuned)
    ]
    return [
        np.repeat(found.version, columns), names_of(trial.plan, clients) * rows,
        [by.part if by else "" for _ in range(rows * columns)], [sizes.get(client) for client in clients] * rows,
        [not by or client not in by.unseen for client in clients] * rows, *values,
    ]  # fmt: skip


def _measures(run: Run) -> list[TaskMeasure]:
    """What the trials' tasks measure."""
    return list({each.name: each for trial in run.trials.values() for each in trial.plan.measures}.values())


def _updates(_: Run, trial: Trial) -> Filled:
    series = trial.series
    found = series.updates
    workers = np.array(series.workers, dtype=object)[found.worker]
    return [
        found.t, workers, found.incarnation, found.step, found.version, found.base, found.staleness, found.entries,
        found.bits, found.bytes, found.loss, found.ingress_bytes, found.egress_bytes, found.traffic_bytes,
    ]  # fmt: skip


def _nodes(_: Run, trial: AnyTrial) -> Filled:
    rows = ((t, node.name, node.state, node.incarnation, node.reason) for t, node in trial.series.nodes)
    return by_rows(rows, 5)


def _faults(_: Run, trial: AnyTrial) -> Filled:
    rows = (
        (
            done.t, done.asked_t, done.back_s, done.away_s, done.was_done, done.record.name, done.record.action,
            done.record.target, done.record.trigger, done.record.change, done.record.problem, done.record.no_op,
        )
        for done in trial.series.faults
    )  # fmt: skip
    return by_rows(rows, 12)


def _phases(_: Run, trial: Trial) -> Filled:
    return by_rows(_phase_rows(trial), 3)


def _phase_rows(trial: Trial) -> Iterator[tuple[str, str, float]]:
    for told in (trial.series.server.phases, trial.series.shards.phases):
        for node, phases in sorted(told.items()):
            for name in phases.__struct_fields__:
                if name.endswith("_s"):
                    yield node, name.removesuffix("_s"), getattr(phases, name)


def _links(_: Run, trial: AnyTrial) -> Filled:
    names = [column.name for column in LINKS.columns]
    return by_rows(([_cell(link[name]) for name in names] for link in trial_link_dicts(trial)), len(names))


def _hosts(_: Run, trial: AnyTrial) -> Filled:
    rows = (
        (
            t, load.host, load.busy, load.steal, load.load, load.lag_s, load.cores, load.received_bytes_s,
            load.sent_bytes_s, load.rate_bit_s, load.slew,
        )
        for told in trial.series.hosts.values()
        for t, load in told
    )  # fmt: skip
    return by_rows(rows, 11)


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
        for shard, made in sorted(trial.series.shards.timed_steps.items())
        for t, step in zip(made.t.tolist(), made.step.tolist(), strict=True)
    )
    return by_rows(rows, 3)


def _module_losses(_: Run, trial: Trial) -> Filled:
    shards = trial.series.shards
    rows = (
        (t, shard, predicts, step, loss)
        for predicts, told in (("gradient", shards.module_losses), ("inputs", shards.input_losses))
        for shard, found in told.items()
        for t, step, loss in zip(found.t.tolist(), found.step.tolist(), found.loss.tolist(), strict=True)
    )
    return by_rows(rows, 5)


def _exchanges(_: Run, trial: Trial) -> Filled:
    shards = trial.summary.shards
    rows = (
        (each.source, each.target, each.message, each.count, each.bytes)
        for each in (shards.exchanges if shards else ())
    )
    return by_rows(rows, 5)


def _trials_table(measures: Iterable[TaskMeasure]) -> ExportTable:
    """The table of trials whose tasks measure that."""
    measures = tuple(measures)
    told = meanings(measures)
    return ExportTable(
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
            *(Column(name, "text", "") for name in FACTS),
            *(
                Column(name, "integer" if each.is_whole else "number", told.get(name, ""))
                for name, each in all_measures(measures).items()
            ),
        ),
        _trial,
    )


def _evaluations_table(measures: Iterable[TaskMeasure]) -> ExportTable:
    """The table of evaluations of tasks that measure that."""
    measures = tuple(measures)
    return ExportTable(
        "evaluations",
        "A row a measurement of a version that led to the final model.",
        (
            Column("time_s", "number", "When the model had this version, not when its evaluation was done."),
            Column("version", "integer", "Updates applied until then."),
            *(
                Column(each.name, "number", f"On the test part. {each.meaning} `nan`: not finite.".replace("  ", " "))
                for each in measures
            ),
            Column("final", "yes or no", "Whether the evaluation is of the last model."),
            Column("ingress_bytes", "integer", "Up: payload of all pushes until this version."),
            Column("bits", "integer", "Bits that the algorithm needs for these pushes, without encoding or framing."),
            Column(
                "egress_bytes", "number", "Down: payload of the models sent for this version; of the final one, all."
            ),
            Column(
                "traffic_bytes", "number", "Up and down together. `nan`, here and above: not known, or shards train."
            ),
            *(
                Column(f"validation_{each.name}", "number", "The same on the validation part; `nan`: there is none.")
                for each in measures
            ),
        ),
        _evaluations,
    )


def _clients_table(measures: Iterable[TaskMeasure]) -> ExportTable:
    """The table of what was measured client by client."""
    return ExportTable(
        "clients",
        "A row a client of each version that was measured client by client (`evaluation.by_client`).",
        (
            Column("version", "integer", "Updates applied until then."),
            Column("client", "text", "Name of the client, as the data has it."),
            Column("part", "text", "Part of the data that it was measured on: test or validation."),
            Column("examples", "integer", "Examples of the client in that part."),
            Column("seen", "yes or no", "Whether anybody trains on examples of the client."),
            *(
                column
                for each in measures
                for column in (
                    Column(each.name, "number", "Value on the client's examples; `nan`: these give none."),
                    Column(f"tuned_{each.name}", "number", "After fine-tuning on its own; `nan`: there is none."),
                )
            ),
        ),
        _clients,
    )


CLIENTS = _clients_table(all_declared())
TRIALS, EVALUATIONS = _trials_table(all_declared()), _evaluations_table(all_declared())
UPDATES = ExportTable(
    "updates",
    "A row an update that the server applied and that is in the final model. In layer-wise training the last shard's"
    " steps, without any bytes.",
    (
        TIME,
        Column("worker", "text", "The worker that pushed it."),
        Column("incarnation", "integer", "Incarnation of the node, from 1; 0: not reported."),
        Column("step", "integer", "The worker's own count of its pushes in this incarnation, from 0."),
        Column("version", "integer", "Version of the model after this update: the number of updates applied so far."),
        Column("base", "integer", "The version the gradient was computed at."),
        Column("staleness", "integer", "Updates applied between the worker's pull and this push."),
        Column("entries", "integer", "Values in the push."),
        Column("bits", "integer", "Bits that the algorithm needs, without encoding or framing."),
        Column("bytes", "integer", "Payload of the push."),
        Column("loss", "number", "The worker's mini-batch loss; `nan`: not finite."),
        Column("ingress_bytes", "integer", "Payload of this push and all before it, of those lost with a server, too."),
        Column("egress_bytes", "number", "Payload of the models handed out before, without the answer to this push."),
        Column("traffic_bytes", "number", "Up and down together. `nan`, here and above: not known, or shards train."),
    ),
    _updates,
)
NODES = ExportTable(
    "nodes",
    "A row a change of a node's state, as the controller saw it.",
    (
        TIME,
        Column("node", "text", "Name of the node."),
        Column("state", "text", "expected, started, joined, ready, running, stopped, died, missing, or unresponsive."),
        Column("incarnation", "integer", "Incarnation of the node, from 1; 0: not reported."),
        Column("reason", "text", "Reason for the state, if there is one."),
    ),
    _nodes,
)
FAULTS = ExportTable(
    "faults",
    "A row a fault of a node, or an action by hand, done or tried.",
    (
        Column("time_s", "number", "When the fault was done, in seconds since training started."),
        Column("asked_time_s", "number", "When the fault was due."),
        Column("back_s", "number", "How long after a heal, a thaw or a launch the server heard of the node again."),
        Column(
            "away_s",
            "number",
            "The same since the node died, or was killed, frozen or cut; until training ended where it was not back.",
        ),
        Column("done", "yes or no", "Whether it could be done, and there was something to do."),
        Column("fault", "text", "The scenario's entry, e.g. `kill-1`; else `by hand`, or `on_failure`."),
        Column("action", "text", f"One of {', '.join(ACTIONS)}."),
        Column("target", "text", "The node."),
        Column("trigger", "text", "What made it happen, e.g. `at 30s`."),
        Column("change", "text", "What of a link or a cap changed, e.g. `uplink 1mbit`."),
        Column("problem", "text", "Why it could not be done."),
        Column("no_op", "text", "Why there was nothing to do."),
    ),
    _faults,
)
PHASES = ExportTable(
    "phases",
    "A row a node and a phase: time spent in all its incarnations. Workers have phases in live runtimes alone.",
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
LINKS = ExportTable(
    "links",
    "A row a direction of a link that was asked for or that something held, as `edgebed link show --json` has it.",
    (
        Column("node", "text", "The node whose link it is."),
        Column("direction", "text", "uplink or downlink."),
        *(Column(each.field, "number", each.words) for each in IMPAIRMENTS),
        Column("latency_measured_s", "number", "Latency of the message that was delayed least, with its handling."),
        Column("asked_low_bit_s", "integer", "The lowest rate asked over time, bits a second; empty: no limit."),
        Column("asked_high_bit_s", "integer", "The highest rate asked over time."),
        Column("held_bit_s", "integer", "The rate in force, as read back last."),
        Column("burst_bytes", "integer", "What may leave at once after a silence."),
        Column("measured_bit_s", "number", "Rate of a message; for the server, in its third-busiest two seconds."),
        Column("messages", "integer", "Messages that were timed."),
        Column("time_s", "number", "Time that these were on their way, together: a duration, unlike in other tables."),
        Column("asked_s", "number", "Time that they would have taken over links exactly as asked."),
        Column("drops", "number", "Share of the packets that the queue dropped."),
        Column("mechanism", "text", "Mechanism of the link: tc, model or none."),
        Column("delay", "text", "Mechanism of latency and jitter: netem, line, or nothing."),
        Column("problems", "text", "Differences that reading back found."),
        Column("differed_s", "integer", "Number of reads, one a second, that found a difference."),
        Column("host", "text", "The host of the node; empty where there is one alone."),
        Column("mtu", "integer", "MTU of the node's interface."),
    ),
    _links,
)
HOSTS = ExportTable(
    "hosts",
    "A row two seconds of a host during training, as `edgebed events --kind hostload` has it.",
    (
        TIME,
        Column("host", "text", "The host; empty where there is one alone."),
        Column("busy", "number", "Share of all cores' time in use, 0 to 1."),
        Column("steal", "number", "Share that the machine under this one took away."),
        Column("load", "number", "Threads that ran or waited for a core, for each core."),
        Column("lag_s", "number", "How late a sleeping thread woke up: the 99th percentile."),
        Column("cores", "integer", "Cores of the host; 0: unknown."),
        Column("received_bytes_s", "number", "Bytes a second from other hosts; empty: nobody looked."),
        Column("sent_bytes_s", "number", "Bytes a second to other hosts."),
        Column("rate_bit_s", "integer", "The rate of the interface to them; 0: unknown."),
        Column(
            "slew",
            "number",
            "Share by which the host's clock ran fast, below 0 slow, by the hardware's counter; empty: not told.",
        ),
    ),
    _hosts,
)
ACCOUNTING = ExportTable(
    "accounting",
    "A row an incarnation of a worker: what became of every update that it began, or of a layer shard's steps. "
    "`begun` is the sum of all others.",
    (
        Column("worker", "text", "The worker, or the shard."),
        Column("incarnation", "integer", "Incarnation of the worker, from 1."),
        Column("begun", "integer", "Updates that it began to compute."),
        Column("applied", "integer", "Updates in the final model."),
        Column("refused", "integer", "Updates that the server refused."),
        Column("lost_in_flight", "integer", "Updates pushed and never received."),
        Column("lost_with_worker", "integer", "Updates in progress or on their way when the worker died."),
        Column("lost_with_server", "integer", "Updates not in the checkpoint that was restored."),
        Column("rolled_back", "integer", "Steps in a history that all shards gave up, to resume from a backup."),
        Column(
            "unfinished",
            "integer",
            "Updates in progress at the end; steps, too, that came too late for the final model.",
        ),
        Column("unexplained", "integer", "Updates that are missing, and nothing in the journal says why."),
    ),
    _accounting,
)
STEPS = ExportTable(
    "steps",
    "Layer-wise training: a row a mini-batch that a shard learnt from, without those that were rolled back.",
    (
        Column("time_s", "number", "When the shard reported it, in seconds since training started."),
        Column("shard", "text", "The node."),
        Column("step", "integer", "The mini-batch, from 0."),
    ),
    _steps,
    of_shards=True,
)
MODULE_LOSSES = ExportTable(
    "module_losses",
    "Layer-wise training: a row a training step of a module that predicts gradients or inputs.",
    (
        TIME,
        Column("shard", "text", "The shard with the module."),
        Column("predicts", "text", "gradient or inputs."),
        Column("step", "integer", "The mini-batch, from 0."),
        Column("loss", "number", "Squared error before the step, summed over values, averaged over the batch."),
    ),
    _module_losses,
    of_shards=True,
)
EXCHANGES = ExportTable(
    "exchanges",
    "Layer-wise training: a row a pair of nodes and a kind of message between them.",
    (
        Column("source", "text", "The sender."),
        Column("target", "text", "The receiver."),
        Column("message", "text", "The kind: activation, gradient, taken, fetch, backup, …"),
        Column("count", "integer", "Messages received."),
        Column("bytes", "integer", "Payload of these messages."),
    ),
    _exchanges,
    of_shards=True,
)
OF_TRAINING = (
    TRIALS, EVALUATIONS, CLIENTS, UPDATES, NODES, FAULTS, PHASES, LINKS, HOSTS, ACCOUNTING, STEPS, MODULE_LOSSES,
    EXCHANGES,
)  # fmt: skip
TABLES = (*OF_TRAINING, *programs.TABLES)


def tables_of(run: Run) -> tuple[ExportTable, ...]:
    """The tables that this run has."""
    if run.programs:
        return (programs.trials_table(run), *programs.TABLES, NODES, FAULTS, LINKS, HOSTS)
    has_shards = any(trial.summary.shards for trial in run.trials.values())
    return tuple(of_run(table, run) for table in OF_TRAINING if has_shards or not table.of_shards)


def of_run(table: ExportTable, run: Run) -> ExportTable:
    """A table with the columns that this run has."""
    if table is TRIALS:
        return _trials_table(_measures(run))
    made = {id(EVALUATIONS): _evaluations_table, id(CLIENTS): _clients_table}.get(id(table))
    return made(_measures(run)) if made else table
