"""The series of a trial: its journal as numpy arrays, one entry an update or an evaluation.

Built in one pass over the journal with compact columns, so a trial of 250,000 updates takes some 25 MB. What nodes
report of themselves is cumulative, and only the last report counts. Everything a summary, a chart or a report says is
computed from here.

Where the server was restored to a checkpoint, updates and evaluations after that version are taken out again: the
series are those of the final model. What they cost stays in the bytes, and the accounting has their number.
"""

import dataclasses
import math
from array import array
from collections import Counter
from collections.abc import Iterable
from operator import attrgetter
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from edgebed.core import records
from edgebed.core.measures.task import TaskMeasure
from edgebed.journal.accounts.ledger import Accounting
from edgebed.journal.accounts.seen_pushes import SeenPushes, WorkerPushes
from edgebed.journal.accounts.update_accounts import UpdateAccounting
from edgebed.journal.columns.clients import NONE, ClientEvaluations, chosen_of, client_evaluations
from edgebed.journal.columns.evaluations import Evaluations, evaluations_of
from edgebed.journal.columns.updates import Updates
from edgebed.journal.folds import Counters, Fold, Timeline, on, total
from edgebed.journal.journal import not_a_line, read_journal
from edgebed.journal.programs.series import Programs, ProgramSeries
from edgebed.journal.series_divergence import RAN_TO_END, Divergence, divergence_of
from edgebed.journal.series_faults import Faults, TimedFault
from edgebed.journal.series_steps import ModelStep, ModuleLosses, ShardSteps, Steps
from edgebed.journal.verdict.sightings import Sighting, Sightings
from edgebed.journal.verdict.training_usage import TrainingUsage

