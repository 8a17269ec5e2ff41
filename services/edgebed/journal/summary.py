"""The numbers of a trial and its verdict, computed from its plan and its series; pure.

Every number of `TrialSummary` is a measure that an expectation may name. The headline bytes are the payload of the
pushes the server applied, that of the models it sent to workers, and both together; the payload of all messages and the
bytes at the network interface stand beside them.
"""

import operator
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgebed.core.actions import BRINGS_BACK
from edgebed.core.plan import Plan
from edgebed.core.quantities import VERDICTS, largest_share
from edgebed.core.records import ShardPhases
from edgebed.core.runtimes import is_virtual
from edgebed.journal.accounts.ledger import Accounting
from edgebed.journal.folds import total
from edgebed.journal.missed_faults import missed_faults
from edgebed.journal.series import Series
from edgebed.journal.series_divergence import RAN_TO_END, Divergence
from edgebed.journal.series_faults import TimedFault
from edgebed.journal.start_up import StartUp, start_up_of
from edgebed.journal.trial_warnings import divergence, losses, resumptions, unheard_of, unmeasured
from edgebed.journal.verdict.fidelity import Fidelity, judge

COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}
TRUSTED = float(VERDICTS.index("trusted"))
STEP_MESSAGES = ("activation", "gradient", "taken", "fetch")
"""Kinds of messages that steps need, in the order of tables; others begin a history or store what was learnt."""
TENTH = 10
IDLE_END_SHARE = 0.05
"""Share of the training after the last update from which on the two times are told apart."""
JOINED_STATES = frozenset({"joined", "ready", "running", "stopped"})


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """What the scenario expects of a measure, and whether that was met."""

    measure: str
    comparison: str
    bound: float
    measured: float | None
    """The measured value; None where the trial has none, e.g. an accuracy without an evaluation."""
    met: bool | None
    """Whether the expectation was met; None: not judged, as the verdict of a simulation."""


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """Messages of one kind from one node to another, as far as they were received."""

    source: str
    target: str
    message: str
    """Kind of message: activation, gradient, taken, fetch, backup, ..."""
    count: int
    bytes: int
    """Payload in bytes."""


class TrialSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One trial in numbers. None: not measured."""

    trial: str
    method: str
    """Name of the method."""
    outcome: str
    """How the trial ended: completed, diverged (it ran to its end, and a loss was not finite), interrupted or failed;
    where the journal breaks off running, if the run is in progress, else unfinished."""
    reason: str
    """Why the trial ended so."""
    updates: int
    """Pushes that the server applied."""
    time_s: float | None
    """Seconds of training, from its start to its end, outages included; None where it did not start."""
    last_update_s: float | None = None
    """Seconds from the start of training to the last update; None without any."""
    updates_per_s: float | None
    """Updates a second, over all of the training."""
    evaluations: int
    """Number of measurements on the test set."""
    final_accuracy: float | None
    """Accuracy of the last model; None where the trial ended before its final evaluation."""
    best_accuracy: float | None
    """The highest single accuracy measured."""
    most_frequent_class: float | None = None
    """The share of the test set's most frequent class: the accuracy of who always says it. None: not known."""
    last_accuracy: float | None = None
    """The accuracy measured last, which is the final one in a trial that completed."""
    last_accuracy_version: int | None = None
    """The number of updates after which `last_accuracy` was measured."""
    final_loss: float | None
    """Loss of the last model; not finite where training diverged."""
    diverged_at: int | None = None
    """The first update at which something was not finite; None where every loss was."""
    diverged: Divergence | None = None
    """What was not finite first, and at which node."""
    ingress_bytes: int | None
    """Bytes up: payload of the pushes applied, with those that were lost with a server. None: shards push nothing."""
    egress_bytes: int | None = None
    """Bytes down: payload of all models sent to workers, the final one included, which is of no use to training and was
    paid for; as at the last point of a curve. None here and below: not reported, or shards train."""
    traffic_bytes: int | None = None
    """Bytes up and down together."""
    examples_per_update: float | None = None
    """Training examples that an update stands for, at a worker with an average share: those of a mini-batch, or of all
    local steps between two pushes. None where the plan does not say."""
    push_bytes_mean: float | None
    """Mean payload of a push, in bytes."""
    entries_mean: float | None
    """Mean number of values in a push."""
    bits: int
    """Bits that the algorithm needs for all pushes, without encoding or framing."""
    ingress_payload_bytes: int | None
    """Payload of all messages the server received."""
    egress_payload_bytes: int | None
    """Payload of all messages the server sent."""
    ingress_interface_bytes: int | None
    """Bytes received at the server's network interface, headers and acknowledgements included; None where it has none
    of its own."""
    egress_interface_bytes: int | None
    """Bytes sent at the server's network interface, headers and acknowledgements included; None where it has none of
    its own."""
    interface: str
    """Name of the server's network interface; empty where it has none of its own: the loopback's bytes are those of
    everything on the machine."""
    ack_bytes: int | None = None
    """Bytes received at the interface in packets without payload, which acknowledge the models sent."""
    pulls: int = 0
    """Number of models sent to workers."""
    pulls_changed: int = 0
    """Number of models sent to workers that held changed entries only."""
    pull_changed_bytes: int = 0
    """Payload of the models sent that held changed entries only, in bytes."""
    staleness_mean: float | None
    """Mean number of updates applied between a worker's pull and its push."""
    staleness_median: float | None
    """Median staleness: half of the pushes are no staler."""
    staleness_p90: float | None
    """90th percentile of staleness: nine tenths of the pushes are no staler."""
    staleness_max: int | None
    """Staleness of the stalest push."""
    start_up: StartUp | None = None
    """Phases of the nodes' start; None in the simulation."""
    nodes_expected: int
    """Number of nodes in the plan."""
    nodes_joined: int
    """Number of nodes that have said hello."""
    nodes_died: int
    """Number of nodes that have died, on purpose or not."""
    nodes_missing: int
    """Number of nodes that never came."""
    worker_updates_min: int
    """Updates of the worker that contributed least."""
    worker_updates_max: int
    """Updates of the worker that contributed most."""
    pushes: int
    """Pushes the workers numbered, up to the last one applied: those applied and those refused or lost in between."""
    refused: int
    """Number of messages that were understood and refused."""
    refused_by_code: dict[str, int]
    dropped: int
    """Number of messages that could not be read."""
    accounting: Accounting | None = None
    """What became of every update, or of every step of a shard; None where the journal is too old to say."""
    updates_begun: int | None = None
    """Updates that workers began to compute."""
    updates_lost: int | None = None
    """Updates that were begun and lost: in flight, with a worker or with the server."""
    updates_unexplained: int | None = None
    """Updates that were begun and of which nothing says what became."""
    steps_min: int | None = None
    """Steps of the shard that made fewest in layer-wise training, without those that were rolled back."""
    steps_per_s: float | None = None
    """Steps a second of the slowest shard, over all of the training."""
    shard_steps_per_s: dict[str, float] = {}
    """Steps a second of each shard."""
    shard_phases: dict[str, dict[str, float]] = {}
    """Shares of the time of each shard, and of the node that has all gradient modules: forward, learn, teach, copy,
    inputs and answers; in the last two it waited."""
    steps_max: int | None = None
    """Steps of the shard that made most: with `send_every` those above the first make fewer."""
    steps_rolled_back: int | None = None
    """Steps in histories that the server gave up, of all shards together, without those lost with the server. None,
    here and in the next three: the journal is too old to say."""
    steps_begun: int | None = None
    """Steps that all shards together began."""
    steps_lost: int | None = None
    """Steps that were begun and rolled back, or lost with a shard or with the server."""
    steps_unexplained: int | None = None
    """Steps that were begun and of which nothing says what became."""
    rollbacks: int | None = None
    """How often all shards resumed from a backup, or began anew."""
    matched: int = 0
    """Pairs that modules learnt from: what a shard predicted and what came for the same batch, in any epoch."""
    match_staleness_mean: float | None = None
    """Mean number of epochs that the two of these pairs were apart, whichever was older."""
    match_staleness_max: float | None = None
    """Epochs that the two of the pair furthest apart were apart."""
    gradient_loss_early: float | None = None
    """Loss of the gradient modules, what they could not predict, summed over all of them: the mean over the first tenth
    of the steps."""
    gradient_loss_late: float | None = None
    """Loss of the gradient modules, summed over all of them: the mean over the last tenth of the steps."""
    exchanged_bytes: int | None = None
    """Payload of all messages that nodes sent each other over the data network, each counted once."""
    exchanges: tuple[Exchange, ...] = ()
    """Messages that nodes sent each other, by pair and kind."""
    messages_per_step: float | None = None
    """Activations, gradients and what belongs to them, sent by all nodes together, for each step that all shards made;
    a step that was rolled back counts as well."""
    messages_per_step_by_kind: dict[str, float] = {}
    bytes_per_step: float | None = None
    """Payload of the messages of a step, in bytes."""
    log_bytes: int | None = None
    """Bytes that the server wrote to its log, with snapshots of the model, as far as it reported. None, here and in the
    next six: it kept none, or in virtual time, where a log costs nothing."""
    log_entries: int | None = None
    """Number of entries that the server appended to its log: pushes, and whatever else it is to remember."""
    log_share: float | None = None
    """Share of the server's time in which it did nothing but write its log."""
    log_syncs: int | None = None
    """Number of times that the disk was asked to have the whole log (`durability: fsync`)."""
    log_wait_s: float | None = None
    """Mean time for which messages of the server waited for the disk, of those that did; None where none did."""
    log_saved: int | None = None
    """Updates that a server which came back found in its log, and that the last checkpoint lacked."""
    log_saved_by_start: tuple[int, ...] = ()
    """`log_saved` for each start of a server that found any."""
    faults: int = 0
    """Number of faults, or actions by hand, done to nodes."""
    faults_failed: int = 0
    """Number of faults that were to be done, and could not be."""
    faults_missed: int = 0
    """Number of faults that were to be done, and did not happen, since training had ended."""
    fault_delay_s: float | None = None
    """Seconds by which faults were done later than asked, at most."""
    not_back: int = 0
    """Number of times that a node which was to be brought back was not heard of until training ended."""
    back_s: float | None = None
    """Seconds after a heal, a thaw or a launch until the server heard of the node again, or until training ended, at
    most."""
    gone: dict[str, float] = {}
    """For how many seconds each node had been away that was not back when training ended."""
    unobserved_s: float = 0.0
    """Seconds of training without a controller: it had died, and nodes went on."""
    unobserved_updates: int = 0
    """Updates that the server applied in that time."""
    fidelity: Fidelity | None = None
    """Whether the conditions that were asked for held; None where the trial never trained."""
    unheard: tuple[str, ...] = ()
    """Classes of workers that pushed, and none of whose pushes was applied, each as a clause that is a warning, too."""
    expectations: tuple[Expectation, ...] = ()
    warnings: tuple[str, ...] = ()
    """What a reader must know before trusting the numbers: nodes that died or never came unasked, what is not accounted
    for, and what was not finite in a trial that is not called diverged for it."""

    @property
    def has_idle_end(self) -> bool:
        """Whether training went on for so long after the last update that its time is worth a word."""
        return self.time_s is not None and (self.last_update_s or 0.0) < (1.0 - IDLE_END_SHARE) * self.time_s

    @property
    def is_layerwise(self) -> bool:
        """Whether workers had shards of the model: there are no pushes then, and nothing is stale."""
        return self.steps_min is not None

    @property
    def ran_to_end(self) -> bool:
        """Whether the trial ran to its end, with finite models or not."""
        return self.outcome in RAN_TO_END

    @property
    def is_sound(self) -> bool:
        """Whether the trial ran to its end and its accounting closes, so that its numbers can be relied on."""
        return self.ran_to_end and (self.accounting is None or self.accounting.closes)

    @property
    def met(self) -> bool:
        """Whether the trial completed, its accounting closes, and no expectation that is judged is missed."""
        is_missed = any(each.met is False for each in self.expectations)
        return self.outcome == "completed" and self.is_sound and not is_missed


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The whole run, as in `summary.json`."""

    scenario: str
    question: str
    runtime: str
    seed: int
    exit_code: int
    result: str = ""
    """The outcome: met, not met, completed (nothing was expected), diverged, accounting does not close, interrupted, no
    result, or running."""
    conditions: str = ""
    """The verdict on the trial whose conditions fared worst: degraded, unknown, modelled or trusted; empty where no
    trial has trained. Of a run in progress, the verdict until now."""
    causes: tuple[str, ...] = ()
    """Why conditions are degraded, e.g. host CPU."""
    badge: str = ""
    """Result and conditions on one line; for a run in progress `running`, with the conditions until now if any."""
    text: str = ""
    """The result in a sentence or two."""
    trials: tuple[TrialSummary, ...]
    not_begun: tuple[str, ...] = ()
    """Trials that were planned and did not begin."""
    notes: tuple[str, ...] = ()
    """What the controller wants a reader to know, e.g. that caps are not held."""


def summarise(plan: Plan, series: Series) -> TrialSummary:
    """The numbers of one trial; works for a journal that breaks off anywhere, also for an empty one."""
    updates, evaluations = series.updates, series.evaluations
    num_updates = len(updates)
    trained_s = series.trained_s if series.trial else None
    workers = [node.node for node in plan.workers()]
    contributions = dict.fromkeys(workers, 0) | series.updates_by_worker
    states: dict[str, set[str]] = {}
    for _, node in series.nodes:
        states.setdefault(node.name, set()).add(node.state)
    traffic = series.traffic[-1][1] if series.traffic else None
    own = traffic if traffic and traffic.has_own_interface else None
    first = series.first_not_finite if series.has_diverged else None
    unheard = tuple(unheard_of(plan, series))
    summary = TrialSummary(
        trial=plan.trial,
        method=plan.nodes[0].method.name if plan.nodes else "",
        outcome=series.outcome,
        reason=series.ended.reason if series.ended else "the journal breaks off",
        updates=num_updates,
        time_s=trained_s,
        last_update_s=float(updates.t[-1]) if num_updates else None,
        updates_per_s=num_updates / trained_s if trained_s else None,
        evaluations=len(evaluations),
        final_accuracy=evaluations.of_last_model().get("accuracy"),
        best_accuracy=evaluations.best().get("accuracy"),
        most_frequent_class=most[1] if (most := largest_share(plan.evaluator.label_counts)) else None,
        last_accuracy=float(evaluations.values[-1]) if len(evaluations) else None,
        last_accuracy_version=int(evaluations.version[-1]) if len(evaluations) else None,
        final_loss=evaluations.of_last_model().get("loss"),
        diverged_at=first.update if first else None,
        diverged=first,
        ingress_bytes=None if series.resumed else series.ingress_bytes,
        **_bytes(series),
        examples_per_update=_examples_per_update(plan),
        push_bytes_mean=_mean(updates.bytes),
        entries_mean=_mean(updates.entries),
        bits=int(updates.bits.sum()),
        ingress_payload_bytes=traffic.ingress_payload if traffic else None,
        egress_payload_bytes=traffic.egress_payload if traffic else None,
        ingress_interface_bytes=own.ingress_interface if own else None,
        egress_interface_bytes=own.egress_interface if own else None,
        interface=own.interface if own else "",
        ack_bytes=own.ack_bytes if own else None,
        pulls=traffic.pulls if traffic else 0,
        pulls_changed=traffic.pulls_changed if traffic else 0,
        pull_changed_bytes=traffic.pull_changed_bytes if traffic else 0,
        staleness_mean=_mean(updates.staleness),
        staleness_median=float(np.median(updates.staleness)) if num_updates else None,
        staleness_p90=float(np.quantile(updates.staleness, 0.9)) if num_updates else None,
        staleness_max=int(updates.staleness.max()) if num_updates else None,
        start_up=start_up_of(plan, series),
        nodes_expected=len(plan.nodes),
        nodes_joined=sum(bool(seen & JOINED_STATES) for seen in states.values()),
        nodes_died=sum("died" in seen for seen in states.values()),
        nodes_missing=sum("missing" in seen for seen in states.values()),
        worker_updates_min=min(contributions.values(), default=0),
        worker_updates_max=max(contributions.values(), default=0),
        pushes=_numbered_pushes(series),
        refused=sum(series.refused.values()),
        refused_by_code=series.refused,
        dropped=sum(series.dropped.values()),
        **_accounting(series),
        **_shards(plan, series),
        **_log(series),
        **_faults(plan, series),
        gone=series.gone,
        unobserved_s=series.unobserved_s,
        unobserved_updates=series.unobserved_updates,
        fidelity=judge(plan, series),
        unheard=unheard,
        warnings=(
            *losses(series, set(workers)),
            *unheard,
            *divergence(series),
            *resumptions(series),
            *unmeasured(plan, series),
        ),
    )
    is_simulated = series.trial is not None and is_virtual(series.trial.runtime)
    return msgspec.structs.replace(summary, expectations=_judge(plan, summary, is_simulated=is_simulated))


def _bytes(series: Series) -> dict[str, Any]:
    """Bytes that went down, and in both directions; nothing for shards, and for a trial that has reported nothing."""
    down = series.egress_bytes
    return {} if down is None else {"egress_bytes": down, "traffic_bytes": series.ingress_bytes + down}


def _examples_per_update(plan: Plan) -> float | None:
    """Training examples in an update, by the plan, at a worker with average data; for shards a mini-batch."""
    workers = plan.workers()
    if workers and workers[0].method.is_layerwise:
        return float(workers[0].task.batch_size)
    examples = plan.server.epochs_a_push * sum(worker.num_examples for worker in workers) if workers else 0.0
    return round(examples, 6) or None


def _accounting(series: Series) -> dict[str, Any]:
    """Fields on what became of the updates, or of the steps of shards."""
    accounting = series.accounting
    if accounting is None:
        return {}
    total, unit = accounting.total, "steps" if series.resumed else "updates"
    return {
        "accounting": accounting,
        **({"steps_rolled_back": total.rolled_back} if series.resumed else {}),
        f"{unit}_begun": total.begun,
        f"{unit}_lost": total.lost,
        f"{unit}_unexplained": total.unexplained,
    }


def _shards(plan: Plan, series: Series) -> dict[str, Any]:
    """Fields on what shards of a model did."""
    if not series.resumed:
        return {}
    batches = next((node.shard.batches for node in plan.workers() if node.shard), None)
    epochs = series.lags / (batches or 1)
    everybody = [*series.traffic_of.values(), *(traffic for _, traffic in series.traffic[-1:])]
    rates = {node: count / series.trained_s for node, count in series.steps_learnt.items() if series.trained_s > 0.0}
    return {
        "steps_per_s": min(rates.values()) if len(rates) == len(plan.workers()) else None,
        "shard_steps_per_s": rates,
        "shard_phases": {node: _shares(phases) for node, phases in sorted(series.shard_phases.items())},
        "steps_min": min((len(steps) for steps in series.steps.values()), default=0),
        "steps_max": max((len(steps) for steps in series.steps.values()), default=0),
        "rollbacks": len(series.resumed) - 1,
        "matched": len(epochs),
        "match_staleness_mean": float(epochs.mean()) if len(epochs) else None,
        "match_staleness_max": float(epochs.max()) if len(epochs) else None,
        **_gradient_losses(series),
        "exchanged_bytes": sum(traffic.egress_payload for traffic in everybody),
        **_messages(plan, series),
    }


def _gradient_losses(series: Series) -> dict[str, float]:
    """Losses of gradient modules, over the time in which all of them learnt."""
    losses = [each.loss for each in series.module_losses.values()]
    taught = min(map(len, losses), default=0)
    if not taught:
        return {}
    total, tenth = np.sum([loss[:taught] for loss in losses], axis=0), max(1, taught // TENTH)
    return {"gradient_loss_early": float(total[:tenth].mean()), "gradient_loss_late": float(total[-tenth:].mean())}


def _shares(phases: ShardPhases) -> dict[str, float]:
    spent = {name.removesuffix("_s"): getattr(phases, name) for name in phases.__struct_fields__}
    total = sum(spent.values())
    return {name: value / total for name, value in spent.items()} if total > 0.0 else {}


def _messages(plan: Plan, series: Series) -> dict[str, Any]:
    """Fields on the messages that steps needed."""
    exchanges = tuple(
        Exchange(source=source, target=target, message=message, count=record.count, bytes=record.bytes)
        for (source, target, message), record in sorted(series.messages.items())
    )
    if not series.steps_made or not exchanges:
        return {"exchanges": exchanges}
    steps = series.steps_made / len(plan.workers())
    counts: Counter[str] = Counter()
    for exchange in exchanges:
        counts[exchange.message] += exchange.count
    needed = {kind: counts[kind] / steps for kind in STEP_MESSAGES if counts[kind]}
    size = sum(exchange.bytes for exchange in exchanges if exchange.message in STEP_MESSAGES)
    return {
        "exchanges": exchanges,
        "messages_per_step": sum(needed.values()),
        "messages_per_step_by_kind": needed,
        "bytes_per_step": size / steps,
    }


def _log(series: Series) -> dict[str, Any]:
    """Fields on what the server's log took, and what it saved."""
    if not series.appended:
        return {}
    appended = total(series.appended)
    return {
        "log_bytes": appended.bytes,
        "log_entries": appended.entries,
        "log_share": appended.append_s / appended.time_s if appended.time_s > 0.0 else None,
        "log_syncs": appended.syncs,
        "log_wait_s": appended.waited_s / appended.waited if appended.waited else None,
        "log_saved": appended.saved,
        "log_saved_by_start": tuple(life.saved for life in series.appended if life.saved),
    }


