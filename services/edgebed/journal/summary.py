"""The numbers of a trial and its verdict, computed from its plan and its series; pure.

What each number is, `core/measures/trial.py` declares; every one of them is a measure that an expectation may name.
"""

import operator
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgebed.core.actions import BRINGS_BACK
from edgebed.core.measures.clients import place_of
from edgebed.core.measures.task import TaskMeasure
from edgebed.core.measures.trial import MEASURES, OF_TASK, CommonMeasures, Exchange, ServerMeasures, ShardMeasures
from edgebed.core.plan import Comparison, Plan, TrainingPlan
from edgebed.core.quantities import VERDICTS
from edgebed.core.records import ShardPhases, Traffic
from edgebed.core.runtimes import is_virtual
from edgebed.journal.accounts.ledger import Accounting
from edgebed.journal.columns.clients import ClientSummary, client_summary
from edgebed.journal.folds import total
from edgebed.journal.missed_faults import missed_faults
from edgebed.journal.series import Series
from edgebed.journal.series_divergence import RAN_TO_END, Divergence
from edgebed.journal.series_faults import TimedFault
from edgebed.journal.start_up import StartUp, start_up_of
from edgebed.journal.trial_warnings import divergence, losses, resumptions, shares, unheard_of, unmeasured
from edgebed.journal.verdict.fidelity import Fidelity, judge
from edgebed.learning.objectives.registry import most_frequent_class

