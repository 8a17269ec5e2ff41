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
from itertools import chain
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgebed.core import records
from edgebed.journal.accounts.ledger import Accounting
from edgebed.journal.accounts.update_accounts import UpdateAccounting
from edgebed.journal.journal import not_a_line, read_journal
from edgebed.journal.series_divergence import RAN_TO_END, Divergence, divergence_of
from edgebed.journal.series_faults import Faults, TimedFault
from edgebed.journal.series_steps import ModelStep, ModuleLosses, ShardSteps, Steps

SERVER = "server"
Floats = NDArray[np.float64]
R = TypeVar("R", bound=records.Record)
Ints = NDArray[np.int64]
_UPDATE_COLUMNS = ("incarnation", "step", "version", "base", "staleness", "entries", "bits", "bytes")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Updates:
    """The U updates the server applied, in order; every array has shape (U,)."""

    t: Floats
    """Seconds since the trial began."""
    worker: Ints
    """Index into `Series.workers`."""
    incarnation: Ints
    step: Ints
    """The worker's own count of its pushes, from 0."""
    version: Ints
    """The model's version after the update."""
    base: Ints
    staleness: Ints
    """Updates applied between the worker's pull and this push."""
    entries: Ints
    bits: Ints
    bytes: Ints
    """Payload of the push, in bytes."""
    loss: Floats
    """The worker's mini-batch loss; NaN where training diverged."""
    ingress_bytes: Ints
    """Payload of this push and all before it, with those that were lost with a server: what went up."""
    egress_bytes: Floats
    """Payload of the models sent to workers before this update was applied, with the answers to pushes that were lost
    with a server: what went down. The answer to this push is not among it. NaN: not known."""

    def __len__(self) -> int:
        """Number of updates, U."""
        return len(self.t)

    @property
    def traffic_bytes(self) -> Floats:
        """Payload up and down together, in bytes; NaN: not known."""
        return self.ingress_bytes + self.egress_bytes


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evaluations:
    """The E measurements on the test set, in order; every array has shape (E,)."""

    t: Floats
    """When the model reached this version, not when its evaluation was done."""
    version: Ints
    accuracy: Floats
    """Fraction of the test set, 0 to 1."""
    loss: Floats
    final: NDArray[np.bool_]
    ingress_bytes: Ints
    """Payload of all pushes that made this version: what went up."""
    egress_bytes: Floats
    """Payload of the models that the server had handed out to workers before it applied the last of these pushes: what
    went down for this version. Of a round, all models that its workers began with; of an asynchronous method, those of
    all workers, with those whose answers are still to come. The final evaluation has those of the whole trial: workers
    are sent the final model as well, which is of no use to training, and was paid for. NaN: not known."""
    bits: Ints
    """Bits that the algorithm needs for these pushes, without encoding or framing."""

    def __len__(self) -> int:
        """Number of evaluations, E."""
        return len(self.t)

    @property
    def traffic_bytes(self) -> Floats:
        """Payload up and down together, in bytes; NaN: not known."""
        return self.ingress_bytes + self.egress_bytes


