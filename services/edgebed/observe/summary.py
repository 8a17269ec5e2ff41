"""The numbers of a trial and its verdict, computed from its plan and its series; pure.

Every number of `TrialSummary` is a measure that an expectation may name. The headline bytes are the payload of the
pushes the server applied, that of the models it sent to workers, and both together; the payload of all messages and the
bytes at the network interface stand beside them.
"""

import operator
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgebed.emulation.fidelity import Fidelity, judge
from edgebed.observe.ledger import Accounting
from edgebed.observe.missed_faults import missed_faults
from edgebed.observe.quantities import VERDICTS, count_text
from edgebed.observe.series import Series
from edgebed.observe.series_divergence import RAN_TO_END, Divergence
from edgebed.observe.series_faults import unasked_losses
from edgebed.observe.start_up import StartUp, start_up_of
from edgebed.roles.records import ShardPhases
from edgebed.scenario.plan import Plan

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
"""Kinds of messages that steps need, in the order of tables; others begin a history or keep what was learnt."""
TENTH = 10
LOST_MAX = 3
"""Nodes that are named with the reason why they are gone."""
JOINED_STATES = frozenset({"joined", "ready", "running", "stopped"})


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """What the scenario expects of a measure, and what came of it."""

    measure: str
    comparison: str
    bound: float
    measured: float | None
    """None where the trial has no such measurement, e.g. an accuracy without an evaluation."""
    met: bool | None
    """None: not judged, as the verdict of a simulation."""


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """What one node sent another of one kind of message, as far as it was received."""

    source: str
    target: str
    message: str
    """The kind: activation, gradient, taken, fetch, backup, ..."""
    count: int
    bytes: int
    """Payload."""


class TrialSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One trial in numbers. None: not measured."""

    trial: str
    method: str
    """Its name."""
    outcome: str
    """completed, diverged (it went on to its end, and a loss was not finite), interrupted or failed; where the journal
    breaks off running, if the run goes on, else unfinished"""
    reason: str
    """Why it ended so."""
    updates: int
    """Pushes the server applied."""
    time_s: float | None
    """From the start of training to the last update; None without any."""
    updates_per_s: float | None
    """Between the first update and the last, so that starting up does not count."""
    evaluations: int
    """Measurements on the test set."""
    final_accuracy: float | None
    """Of the last model; None where the trial ended before its final evaluation."""
    best_accuracy: float | None
    """The highest single measurement."""
    last_accuracy: float | None = None
    """The one measured last, which is the final one in a trial that completed."""
    last_accuracy_version: int | None = None
    """The number of updates that it was measured after."""
    final_loss: float | None
    """Of the last model; not finite where training diverged."""
    diverged_at: int | None = None
    """The first update at which something was not finite; None where every loss was."""
    diverged: Divergence | None = None
    """What it was, and at which node."""
    ingress_bytes: int | None
    """Up: payload of the pushes applied, of those that were lost with a server as well. None: shards push nothing."""
    egress_bytes: int | None = None
    """Down: payload of all models sent to workers, the final one included, which is of no use to training and was paid
    for; as at the last point of a curve. None here and below: not told, or of shards."""
    traffic_bytes: int | None = None
    """Up and down together."""
    examples_per_update: float | None = None
    """Training examples that an update stands for, of a worker with an average share: those of a mini-batch, or of all
    local steps between two pushes. None where the plan does not tell."""
    push_bytes_mean: float | None
    """Payload of a push."""
    entries_mean: float | None
    """Values in a push."""
    bits: int
    """What the algorithm needs for all pushes, without encoding or framing."""
    ingress_payload_bytes: int | None
    """Payload of all messages the server received."""
    egress_payload_bytes: int | None
    """Payload of all messages it sent."""
    ingress_interface_bytes: int | None
    """At the server's network interface, headers and acknowledgements included; None where it has none of its own."""
    egress_interface_bytes: int | None
    """Likewise, of what it sent."""
    interface: str
    """Its name; empty where it has none of its own: the loopback's bytes are those of everything on the machine."""
    ack_bytes: int | None = None
    """Of what came to the interface: packets without payload, which acknowledge the models sent."""
    pulls: int = 0
    """Models sent to workers."""
    pulls_changed: int = 0
    """Those of them that held changed entries only."""
    pull_changed_bytes: int = 0
    """Their payload."""
    staleness_mean: float | None
    """Updates applied between a worker's pull and its push."""
    staleness_median: float | None
    """Half of the pushes are no staler."""
    staleness_p90: float | None
    """Nine tenths of the pushes are no staler."""
    staleness_max: int | None
    """Of the stalest push."""
    start_up: StartUp | None = None
    """How long the nodes took to come up; None in the simulation."""
    nodes_expected: int
    """Nodes of the plan."""
    nodes_joined: int
    """Nodes that have said hello."""
    nodes_died: int
    """Nodes that have died, on purpose or not."""
    nodes_missing: int
    """Nodes that never came."""
    worker_updates_min: int
    """Updates of the worker that contributed least."""
    worker_updates_max: int
    """Of the one that contributed most."""
    pushes: int
    """Pushes the workers numbered, up to the last one applied: those applied and those refused or lost in between."""
    refused: int
    """Messages that were understood and refused."""
    refused_by_code: dict[str, int]
    dropped: int
    """Messages that could not be read."""
    accounting: Accounting | None = None
    """What became of every update, or of every step of a shard; None where the journal is too old to tell."""
    updates_begun: int | None = None
    """Updates that workers began to compute."""
    updates_lost: int | None = None
    """Of them, those lost in flight, with a worker or with the server."""
    updates_unexplained: int | None = None
    """Of them, those of which nothing says what became."""
    steps_min: int | None = None
    """Layer-wise training: steps of the shard that made fewest, without those that were rolled back."""
    steps_per_s: float | None = None
    """Of the slowest shard, from its first step to its last: neither the start-up counts nor the last evaluation."""
    shard_steps_per_s: dict[str, float] = {}
    """Of each shard."""
    shard_phases: dict[str, dict[str, float]] = {}
    """Of each shard, and of the node that has all gradient modules: shares of its time, forward, learn, teach, copy,
    inputs and answers, of which it waited in the last two."""
    steps_max: int | None = None
    """Of the shard that made most: with `send_every` those above the first make fewer."""
    steps_rolled_back: int | None = None
    """Steps in histories that the server gave up, of all shards together; those lost with the server are not among
    them. None, here and in the next three: the journal is too old to tell."""
    steps_begun: int | None = None
    """Steps that shards began, all together."""
    steps_lost: int | None = None
    """Of them, those rolled back, lost with a shard or with the server."""
    steps_unexplained: int | None = None
    """Of them, those of which nothing says what became."""
    rollbacks: int | None = None
    """How often all shards went on from a backup, or anew."""
    matched: int = 0
    """Pairs of what a shard predicted and what came of the same batch, in any epoch, that modules learnt of."""
    match_staleness_mean: float | None = None
    """Epochs that the two of these pairs were apart, whichever was older."""
    match_staleness_max: float | None = None
    """Likewise, of the pair furthest apart."""
    gradient_loss_early: float | None = None
    """What gradient modules could not predict, the sum over all of them: the mean over the first tenth of the steps."""
    gradient_loss_late: float | None = None
    """Likewise, over the last tenth."""
    exchanged_bytes: int | None = None
    """Payload of all messages that nodes sent each other over the data network, each counted once."""
    exchanges: tuple[Exchange, ...] = ()
    """What it was, by pair and kind."""
    messages_per_step: float | None = None
    """Activations, gradients and what belongs to them, of all nodes together, for each step that all shards made; a
    step that was rolled back counts as well."""
    messages_per_step_by_kind: dict[str, float] = {}
    bytes_per_step: float | None = None
    """Payload of these messages."""
    faults: int = 0
    """Things done to nodes on purpose."""
    faults_failed: int = 0
    """Things that were to be done, and could not be."""
    faults_missed: int = 0
    """Things that were to be done, and did not happen, since training had ended."""
    fault_delay_s: float | None = None
    """How much later than asked they were done, at most."""
    back_s: float | None = None
    """After a heal, a thaw or a launch, how long until the server heard of the node again, at most."""
    fidelity: Fidelity | None = None
    """Whether the conditions that were asked for held; None where it never trained."""
    expectations: tuple[Expectation, ...] = ()
    warnings: tuple[str, ...] = ()
    """What a reader must know before trusting the numbers: nodes that died or never came unasked, what is not accounted
    for, and what was not finite in a trial that is not called diverged for it."""

    @property
    def is_layerwise(self) -> bool:
        """Whether workers had shards of the model: there are no pushes then, and nothing is stale."""
        return self.steps_min is not None

    @property
    def ran_to_end(self) -> bool:
        """Whether it went on to its end, with models that are finite or not."""
        return self.outcome in RAN_TO_END

    @property
    def is_sound(self) -> bool:
        """Whether it went on to its end and its books close, so that its numbers can be relied on."""
        return self.ran_to_end and (self.accounting is None or self.accounting.closes)

    @property
    def met(self) -> bool:
        """Whether the trial completed, its books close, and none of its expectations that are judged is missed."""
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
    """met, not met, completed (nothing was expected), diverged, accounting does not close, interrupted, no result, or
    running"""
    conditions: str = ""
    """The verdict on the trial whose conditions fared worst: degraded, unknown, modelled or trusted; empty where no
    trial has trained. Of a run in progress, that until now."""
    causes: tuple[str, ...] = ()
    """Why conditions are degraded, e.g. host CPU."""
    badge: str = ""
    """Result and conditions on one line; of a run in progress `running`, with the conditions until now if any."""
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
    span_s = float(updates.t[-1] - updates.t[0]) if num_updates else 0.0
    workers = [node.node for node in plan.workers()]
    contributions = dict.fromkeys(workers, 0) | series.updates_by_worker
    states: dict[str, set[str]] = {}
    for _, node in series.nodes:
        states.setdefault(node.name, set()).add(node.state)
    traffic = series.traffic[-1][1] if series.traffic else None
    own = traffic if traffic and traffic.has_own_interface else None
    first = series.first_not_finite if series.has_diverged else None
    summary = TrialSummary(
        trial=plan.trial,
        method=plan.nodes[0].method.name if plan.nodes else "",
        outcome=series.outcome,
        reason=series.ended.reason if series.ended else "the journal breaks off",
        updates=num_updates,
        time_s=float(updates.t[-1]) if num_updates else None,
        updates_per_s=(num_updates - 1) / span_s if span_s > 0 else None,
        evaluations=len(evaluations),
        final_accuracy=series.final_accuracy,
        best_accuracy=series.best_accuracy,
        last_accuracy=float(evaluations.accuracy[-1]) if len(evaluations) else None,
        last_accuracy_version=int(evaluations.version[-1]) if len(evaluations) else None,
        final_loss=series.final_loss,
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
        **_books(series),
        **_shards(plan, series),
        **_faults(plan, series),
        fidelity=judge(plan, series),
        warnings=(*_losses(series, set(workers)), *_divergence(series), *_doubts(series)),
    )
    is_simulated = series.trial is not None and series.trial.runtime == "simulation"
    return msgspec.structs.replace(summary, expectations=_judge(plan, summary, is_simulated=is_simulated))