SERVER, EVALUATOR = "server", "evaluator"
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_COPIED = ("incarnation", "step", "version", "base", "staleness", "entries", "bits", "bytes", "loss")
"""Fields of `Updates` that the record has as they are."""
_copied = attrgetter(*_COPIED)
_KEPT = (
    records.Node, records.Evaluated, records.Clients, records.Diverged, records.Note, records.Restored,
    records.HostLoad, records.Left,
)  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServerSeries:
    """What a parameter server and its workers told; empty where shards train."""

    ingress_bytes: int = 0
    """Payload of all pushes that a server ever applied."""
    egress_bytes: int | None = None
    """Payload of all models that workers were ever sent; None: not reported, or shards train."""
    beside_bytes: tuple[int, int] = (0, 0)
    """What of pushes that were applied, and of models sent before them, is of vectors beside the model."""
    phases: dict[str, records.Phases] = dataclasses.field(default_factory=dict)
    """Where each worker's time went, summed over its incarnations."""
    refused: dict[str, int] = dataclasses.field(default_factory=dict)
    """Messages refused, by code."""
    pushes: dict[str, WorkerPushes] = dataclasses.field(default_factory=dict)
    """Pushes that the server saw of each worker, with those of a server that was lost."""
    left: tuple[tuple[float, records.Left], ...] = ()
    """Workers that have left as far as the server could tell, as (t, record)."""
    appended: tuple[records.Appended, ...] = ()
    """What the server wrote to its log, in each of its incarnations."""
    restored: tuple[tuple[float, records.Restored], ...] = ()
    """Versions that the server resumed from, as (t, record)."""
    remade_updates: int = 0
    """Updates that were lost when the trial was resumed from a checkpoint, and had to be made again."""
    unobserved_updates: int = 0
    """Updates that the server applied while training had no controller."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShardSeries:
    """What the shards of a model, and the nodes that serve them, told; empty where workers push."""

    phases: dict[str, records.ShardPhases] = dataclasses.field(default_factory=dict)
    """Where the time of each shard, and of the node that has all gradient modules, went, summed over incarnations."""
    messages: dict[tuple[str, str, str], records.Messages] = dataclasses.field(default_factory=dict)
    """What shards and nodes that serve them sent each other, by sender, receiver and kind: all that was received."""
    timed_steps: dict[str, ShardSteps] = dataclasses.field(default_factory=dict)
    """Steps of each layer shard with their times, without those that were rolled back."""
    steps_learnt: dict[str, int] = dataclasses.field(default_factory=dict)
    """Mini-batches that the steps of each layer shard stand for, without those that were rolled back."""
    steps_made: int = 0
    """Steps that all shards together made, with those that were rolled back."""
    module_losses: dict[str, ModuleLosses] = dataclasses.field(default_factory=dict)
    """Losses of each layer shard's gradient module: what it could not predict."""
    input_losses: dict[str, ModuleLosses] = dataclasses.field(default_factory=dict)
    """Losses of each layer shard's module that predicts its inputs: what it could not predict."""
    lags: Ints = dataclasses.field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Steps between the two of each pair that was matched by batch, without pairs that were rolled back."""
    resumed: tuple[tuple[float, records.Resumed], ...] = ()
    """Steps that all shards resumed from, as (t, record)."""

    @property
    def steps(self) -> dict[str, Ints]:
        """Mini-batches that each layer shard learnt from, in order, without those that were rolled back."""
        return {node: each.step for node, each in self.timed_steps.items()}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Series:
    """A journal as typed arrays. Times are seconds since training started; since the launch if it never did."""

    trial: records.Trial | None = None
    """The record of the start of training; None where the trial died before it."""
    training_s: float | None = None
    """When training first started, in seconds since the launch."""
    workers: tuple[str, ...] = ()
    """Names of the workers whose updates were applied, in order of their first update."""
    updates: Updates
    evaluations: Evaluations
    clients: ClientEvaluations = NONE
    """What was measured client by client."""
    server: ServerSeries = dataclasses.field(default_factory=ServerSeries)
    shards: ShardSeries = dataclasses.field(default_factory=ShardSeries)
    programs: ProgramSeries = dataclasses.field(default_factory=ProgramSeries)
    nodes: tuple[tuple[float, records.Node], ...] = ()
    """Changes of nodes' states, as (t, record); t is negative before training started, here and in notes."""
    reached_s: dict[str, dict[str, float]] = dataclasses.field(default_factory=dict)
    """For each state, when each node was first in it, in seconds since the launch."""
    dropped: dict[str, int] = dataclasses.field(default_factory=dict)
    """Messages that could not be read, by socket."""
    notes: tuple[tuple[float, str, str], ...] = ()
    """Notes of the controller, as (t, node, text)."""
    links: dict[str, tuple[records.Link, ...]] = dataclasses.field(default_factory=dict)
    """What held each node's link: the last report, of each incarnation in which it differed."""
    usage: dict[str, tuple[records.Usage, ...]] = dataclasses.field(default_factory=dict)
    """What each node used, in each of its incarnations, from its start to its end; times are those in training."""
    seen: dict[str, tuple[Sighting, ...]] = dataclasses.field(default_factory=dict)
    """What was seen of each node from outside, by incarnation, beside what it told of itself."""
    transfers: dict[tuple[str, str, str], tuple[records.Transfers, ...]] = dataclasses.field(default_factory=dict)
    """For each worker, direction and (among shards) receiver, how long its messages took, by incarnation of the
    reporting node."""
    hosts: dict[str, tuple[tuple[float, records.HostLoad], ...]] = dataclasses.field(default_factory=dict)
    """How busy each machine was during training, by its name, as (t, record); one that is alone has none."""
    faults: tuple[TimedFault, ...] = ()
    """What was done to nodes on purpose, in the journal's order."""
    gone: dict[str, float] = dataclasses.field(default_factory=dict)
    """For how many seconds each node had been away that was not back when training ended."""
    unobserved_s: float = 0.0
    """Seconds of training without a controller: it had died, and nodes went on."""
    accounting: Accounting | None = None
    """What became of every update, or every step in layer-wise training; None where no node reported any."""
    traffic: tuple[tuple[float, records.Traffic], ...] = ()
    """Bytes through the server's data socket so far, as (t, record)."""
    traffic_of: dict[str, records.Traffic] = dataclasses.field(default_factory=dict)
    """Bytes that passed the data socket of each other node that reports them, summed over incarnations."""
    continued_s: tuple[float, ...] = ()
    """Seconds of training at which the trial was resumed after its controller had ended."""
    first_not_finite: Divergence | None = None
    """The first thing that was not finite; None: all was finite."""
    has_diverged: bool = False
    """Whether the loss of an update or of an evaluation is not finite."""
    finished: records.Finished | None = None
    finished_t: float | None = None
    """When the server applied its last update, as it reports; None where it did not get there."""
    ended: records.Ended | None = None
    """The record of the trial's end; None where the journal breaks off."""
    last_t: float = 0.0
    """Time of the last line, in seconds of training."""
    length_s: float = 0.0
    """Time of the last line, in seconds since the launch."""
    stop_time_s: float | None = None
    """The time after which training was to end; None: none was set."""
    cut: bool = False
    """Whether the last line was cut by a kill."""

    @property
    def updates_by_worker(self) -> dict[str, int]:
        """How many updates each worker contributed."""
        counts = np.bincount(self.updates.worker, minlength=len(self.workers)).tolist()
        return dict(zip(self.workers, counts, strict=True))

    @property
    def trained_s(self) -> float:
        """How long training went on, as far as is known: from its start to its end, outages included.

        A server that was away when the time was up says later that it applies no more updates.
        """
        end_s = self.last_t if self.finished_t is None else self.finished_t
        return _trained_s(end_s, self.updates.t, self.stop_time_s)

    @property
    def outcome(self) -> str:
        """How the trial ended: completed, interrupted or failed; `unfinished` where the journal breaks off.

        `diverged`: it ran to its end, and a loss was not finite.
        """
        if self.ended is None:
            return "unfinished"
        return "diverged" if self.ended.outcome == "completed" and self.has_diverged else self.ended.outcome

    @property
    def ran_to_end(self) -> bool:
        """Whether the trial ran to its end, with finite models or not."""
        return self.outcome in RAN_TO_END

    @classmethod
    def empty(cls) -> Self:
        """The series of a trial that left no journal."""
        return _Builder().series(cls)

    @classmethod
    def from_journal(cls, path: Path, stop_time_s: float | None = None, measures: tuple[TaskMeasure, ...] = ()) -> Self:
        """Read the journal at `path`; a cut last line is left out, a broken one before it raises EdgebedError.

        By the plan: `stop_time_s` is the time after which training was to end, `measures` what is measured; of a
        journal without its plan these are as built-in objectives declare them.
        """
        builder = _Builder(stop_time_s, measures)
        reader = read_journal(path)
        for t, node, record in reader:
            try:
                builder.add(t, node, record)
            except (OverflowError, ValueError) as error:
                raise not_a_line(path, reader.number, error) from error
        return builder.series(cls, cut=bool(reader.cut_line))