COMPARISONS: dict[Comparison, Callable[[float, float], bool]] = {
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
    """The measured value; None where the trial has none, e.g. what the task measures without an evaluation."""
    met: bool | None
    """Whether the expectation was met; None: not judged, as the verdict of a simulation."""


class TrialSummary(CommonMeasures, frozen=True, kw_only=True):
    """One trial in numbers, with those of its family in a part of their own. None: not measured."""

    trial: str
    method: str
    """Name of the method."""
    outcome: str
    """How the trial ended: completed, diverged (it ran to its end, and a loss was not finite), interrupted or failed;
    where the journal breaks off running, if the run is in progress, else unfinished."""
    reason: str
    """Why the trial ended so."""
    measures: tuple[TaskMeasure, ...] = ()
    """What the task measures, the headline first."""
    final: Mapping[str, float | None] = msgspec.field(default_factory=dict)
    """What was measured of the last model on the test part, by measure; empty without a final evaluation."""
    best: Mapping[str, float | None] = msgspec.field(default_factory=dict)
    """Each measure on the test part, of the version that was best by it, on the validation part where there is one;
    empty without an evaluation."""
    last: Mapping[str, float | None] = msgspec.field(default_factory=dict)
    """What was measured last on the test part, which is what is final in a trial that completed."""
    validated: Mapping[str, float | None] = msgspec.field(default_factory=dict)
    """The best value of each measure on the validation part; empty where there is none."""
    clients: ClientSummary | None = None
    """What was measured client by client; None: nothing was."""
    server: ServerMeasures | None = None
    """The numbers of workers that push to a parameter server; None where they have shards."""
    shards: ShardMeasures | None = None
    """The numbers of workers that have shards of the model; None where they push to a parameter server."""
    diverged: Divergence | None = None
    """What was not finite first, and at which node."""
    interface: str
    """Name of the server's network interface; empty where it has none of its own: the loopback's bytes are those of
    everything on the machine."""
    start_up: StartUp | None = None
    """Phases of the nodes' start; None in the simulation."""
    refused_by_code: dict[str, int]
    accounting: Accounting | None = None
    """What became of every update, or of every step of a shard; None where no node reported any."""
    gone: dict[str, float] = msgspec.field(default_factory=dict)
    """For how many seconds each node had been away that was not back when training ended."""
    fidelity: Fidelity | None = None
    """Whether the conditions that were asked for held; None where the trial never trained."""
    unheard: tuple[str, ...] = ()
    """Classes of workers that pushed, and none of whose pushes was applied, each as a clause that is a warning, too."""
    expectations: tuple[Expectation, ...] = ()
    warnings: tuple[str, ...] = ()
    """What a reader must know before trusting the numbers: nodes that died or never came unasked, what is not accounted
    for, and what was not finite in a trial that is not called diverged for it."""

    @property
    def headline(self) -> TaskMeasure:
        """The measure that results are told by."""
        return self.measures[0]

    @property
    def own(self) -> ServerMeasures | ShardMeasures | None:
        """The numbers of the trial's family."""
        return self.server or self.shards

    def value(self, measure: str) -> float | None:
        """A measure's value by its name; None where it was not measured, or is one of another family."""
        of, _, name = measure.partition("_")
        if of in OF_TASK and measure not in MEASURES:
            measured: Mapping[str, float | None] = getattr(self, of)
            return measured.get(name)
        if found := place_of(measure, self.measures):
            part, statistic, of_task = found
            spread = getattr(self.clients, part).get(of_task) if self.clients else None
            return getattr(spread, statistic) if spread else None
        parts = {"all": self, "server": self.server, "shards": self.shards}
        value: float | None = getattr(parts[MEASURES[measure].family], measure, None)
        return value

    @property
    def has_idle_end(self) -> bool:
        """Whether training went on for so long after the last update that its time is worth a word."""
        return self.time_s is not None and (self.last_update_s or 0.0) < (1.0 - IDLE_END_SHARE) * self.time_s

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


def summarise(plan: TrainingPlan, series: Series) -> TrialSummary:
    """The numbers of one trial; works for a journal that breaks off anywhere, also for an empty one."""
    updates, evaluations = series.updates, series.evaluations
    num_updates = len(updates)
    trained_s = series.trained_s if series.trial else None
    workers = [node.node for node in plan.workers()]
    is_sharded = not plan.pushes or bool(series.shards.resumed)
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
        measures=evaluations.measures,
        final=evaluations.of_last_model(),
        best=evaluations.best(),
        last=evaluations.last(),
        validated=evaluations.validated(),
        chosen_version=evaluations.chosen_version(),
        clients=client_summary(plan, series.clients),
        most_frequent_class=most[1] if (most := most_frequent_class(plan)) else None,
        last_version=int(evaluations.version[-1]) if len(evaluations) else None,
        diverged_at=first.update if first else None,
        diverged=first,
        server=None if is_sharded else _server(series, dict.fromkeys(workers, 0) | series.updates_by_worker),
        shards=_shards(plan, series) if is_sharded else None,
        examples_per_update=_examples_per_update(plan),
        ingress_payload_bytes=traffic.ingress_payload if traffic else None,
        egress_payload_bytes=traffic.egress_payload if traffic else None,
        ingress_interface_bytes=own.ingress_interface if own else None,
        egress_interface_bytes=own.egress_interface if own else None,
        interface=own.interface if own else "",
        ack_bytes=own.ack_bytes if own else None,
        start_up=start_up_of(plan, series),
        **node_numbers(plan, series),
        refused=sum(series.server.refused.values()),
        refused_by_code=series.server.refused,
        dropped=sum(series.dropped.values()),
        accounting=series.accounting,
        **_log(series),
        **fault_numbers(plan, series),
        **_back(series),
        gone=series.gone,
        unobserved_s=series.unobserved_s,
        unobserved_updates=series.server.unobserved_updates,
        fidelity=judge(plan, series),
        unheard=unheard,
        warnings=(
            *losses(series, set(workers)),
            *unheard,
            *divergence(series),
            *shares(plan, series),
            *resumptions(series),
            *unmeasured(plan, series),
        ),
    )
    is_simulated = series.trial is not None and is_virtual(series.trial.runtime)
    return msgspec.structs.replace(summary, expectations=judged(plan, summary, is_simulated=is_simulated))