@dataclasses.dataclass(frozen=True, kw_only=True)
class Series:
    """A journal as typed arrays. Times are seconds since training started; since the launch if it never did."""

    trial: records.Trial | None = None
    """The record of the start of training; None where the trial died before it."""
    training_s: float | None = None
    """When training started, in seconds since the launch."""
    workers: tuple[str, ...] = ()
    """Names of the workers whose updates were applied, in order of their first update."""
    updates: Updates
    evaluations: Evaluations
    ingress_bytes: int = 0
    """Payload of all pushes that a server ever applied."""
    egress_bytes: int | None = None
    """Payload of all models that workers were ever sent; None: not reported, or shards train."""
    traffic: tuple[tuple[float, records.Traffic], ...] = ()
    """Bytes through the server's data socket so far, as (t, record)."""
    phases: dict[str, records.Phases] = dataclasses.field(default_factory=dict)
    """Where each worker's time went, summed over its incarnations."""
    shard_phases: dict[str, records.ShardPhases] = dataclasses.field(default_factory=dict)
    """Where the time of each shard, and of the node that has all gradient modules, went, summed over incarnations."""
    nodes: tuple[tuple[float, records.Node], ...] = ()
    """Changes of nodes' states, as (t, record); t is negative before training started, here and in notes."""
    reached_s: dict[str, dict[str, float]] = dataclasses.field(default_factory=dict)
    """For each state, when each node was first in it, in seconds since the launch."""
    refused: dict[str, int] = dataclasses.field(default_factory=dict)
    """Messages refused, by code."""
    dropped: dict[str, int] = dataclasses.field(default_factory=dict)
    """Messages that could not be read, by socket."""
    notes: tuple[tuple[float, str, str], ...] = ()
    """Notes of the controller, as (t, node, text)."""
    links: dict[str, tuple[records.Link, ...]] = dataclasses.field(default_factory=dict)
    """What held each node's link: the last report, of each incarnation in which it differed."""
    usage: dict[str, tuple[records.Usage, ...]] = dataclasses.field(default_factory=dict)
    """What each node used, in each of its incarnations, from its start to its end."""
    transfers: dict[tuple[str, str, str], tuple[records.Transfers, ...]] = dataclasses.field(default_factory=dict)
    """For each worker, direction and (among shards) receiver, how long its messages took, by incarnation of the
    reporting node."""
    host: tuple[records.HostLoad, ...] = ()
    """How busy the machine was during training."""
    faults: tuple[TimedFault, ...] = ()
    """What was done to nodes on purpose, in the journal's order."""
    accounting: Accounting | None = None
    """What became of every update, or every step in layer-wise training; None where the journal is too old to say."""
    restored: tuple[tuple[float, records.Restored], ...] = ()
    """Versions that the server resumed from, as (t, record)."""
    traffic_of: dict[str, records.Traffic] = dataclasses.field(default_factory=dict)
    """Bytes that passed the data socket of each other node that reports them, summed over incarnations."""
    messages: dict[tuple[str, str, str], records.Messages] = dataclasses.field(default_factory=dict)
    """What shards and nodes that serve them sent each other, by sender, receiver and kind: all that was received."""
    steps: dict[str, Ints] = dataclasses.field(default_factory=dict)
    """Mini-batches that each layer shard learnt from, in order, without those that were rolled back."""
    shard_steps: dict[str, ShardSteps] = dataclasses.field(default_factory=dict)
    """Steps of each layer shard with their times, without those that were rolled back."""
    steps_per_s: dict[str, float] = dataclasses.field(default_factory=dict)
    """Steps a second of each layer shard that made two or more, from the first to the last of them."""
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
    """Time of the last line, in seconds."""
    cut: bool = False
    """Whether the last line was cut by a kill."""

    @property
    def final_accuracy(self) -> float | None:
        """Accuracy of the final evaluation; None where the trial did not come to it."""
        return self._final(self.evaluations.accuracy)

    @property
    def final_loss(self) -> float | None:
        """Loss of the final evaluation, NaN if it is not finite; None where the trial did not come to it."""
        return self._final(self.evaluations.loss)

    @property
    def best_accuracy(self) -> float | None:
        """The highest accuracy measured; None without any evaluation."""
        return float(self.evaluations.accuracy.max()) if len(self.evaluations) else None

    def _final(self, values: Floats) -> float | None:
        final = values[self.evaluations.final]
        return float(final[-1]) if len(final) else None

    @property
    def updates_by_worker(self) -> dict[str, int]:
        """How many updates each worker contributed."""
        counts = np.bincount(self.updates.worker, minlength=len(self.workers)).tolist()
        return dict(zip(self.workers, counts, strict=True))

    @property
    def trained_s(self) -> float:
        """How long training went on, as far as is known."""
        return self.last_t if self.finished_t is None else self.finished_t

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
    def from_journal(cls, path: Path) -> Self:
        """Read the journal at `path`; a cut last line is left out, a broken one before it raises EdgebedError."""
        builder = _Builder()
        reader = read_journal(path)
        for t, node, record in reader:
            try:
                builder.add(t, node, record)
            except (OverflowError, ValueError) as error:
                raise not_a_line(path, reader.number, error) from error
        return builder.series(cls, cut=bool(reader.cut_line))


S = TypeVar("S", bound=Series)