def _faults(plan: Plan, series: Series) -> dict[str, Any]:
    """Fields on what was done to nodes, and what was not."""
    done = [each for each in series.faults if each.was_done]
    return {
        "faults": len(done),
        "faults_failed": sum(bool(each.record.problem) for each in series.faults),
        "faults_missed": sum(not each.moot for each in missed_faults(plan, series)),
        "fault_delay_s": max((each.delay_s for each in done), default=None),
        "not_back": sum(each.record.action in BRINGS_BACK and each.is_to_end for each in done),
        "back_s": max((after_s for each in done if (after_s := _back_s(each, series)) is not None), default=None),
    }


def _back_s(done: TimedFault, series: Series) -> float | None:
    """Seconds after an action that was to bring a node back until it was, or until training ended without it."""
    awaited = done.record.action in BRINGS_BACK and done.is_to_end
    return series.trained_s - done.t if awaited else done.back_s


def _judge(plan: Plan, summary: TrialSummary, *, is_simulated: bool) -> tuple[Expectation, ...]:
    judged = []
    for measure, comparison, bound in plan.expectations:
        value = getattr(summary, measure, None)
        measured = float(value) if isinstance(value, int | float) else None
        met = measured is not None and COMPARISONS[comparison](measured, bound)
        met = met and not (measure == "back_s" and summary.not_back)  # it is a least time then
        judged.append(Expectation(measure=measure, comparison=comparison, bound=bound, measured=measured, met=met))
    if plan.expects_trusted:
        verdict = summary.fidelity.verdict if summary.fidelity else "unknown"
        measured = None if verdict == "unknown" else float(VERDICTS.index(verdict))
        judged.append(
            Expectation(
                measure="verdict", comparison="==", bound=TRUSTED, measured=measured,
                met=None if is_simulated else measured == TRUSTED,
            )
        )  # fmt: skip
    return tuple(judged)


def _numbered_pushes(series: Series) -> int:
    """Number of pushes that workers made: each counts its own from 0, anew in each incarnation."""
    highest: dict[tuple[int, int], int] = {}
    updates = series.updates
    for worker, incarnation, step in zip(
        updates.worker.tolist(), updates.incarnation.tolist(), updates.step.tolist(), strict=True
    ):
        life = (worker, incarnation)
        highest[life] = max(step, highest.get(life, -1))
    return sum(step + 1 for step in highest.values())


def _mean(values: NDArray[np.int64]) -> float | None:
    return float(values.mean()) if len(values) else None