def _bytes(series: Series) -> dict[str, Any]:
    """What went down, and with what went up; nothing of shards, and of a trial that has told nothing."""
    down = series.egress_bytes
    return {} if down is None else {"egress_bytes": down, "traffic_bytes": series.ingress_bytes + down}


def _examples_per_update(plan: Plan) -> float | None:
    """As the plan has it, of a worker with as much data as there is on average; of shards a mini-batch."""
    workers = plan.workers()
    if workers and workers[0].method.is_layerwise:
        return float(workers[0].task.batch_size)
    examples = plan.nodes[0].epochs_a_push * sum(worker.num_examples for worker in workers) if workers else 0.0
    return round(examples, 6) or None


def _books(series: Series) -> dict[str, Any]:
    """What became of the updates, or of the steps of shards."""
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
    """What shards of a model did."""
    if not series.resumed:
        return {}
    batches = next((node.shard.batches for node in plan.workers() if node.shard), None)
    epochs = series.lags / (batches or 1)
    everybody = [*series.traffic_of.values(), *(traffic for _, traffic in series.traffic[-1:])]
    rates = [series.steps_per_s.get(node.node) for node in plan.workers()]
    known = [rate for rate in rates if rate is not None]
    return {
        "steps_per_s": min(known) if known and len(known) == len(rates) else None,
        "shard_steps_per_s": series.steps_per_s,
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
    """Of modules that were taught, as long as all of them were."""
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
    """What steps needed of messages."""
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


def _faults(plan: Plan, series: Series) -> dict[str, Any]:
    """What was done to nodes, and what was not."""
    done = [each for each in series.faults if each.was_done]
    return {
        "faults": len(done),
        "faults_failed": sum(bool(each.record.problem) for each in series.faults),
        "faults_missed": sum(not each.moot for each in missed_faults(plan, series)),
        "fault_delay_s": max((each.delay_s for each in done), default=None),
        "back_s": max((each.back_s for each in done if each.back_s is not None), default=None),
    }


def _losses(series: Series, workers: set[str]) -> Iterator[str]:
    """How many workers, and how many other nodes, died or never came though nobody asked for it; the first reasons."""
    losses = unasked_losses(series.nodes, series.faults)
    for noun, lost in (
        ("worker", [node for node in losses if node.name in workers]),
        ("node", [node for node in losses if node.name not in workers]),
    ):
        died, missing = (len({node.name for node in lost if node.state == state}) for state in ("died", "missing"))
        if died or missing:
            yield f"{count_text(died, noun)} died, {missing} missing"
    last = list({node.name: node for node in losses}.values())
    for node in last[:LOST_MAX]:
        yield f"{node.name} {node.state}: {node.reason}" if node.reason else f"{node.name} {node.state}"
    if len(last) > LOST_MAX:
        yield f"and {len(last) - LOST_MAX} more"


def _doubts(series: Series) -> Iterator[str]:
    """Why the books do not close."""
    for problem in series.accounting.problems if series.accounting else ():
        yield f"not every {'step' if series.resumed else 'update'} is accounted for: {problem}"


def _divergence(series: Series) -> Iterator[str]:
    """What was not finite in a trial that is not called diverged for it."""
    first = series.first_not_finite
    if first and series.outcome != "diverged":
        since, rest = ("since", "") if series.has_diverged else ("at", ", though every loss is")
        yield f"{first.text} is not finite {since} update {first.update:,}{rest}"


def _judge(plan: Plan, summary: TrialSummary, *, is_simulated: bool) -> tuple[Expectation, ...]:
    judged = []
    for measure, comparison, bound in plan.expectations:
        value = getattr(summary, measure, None)
        measured = float(value) if isinstance(value, int | float) else None
        met = measured is not None and COMPARISONS[comparison](measured, bound)
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
    """Each worker counts its pushes from 0, anew in each incarnation, so its highest number tells how many it made."""
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