def _server(series: Series, contributions: Mapping[str, int]) -> ServerMeasures:
    """The numbers of workers that push, with the updates that each contributed."""
    updates, down = series.updates, series.server.egress_bytes
    traffic = series.traffic[-1][1] if series.traffic else Traffic(ingress_payload=0, egress_payload=0)
    count = len(updates)
    return ServerMeasures(
        ingress_bytes=series.server.ingress_bytes,
        egress_bytes=down,
        traffic_bytes=None if down is None else series.server.ingress_bytes + down,
        beside_up_bytes=series.server.beside_bytes[0] or None,
        beside_down_bytes=series.server.beside_bytes[1] or None,
        push_bytes_mean=_mean(updates.bytes),
        entries_mean=_mean(updates.entries),
        bits=int(updates.bits.sum()),
        pulls=traffic.pulls,
        pulls_changed=traffic.pulls_changed,
        pull_changed_bytes=traffic.pull_changed_bytes,
        staleness_mean=_mean(updates.staleness),
        staleness_median=float(np.median(updates.staleness)) if count else None,
        staleness_p90=float(np.quantile(updates.staleness, 0.9)) if count else None,
        staleness_max=int(updates.staleness.max()) if count else None,
        worker_updates_min=min(contributions.values(), default=0),
        worker_updates_max=max(contributions.values(), default=0),
        pushes=_numbered_pushes(series),
        **_accounted(series, "updates"),
    )


def _examples_per_update(plan: TrainingPlan) -> float | None:
    """Training examples in an update, by the plan, at a worker with average data; for shards a mini-batch."""
    workers = plan.workers()
    if workers and not plan.pushes:
        return float(workers[0].task.batch_size)
    examples = plan.server.epochs_a_push * sum(worker.num_examples for worker in workers) if workers else 0.0
    return round(examples, 6) or None


def _accounted(series: Series, unit: str) -> dict[str, Any]:
    """Fields on what became of the updates, or of the steps of shards."""
    if series.accounting is None:
        return {}
    total = series.accounting.total
    return {f"{unit}_begun": total.begun, f"{unit}_lost": total.lost, f"{unit}_unexplained": total.unexplained}


def _shards(plan: TrainingPlan, series: Series) -> ShardMeasures:
    """The numbers of what shards of a model did."""
    batches = next((node.shard.batches for node in plan.workers() if node.shard), None)
    shards, trained_s = series.shards, series.trained_s
    epochs = shards.lags / (batches or 1)
    everybody = [*series.traffic_of.values(), *(traffic for _, traffic in series.traffic[-1:])]
    rates = {node: count / trained_s for node, count in shards.steps_learnt.items() if trained_s > 0.0}
    return ShardMeasures(
        steps_per_s=min(rates.values()) if len(rates) == len(plan.workers()) else None,
        shard_steps_per_s=rates,
        shard_phases={node: _shares(phases) for node, phases in sorted(series.shards.phases.items())},
        steps_min=min((len(steps) for steps in series.shards.steps.values()), default=0),
        steps_max=max((len(steps) for steps in series.shards.steps.values()), default=0),
        steps_rolled_back=series.accounting.total.rolled_back if series.accounting else None,
        rollbacks=max(0, len(series.shards.resumed) - 1),
        matched=len(epochs),
        match_staleness_mean=float(epochs.mean()) if len(epochs) else None,
        match_staleness_max=float(epochs.max()) if len(epochs) else None,
        exchanged_bytes=sum(traffic.egress_payload for traffic in everybody),
        **_gradient_losses(series),
        **_accounted(series, "steps"),
        **_messages(plan, series),
    )