class _Builder:
    """Collects a journal's records into columns."""

    def __init__(self) -> None:
        self.columns = {name: array("q") for name in ("worker", *_UPDATE_COLUMNS)}
        self.update_t, self.update_loss = array("d"), array("d")
        self.update_ingress, self.update_egress = array("q"), array("d")
        self.ingress_bytes, self.egress_bytes = 0, 0.0
        self.evaluated: list[tuple[float, records.Evaluated]] = []
        self.traffic_of: dict[str, list[records.Traffic]] = {}
        self.messages: dict[tuple[str, str, str], list[records.Messages]] = {}
        self.steps = Steps()
        self.accounting = UpdateAccounting()
        self.faults = Faults()
        self.restored: list[tuple[float, records.Restored]] = []
        self.diverged: list[tuple[float, str, records.Diverged]] = []
        self.workers: dict[str, int] = {}
        self.traffic: list[tuple[float, records.Traffic]] = []
        self.lives: Counter[str] = Counter()
        """Number of joins of each node."""
        self.said_in: dict[tuple[str, str], int] = {}
        """The join in which a node last made a cumulative report, by node and kind of report."""
        self.traffic_before: records.Traffic | None = None
        """Traffic of the server's earlier incarnations."""
        self.phases: dict[str, list[records.Phases]] = {}
        self.shard_phases: dict[str, list[records.ShardPhases]] = {}
        self.nodes: list[tuple[float, records.Node]] = []
        self.reached_s: dict[str, dict[str, float]] = {}
        self.notes: list[tuple[float, str, str]] = []
        self.refused: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.links: dict[str, list[records.Link]] = {}
        self.usage: dict[str, list[records.Usage]] = {}
        self.transfers: dict[tuple[str, str, str], dict[str, list[records.Transfers]]] = {}
        self.usage_t: dict[str, float] = {}
        self.host: list[records.HostLoad] = []
        self.trial: records.Trial | None = None
        self.finished: records.Finished | None = None
        self.finished_t: float | None = None
        self.ended: records.Ended | None = None
        self.started_t = 0.0
        self.last_t = 0.0

    def add(self, t: float, node: str, record: records.Record) -> None:
        """Take in one record of the journal."""
        self.accounting.add(t, node, record)
        if isinstance(record, records.Trial):
            self._began(t, record)
            return
        self.faults.add(t, record)
        t -= self.started_t
        self.last_t = max(self.last_t, t)
        match record:
            case records.Update():
                self._update(t, record)
            case records.Step() | records.Taught():
                self.steps.add(t, node, record)
            case records.Resumed():
                self.steps.resumed.append((t, record))
            case records.BackedUp():
                self.steps.add_backup(t, record)
            case records.Evaluated():
                self.evaluated.append((t, record))
            case records.Traffic() | records.Messages() | records.Phases() | records.ShardPhases():
                self._counted(t, node, record)
            case _:
                self._event(t, node, record)

    def _counted(self, t: float, node: str, record: records.Record) -> None:
        """Take in what a node has counted of itself, cumulatively in each incarnation."""
        match record:
            case records.Traffic() if node == SERVER:
                self.traffic.append((t, _sum_traffic(self.traffic_before, record)))
            case records.Traffic():
                told = self.traffic_of.setdefault(node, [])
                is_new = self._is_reborn(node, "traffic") or record.egress_payload < told[-1].egress_payload
                _add(told, record, is_new=is_new)
            case records.Messages():
                lots = self.messages.setdefault((record.source, node, record.message), [])
                is_new = self._is_reborn(node, f"{record.message} of {record.source}") or record.count < lots[-1].count
                _add(lots, record, is_new=is_new)
            case records.ShardPhases():
                spent = self.shard_phases.setdefault(node, [])
                is_new = self._is_reborn(node, "shard phases") or record.forward_s < spent[-1].forward_s
                _add(spent, record, is_new=is_new)
            case records.Phases():
                lives = self.phases.setdefault(node, [])
                _add(lives, record, is_new=self._is_reborn(node, "phases") or record.steps < lives[-1].steps)

    def _began(self, t: float, record: records.Trial) -> None:
        """Training begins, or is resumed after its controller was gone: time counts from the first beginning."""
        if self.trial is None:
            self.trial, self.started_t, self.last_t = record, t, 0.0
            self.nodes = [(before_t - t, node) for before_t, node in self.nodes]
            self.notes = [(before_t - t, node, text) for before_t, node, text in self.notes]
        self.finished = self.finished_t = self.ended = None

    def _restored(self, t: float, record: records.Restored) -> None:
        """Drop what the server applied after the restored version: it is in no model."""
        self.restored.append((t, record))
        self.finished = self.finished_t = None
        self.traffic_before = self.traffic[-1][1] if self.traffic else None
        kept = len(self.update_t)
        while kept and self.columns["version"][kept - 1] > record.version:
            kept -= 1
        for counts in (*self.columns.values(), self.update_ingress):
            del counts[kept:]
        for values in (self.update_t, self.update_loss, self.update_egress):
            del values[kept:]
        if self.traffic_before:  # with what was sent after the last update
            self.egress_bytes = max(self.egress_bytes, self.traffic_before.pull_bytes)

    def _event(self, t: float, node: str, record: records.Record) -> None:
        """Take in a record of a rare kind."""
        match record:
            case records.Restored():
                self._restored(t, record)
            case records.Link() | records.Usage() | records.Transfers() | records.HostLoad():
                self._measured(t, node, record)
            case records.Node():
                self.nodes.append((t, record))
                self.lives[record.name] += record.state == "joined"
                self.reached_s.setdefault(record.state, {}).setdefault(record.name, t + self.started_t)
            case records.Refused():
                self.refused[record.code] += record.count
            case records.Dropped():
                self.dropped[record.socket] += record.count
            case records.Diverged():
                self.diverged.append((t, node, record))
            case records.Note():
                self.notes.append((t, node, record.text))
            case records.Finished():
                self.finished, self.finished_t = record, t
            case records.Ended():
                self.ended = record

    def _measured(self, t: float, node: str, record: records.Record) -> None:
        """Take in a record that shows whether the conditions held."""
        match record:
            case records.Link():
                links = self.links.setdefault(node, [])
                _add(links, record, is_new=self._is_reborn(node, "link") or record.differed < links[-1].differed)
            case records.Usage():
                began_t = t - record.time_s
                is_new = self._is_reborn(node, "usage") or began_t >= self.usage_t.get(node, began_t)
                _add(self.usage.setdefault(node, []), record, is_new=is_new)
                self.usage_t[node] = t
            case records.Transfers():
                way = record.name, record.direction, record.to
                ways = self.transfers.setdefault(way, {}).setdefault(node, [])
                is_new = self._is_reborn(node, " ".join(way)) or record.asked_s < ways[-1].asked_s
                _add(ways, record, is_new=is_new)
            case records.HostLoad():
                self.host.append(record)

    def _is_reborn(self, node: str, what: str) -> bool:
        """Whether a node makes a report for the first time in its present incarnation."""
        before, self.said_in[node, what] = self.said_in.get((node, what)), self.lives[node]
        return before != self.lives[node]

    def _update(self, t: float, record: records.Update) -> None:
        self.update_t.append(t)
        self.update_loss.append(record.loss)
        self.ingress_bytes += record.bytes
        self.update_ingress.append(self.ingress_bytes)
        self.egress_bytes += math.nan if record.sent is None else record.sent
        self.update_egress.append(self.egress_bytes)
        self.columns["worker"].append(self.workers.setdefault(record.worker, len(self.workers)))
        for name in _UPDATE_COLUMNS:
            self.columns[name].append(getattr(record, name))

    def series(self, make: type[S], *, cut: bool = False) -> S:
        """The series of everything collected so far."""
        for made in self.steps.updates():
            self._update(made.t, _update_of(made))
        columns = {name: np.array(column, dtype=np.int64) for name, column in self.columns.items()}
        shard_steps = self.steps.surviving()
        updates = Updates(
            t=np.array(self.update_t, dtype=np.float64),
            loss=np.array(self.update_loss, dtype=np.float64),
            ingress_bytes=np.array(self.update_ingress, dtype=np.int64),
            egress_bytes=np.array(self.update_egress, dtype=np.float64),
            **columns,
        )
        sent_bytes = self._sent_bytes()
        evaluations = _evaluations(self._kept_evaluations(updates), updates, sent_bytes)
        workers = tuple(self.workers)
        first, has_diverged = divergence_of(self.diverged, updates, workers, evaluations, self.steps)
        return make(
            trial=self.trial,
            training_s=None if self.trial is None else self.started_t,
            workers=workers,
            updates=updates,
            ingress_bytes=self.ingress_bytes,
            egress_bytes=sent_bytes,
            evaluations=evaluations,
            first_not_finite=first,
            has_diverged=has_diverged,
            traffic=tuple(self.traffic),
            phases={node: _sum_phases(lives) for node, lives in self.phases.items()},
            shard_phases={node: _sum_shard_phases(lives) for node, lives in self.shard_phases.items()},
            nodes=tuple(self.nodes),
            reached_s=self.reached_s,
            refused=dict(self.refused),
            dropped=dict(self.dropped),
            notes=tuple(self.notes),
            links={node: tuple(lives) for node, lives in self.links.items()},
            usage={node: tuple(lives) for node, lives in self.usage.items()},
            transfers={way: tuple(chain(*told.values())) for way, told in self.transfers.items()},
            host=tuple(self.host),
            faults=self.faults.done(self.started_t),
            accounting=self.accounting.close(),
            restored=tuple(self.restored),
            traffic_of={node: _sum_lives(lives) for node, lives in self.traffic_of.items()},
            messages={key: _sum_messages(lives) for key, lives in self.messages.items()},
            steps={node: each.step for node, each in shard_steps.items()},
            shard_steps=shard_steps,
            steps_per_s=self.steps.rates(),
            steps_made=self.steps.count(),
            module_losses=self.steps.module_losses(inputs=False),
            input_losses=self.steps.module_losses(inputs=True),
            lags=self.steps.surviving_lags(),
            resumed=tuple(self.steps.resumed),
            finished=self.finished,
            finished_t=self.finished_t,
            ended=self.ended,
            last_t=self.last_t,
            cut=cut,
        )

    def _sent_bytes(self) -> int | None:
        """Bytes of the models that the server reports as sent; a killed one reported them before its last updates."""
        if self.steps.resumed or not self.traffic:
            return None
        return int(np.fmax(self.traffic[-1][1].pull_bytes, self.egress_bytes))

    def _kept_evaluations(self, updates: Updates) -> list[records.Evaluated]:
        """Evaluations without those of versions that were lost with a server: measured before the version was made."""
        if not self.restored and len(self.steps.resumed) < 2:
            return [record for _, record in self.evaluated]
        made_t = dict(zip(updates.version.tolist(), updates.t.tolist(), strict=True)) | {0: -math.inf}
        return [record for t, record in self.evaluated if t >= made_t.get(record.version, math.inf)]