S = TypeVar("S", bound=Series)


class _Builder(Fold):
    """Collects a journal's records into columns."""

    def __init__(self, stop_time_s: float | None = None, measures: tuple[TaskMeasure, ...] = ()) -> None:
        self.stop_time_s, self.measures = stop_time_s, measures
        self.timeline = Timeline()
        self.counters = Counters(self.timeline)
        self.accounting = UpdateAccounting(self.timeline)
        self.steps = Steps(self.timeline)
        self.faults = Faults(self.timeline)
        self.pushes = SeenPushes()
        self.sightings = Sightings()
        self.used = TrainingUsage(self.timeline, self.counters)
        self.programs = Programs(self.timeline, self.counters)
        parts = (
            self.programs,
            self.counters,
            self.accounting,
            self.steps,
            self.faults,
            self.pushes,
            self.sightings,
            self.used,
        )
        super().__init__(*parts)
        names = ("t", "egress_bytes", "ingress_bytes", "worker", *_COPIED)
        self.columns: dict[str, array[Any]] = {
            name: array("d" if name in ("t", "egress_bytes", "loss") else "q") for name in names
        }
        """The fields of `Updates`."""
        self._appends = [column.append for column in self.columns.values()]
        self.ingress_bytes, self.egress_bytes = 0, 0.0
        self.beside_bytes = 0, 0
        self.workers: dict[str, int] = {}
        self.kept: dict[type[records.Record], list[tuple[float, str, Any]]] = {kind: [] for kind in _KEPT}
        """Records of some types, as (t, node, record), with times as in `Series`."""
        self.traffic: list[tuple[float, records.Traffic]] = []
        self.reached_s: dict[str, dict[str, float]] = {}
        self.refused: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.trial: records.Trial | None = None
        self.training_s: float | None = None
        self.finished: records.Finished | None = None
        self.finished_t: float | None = None
        self.ended: records.Ended | None = None
        self.remade = 0

    @on(*_KEPT)
    def _keep(self, t: float, node: str, record: records.Record) -> None:
        self.kept[type(record)].append((self.timeline.since_began(t), node, record))

    @on(records.Trial)
    def _trial(self, t: float, _: str, record: records.Trial) -> None:
        """Training begins, or is resumed after its controller was gone."""
        if self.training_s is None:
            self.trial, self.training_s = record, t
            for kind, entries in self.kept.items():
                self.kept[kind] = [(before - t, node, kept) for before, node, kept in entries]
        self.last_t = t  # updates made without a controller may have later times than the one that resumes
        self.finished = self.finished_t = self.ended = None

    @on(records.Update)
    def _update(self, t: float, _: str, record: records.Update) -> None:
        self._add_update(self.timeline.since_began(t), record)

    def _add_update(self, t: float, record: records.Update) -> None:
        self.ingress_bytes += record.bytes
        if record.beside or record.beside_sent:
            up, down = self.beside_bytes
            self.beside_bytes = up + record.beside, down + record.beside_sent
        self.egress_bytes += math.nan if record.sent is None else record.sent
        worker = self.workers.setdefault(record.worker, len(self.workers))
        values = (t, self.egress_bytes, self.ingress_bytes, worker, *_copied(record))
        for append, value in zip(self._appends, values, strict=True):
            append(value)

    @on(records.Restored)
    def _restored(self, _: float, __: str, record: records.Restored) -> None:
        """Drop what the server applied after the restored version: it is in no model."""
        self.finished = self.finished_t = None
        versions = self.columns["version"]
        kept = len(versions)
        while kept and versions[kept - 1] > record.version:
            kept -= 1
        if self.timeline.stands_at_s is not None:  # no fault did it
            self.remade += len(versions) - kept
        for column in self.columns.values():
            del column[kept:]
        if self.traffic and record.replayed is None:  # with what was sent after the last update
            self.egress_bytes = max(self.egress_bytes, self.traffic[-1][1].pull_bytes)

    @on(records.Traffic)
    def _traffic(self, t: float, node: str, _: records.Traffic) -> None:
        reports = self.counters.reports(records.Traffic, SERVER)
        if node == SERVER and reports:
            self.traffic.append((self.timeline.since_began(t), total(reports.lives)))

    @on(records.Node)
    def _node(self, t: float, _: str, record: records.Node) -> None:
        self.reached_s.setdefault(record.state, {}).setdefault(record.name, t)

    @on(records.Refused)
    def _refused(self, _: float, __: str, record: records.Refused) -> None:
        self.refused[record.code] += record.count

    @on(records.Dropped)
    def _dropped(self, _: float, __: str, record: records.Dropped) -> None:
        self.dropped[record.socket] += record.count

    @on(records.Finished)
    def _finished(self, t: float, _: str, record: records.Finished) -> None:
        self.finished, self.finished_t = record, self.timeline.since_began(t)

    @on(records.Ended)
    def _ended(self, _: float, __: str, record: records.Ended) -> None:
        self.ended = record

    def series(self, make: type[S], *, cut: bool = False) -> S:
        """The series of everything collected so far."""
        for made in self.steps.updates():
            self._add_update(made.t, _update_of(made))
        updates = Updates(**{name: np.array(column) for name, column in self.columns.items()})
        shard_steps = self.steps.surviving()
        sent_bytes = self._sent_bytes()
        evaluations = evaluations_of(self._kept_evaluations(updates), updates, sent_bytes, self.measures)
        workers, kept = tuple(self.workers), self.kept
        last_t = max(0.0, self.timeline.since_began(self.last_t))
        end_s = _trained_s(last_t if self.finished_t is None else self.finished_t, updates.t, self.stop_time_s)
        first, has_diverged = divergence_of(kept[records.Diverged], updates, workers, evaluations, self.steps)
        traffic = self.counters.totals(records.Traffic)
        transfers: dict[tuple[str, str, str], tuple[records.Transfers, ...]] = {}
        for (_, *way), told in self.counters.lives(records.Transfers).items():
            name, direction, to = way
            transfers[name, direction, to] = (*transfers.get((name, direction, to), ()), *told)
        return make(
            trial=self.trial,
            training_s=self.training_s,
            workers=workers,
            updates=updates,
            evaluations=evaluations,
            clients=self._clients(evaluations),
            server=ServerSeries(
                ingress_bytes=self.ingress_bytes,
                egress_bytes=sent_bytes,
                beside_bytes=self.beside_bytes,
                phases={node: spent for (node,), spent in self.counters.totals(records.Phases).items()},
                refused=dict(self.refused),
                pushes=self.pushes.of_workers,
                left=tuple((t, record) for t, _, record in kept[records.Left]),
                appended=tuple(self.counters.lives(records.Appended).get((SERVER,), ())),
                restored=tuple((t, record) for t, _, record in kept[records.Restored]),
                remade_updates=self.remade,
                unobserved_updates=self.timeline.unobserved_updates,
            ),
            shards=ShardSeries(
                phases={node: spent for (node,), spent in self.counters.totals(records.ShardPhases).items()},
                messages={
                    (source, node, message): lot
                    for (node, source, message), lot in self.counters.totals(records.Messages).items()
                },
                timed_steps=shard_steps,
                steps_learnt={node: len(each.step) * self.steps.every[node] for node, each in shard_steps.items()},
                steps_made=self.steps.count(),
                module_losses=self.steps.module_losses(inputs=False),
                input_losses=self.steps.module_losses(inputs=True),
                lags=self.steps.surviving_lags(),
                resumed=tuple(self.steps.resumed),
            ),
            programs=self.programs.series(),
            first_not_finite=first,
            has_diverged=has_diverged,
            nodes=tuple((t, record) for t, _, record in kept[records.Node]),
            reached_s=self.reached_s,
            dropped=dict(self.dropped),
            notes=tuple((t, node, record.text) for t, node, record in kept[records.Note]),
            links={node: tuple(lives) for (node,), lives in self.counters.lives(records.Link).items()},
            usage=self.used.lives(end_s),
            seen=self.sightings.by_node(),
            transfers=transfers,
            hosts=_by_host((t, record) for t, _, record in kept[records.HostLoad]),
            faults=self.faults.done(end_s),
            gone=self.faults.gone(end_s),
            continued_s=tuple(self.timeline.continued_s),
            unobserved_s=self.timeline.unobserved_s,
            accounting=self.accounting.close(),
            traffic=tuple(self.traffic),
            traffic_of={node: passed for (node,), passed in traffic.items() if node != SERVER},
            finished=self.finished,
            finished_t=self.finished_t,
            ended=self.ended,
            last_t=last_t,
            length_s=self.last_t,
            stop_time_s=self.stop_time_s,
            cut=cut,
        )

    def _clients(self, evaluations: Evaluations) -> ClientEvaluations:
        """What the evaluator measured client by client, of versions that led to the final model; or workers did."""
        told = self.kept[records.Clients]
        by_evaluator = [record for _, node, record in told if node == EVALUATOR]
        if by_evaluator:
            found = client_evaluations(by_evaluator, evaluations.version.tolist())
            return dataclasses.replace(found, chosen=chosen_of(found, evaluations))
        return client_evaluations([record for _, _, record in told], None)

    def _sent_bytes(self) -> int | None:
        """Bytes of the models that the server reports as sent; a killed one reported them before its last updates."""
        if self.steps.resumed or not self.traffic:
            return None
        return int(np.fmax(self.traffic[-1][1].pull_bytes, self.egress_bytes))

    def _kept_evaluations(self, updates: Updates) -> list[records.Evaluated]:
        """The evaluation of each version: the first, or that of the final model.

        Without those of versions that were lost with a server: measured before the version was made. An evaluator that
        is new, as in a resumed trial, measures again what the server still has. Where each worker has a model of its
        own nothing is measured of the server's.
        """
        evaluated = [each for each in self.kept[records.Evaluated] if each[2].measured]
        if self.kept[records.Restored] or len(self.steps.resumed) > 1:
            made_t = dict(zip(updates.version.tolist(), updates.t.tolist(), strict=True)) | {0: -math.inf}
            evaluated = [each for each in evaluated if each[0] >= made_t.get(each[2].version, math.inf)]
        by_version: dict[int, records.Evaluated] = {}
        for _, _, record in evaluated:
            if record.final or record.version not in by_version:
                by_version[record.version] = record
        return list(by_version.values())


def _trained_s(end_s: float, updates_t: Floats, stop_time_s: float | None) -> float:
    """How long training went on whose end was told at `end_s`: not beyond its limit, unless there were updates."""
    if stop_time_s is None:
        return end_s
    return min(end_s, max(stop_time_s, float(updates_t[-1]) if len(updates_t) else 0.0))


def _by_host(
    loads: Iterable[tuple[float, records.HostLoad]],
) -> dict[str, tuple[tuple[float, records.HostLoad], ...]]:
    found: dict[str, list[tuple[float, records.HostLoad]]] = {}
    for t, record in loads:
        found.setdefault(record.host, []).append((t, record))
    return {host: tuple(told) for host, told in found.items()}


def _update_of(made: ModelStep) -> records.Update:
    """A step of the last shard as an update that it pushed, without any bytes."""
    return records.Update(
        worker=made.shard, incarnation=0, step=made.step, version=made.step + 1, base=made.step, staleness=0, entries=0,
        bits=0, bytes=0, loss=made.loss,
    )  # fmt: skip