def _gradient_losses(series: Series) -> dict[str, Any]:
    """Losses of gradient modules, over the time in which all of them learnt."""
    losses = [each.loss for each in series.shards.module_losses.values()]
    taught = min(map(len, losses), default=0)
    if not taught:
        return {}
    total, tenth = np.sum([loss[:taught] for loss in losses], axis=0), max(1, taught // TENTH)
    return {"gradient_loss_early": float(total[:tenth].mean()), "gradient_loss_late": float(total[-tenth:].mean())}


def _shares(phases: ShardPhases) -> dict[str, float]:
    spent = {name.removesuffix("_s"): getattr(phases, name) for name in phases.__struct_fields__}
    total = sum(spent.values())
    return {name: value / total for name, value in spent.items()} if total > 0.0 else {}


def _messages(plan: TrainingPlan, series: Series) -> dict[str, Any]:
    """Fields on the messages that steps needed."""
    exchanges = tuple(
        Exchange(source=source, target=target, message=message, count=record.count, bytes=record.bytes)
        for (source, target, message), record in sorted(series.shards.messages.items())
    )
    if not series.shards.steps_made or not exchanges:
        return {"exchanges": exchanges}
    steps = series.shards.steps_made / len(plan.workers())
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
    if not series.server.appended:
        return {}
    appended = total(series.server.appended)
    return {
        "log_bytes": appended.bytes,
        "log_entries": appended.entries,
        "log_share": appended.append_s / appended.time_s if appended.time_s > 0.0 else None,
        "log_syncs": appended.syncs,
        "log_wait_s": appended.waited_s / appended.waited if appended.waited else None,
        "log_saved": appended.saved,
    }


def node_numbers(plan: Plan, series: Series) -> dict[str, Any]:
    """Fields on how many nodes there were, and what became of them."""
    states: dict[str, set[str]] = {}
    for _, node in series.nodes:
        states.setdefault(node.name, set()).add(node.state)
    return {
        "nodes_expected": len(plan.nodes),
        "nodes_joined": sum(bool(seen & JOINED_STATES) for seen in states.values()),
        "nodes_died": sum("died" in seen for seen in states.values()),
        "nodes_missing": sum("missing" in seen for seen in states.values()),
    }


def fault_numbers(plan: Plan, series: Series) -> dict[str, Any]:
    """Fields on what was done to nodes, and what was not."""
    done = [each for each in series.faults if each.was_done]
    return {
        "faults": len(done),
        "faults_failed": sum(bool(each.record.problem) for each in series.faults),
        "faults_missed": sum(not each.no_op for each in missed_faults(plan, series)),
        "fault_delay_s": max((each.delay_s for each in done), default=None),
    }


def _back(series: Series) -> dict[str, Any]:
    """Fields on how long nodes took to be back."""
    done = [each for each in series.faults if each.was_done]
    return {
        "not_back": sum(each.record.action in BRINGS_BACK and each.is_to_end for each in done),
        "back_s": max((after_s for each in done if (after_s := _back_s(each, series)) is not None), default=None),
    }


def _back_s(done: TimedFault, series: Series) -> float | None:
    """Seconds after an action that was to bring a node back until it was, or until training ended without it."""
    awaited = done.record.action in BRINGS_BACK and done.is_to_end
    return series.trained_s - done.t if awaited else done.back_s


class Numbers(Protocol):
    """The numbers of a trial, whatever its nodes run."""

    @property
    def fidelity(self) -> Fidelity | None:
        """The verdict."""
        ...

    def value(self, measure: str) -> float | None:
        """A measure's value by its name."""
        ...


def judged(plan: Plan, summary: Numbers, *, is_simulated: bool = False) -> tuple[Expectation, ...]:
    """What the scenario expects, and whether it was met."""
    found = []
    for measure, comparison, bound in plan.expectations:
        value = summary.value(measure)
        measured = None if value is None else float(value)
        met = measured is not None and COMPARISONS[comparison](measured, bound)
        met = met and not (measure == "back_s" and summary.value("not_back"))  # it is a least time then
        found.append(Expectation(measure=measure, comparison=comparison, bound=bound, measured=measured, met=met))
    if plan.expects_trusted:
        verdict = summary.fidelity.verdict if summary.fidelity else "unknown"
        measured = None if verdict == "unknown" else float(VERDICTS.index(verdict))
        found.append(
            Expectation(
                measure="verdict", comparison="==", bound=TRUSTED, measured=measured,
                met=None if is_simulated else measured == TRUSTED,
            )
        )  # fmt: skip
    return tuple(found)


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