def _update_of(made: ModelStep) -> records.Update:
    """A step of the last shard as an update that it pushed, without any bytes."""
    return records.Update(
        worker=made.shard, incarnation=0, step=made.step, version=made.step + 1, base=made.step, staleness=0, entries=0,
        bits=0, bytes=0, loss=made.loss,
    )  # fmt: skip


def _sum_lives(lives: list[records.Traffic]) -> records.Traffic:
    total = lives[0]
    for life in lives[1:]:
        total = _sum_traffic(total, life)
    return total


def _sum_traffic(before: records.Traffic | None, record: records.Traffic) -> records.Traffic:
    """Traffic of the server over all its incarnations."""
    if before is None:
        return record
    sums: dict[str, Any] = {}
    for name in records.Traffic.__struct_fields__:
        value = getattr(record, name)
        if name != "interface":
            sums[name] = None if value is None else value + (getattr(before, name) or 0)
    return records.Traffic(**sums, interface=record.interface)


def _add(lives: list[R], record: R, *, is_new: bool) -> None:
    """Store the last cumulative report of a node, for each of its incarnations."""
    if lives and not is_new:
        lives.pop()
    lives.append(record)


def _evaluations(evaluated: list[records.Evaluated], updates: Updates, sent_bytes: int | None) -> Evaluations:
    final = np.array([record.final for record in evaluated], dtype=np.bool_)
    version = np.array([record.version for record in evaluated], dtype=np.int64)
    reached = np.searchsorted(updates.version, version, side="right")
    egress = np.concatenate([np.zeros(1), updates.egress_bytes])[reached]
    return Evaluations(
        t=np.concatenate([np.zeros(1), updates.t])[reached],
        version=version,
        accuracy=np.array([record.accuracy for record in evaluated], dtype=np.float64),
        loss=np.array([record.loss for record in evaluated], dtype=np.float64),
        final=final,
        ingress_bytes=np.concatenate([np.zeros(1, dtype=np.int64), updates.ingress_bytes])[reached],
        egress_bytes=egress if sent_bytes is None else np.where(final, sent_bytes, egress),
        bits=np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(updates.bits)])[reached],
    )


def _sum_messages(lives: list[records.Messages]) -> records.Messages:
    count, size = (sum(getattr(life, name) for life in lives) for name in ("count", "bytes"))
    return msgspec.structs.replace(lives[-1], count=count, bytes=size)


def _sum_shard_phases(lives: list[records.ShardPhases]) -> records.ShardPhases:
    names = records.ShardPhases.__struct_fields__
    return records.ShardPhases(**{name: sum(getattr(life, name) for life in lives) for name in names})


def _sum_phases(lives: list[records.Phases]) -> records.Phases:
    return records.Phases(
        steps=sum(life.steps for life in lives),
        compute_s=sum(life.compute_s for life in lives),
        encode_s=sum(life.encode_s for life in lives),
        wait_s=sum(life.wait_s for life in lives),
        pause_s=sum(life.pause_s for life in lives),
    )
