"""What became of every update that a worker has begun; pure, in one pass over a trial's journal.

    begun --> applied | refused | lost in flight, with its worker, with the server | unfinished | unexplained

An update is known by worker, incarnation and step, the worker's own count. The server says which of them it has seen:
applied or refused, with the join that they belong to. What it has not seen is missing, and needs evidence: the worker's
report that it gave up waiting (`Unanswered`), the worker's end, or the end of a server whose last records are gone. An
update that was applied after the version which a later server was restored to is lost with the server. A server that
goes on from its log loses nothing: for the accounts it has not been gone.

The accounting closes if nothing is unexplained and all checks hold: the updates applied are those of the final model,
one for each version; no step was seen twice, none that its worker, heard to its end, had not pushed, none of a worker
that had not joined. What a dead node had not reported yet counts as neither begun nor seen, with one exception.

A worker that is killed cannot say which update it was at; its last report is up to a second old. If the server had
answered all that it is known to have begun, and had not taken it to have left before, it is taken to have been at the
next one, whether it pulled, computed or pushed: one more is begun, and lost with its worker. So it is of one whose end
nobody heard, since its controller had ended before. Nothing is assumed of one that was killed where a fault waited for
it, which it reports before, nor of one that died in the simulation, which reports how far each had come.

Times count for nothing here, since those of different hosts are only known to differ by little. What came before what
is known by counts: steps, joins, incarnations, versions. Lines of one node are taken in the order in which it reported
them, with the controller's lines about it among them, as they came over one connection; how lines of different nodes
lie between each other makes no difference.

Where layer shards train, nobody pushes updates: step_accounts.py has what became of their steps.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from typing import get_args

import msgspec

from edgebed.core import chance, records
from edgebed.core.actions import ENDS_FREEZE, ENDS_LIFE, FREEZES
from edgebed.core.planned.fault import Point
from edgebed.core.runtimes import is_virtual
from edgebed.journal.accounts.ledger import Accounting, Ledger, closed
from edgebed.journal.accounts.step_accounts import StepAccounting
from edgebed.journal.accounts.step_fates import End
from edgebed.journal.folds import Fold, Timeline, on

SERVER = "server"
POINTS = get_args(Point)
ANSWERED = ("late", "not-finite")
"""Codes of refusals after which the server sends the model."""


class Stretch(msgspec.Struct):
    """Consecutive steps that one incarnation of the server has seen in one join."""

    first: int
    last: int
    joins: int
    server: int
    """Index of the server's incarnation, from 0."""

    @property
    def place(self) -> tuple[int, int]:
        """Index of the server's incarnation, and number of the join."""
        return self.server, self.joins


class Halt(msgspec.Struct, frozen=True):
    """How a worker stopped for good: it was killed, or frozen and not thawed, or nobody was there to hear its end."""

    at_point: bool = False
    """Whether the worker stood where a fault waited for it, and had reported how far it had come."""
    unheard: bool = False
    """Whether its controller had ended before it, in whatever runtime."""


class WorkerIncarnation(msgspec.Struct):
    """What is known of one incarnation of a worker."""

    worker: str
    incarnation: int
    born: int
    """Index of the server's incarnation in which the worker began."""
    number: int
    """Index among all incarnations of workers, in the order in which they were heard of."""
    end: int | None = None
    """Index of the server's incarnation in which the worker ended; None: not yet."""
    is_gone: bool = False
    """Whether the worker died, or was never heard of again."""
    is_stopped: bool = False
    """Whether the worker ended with the trial."""
    goodbye: str | None = None
    """Why it ended then: as the controller gives the reason, if the worker itself said goodbye."""
    seen: list[Stretch] = msgspec.field(default_factory=list)
    """Steps that the server has seen, in order."""
    joined: dict[int, int] = msgspec.field(default_factory=dict)
    """Index of the server's incarnation by join."""
    unanswered: dict[int, int] = msgspec.field(default_factory=dict)
    """Steps that the worker gave up waiting for, with the join of each."""
    given_up_joins: int = -1
    """The last join in which the worker gave up waiting, for whatever answer."""
    begun: int = 0
    """Updates begun, by the worker's last report; `pushed` is of the same report."""
    pushed: int = 0
    answered_joins: int = -1
    """The last join of which the server has seen anything."""
    is_answered: bool = False
    """Whether the server sent a model for the last step it saw of that join, before it took the worker to have left."""
    left_joins: int = -1
    """The last join that the server took to have ended."""
    halt: Halt | None = None
    """How the worker stopped, if it died."""
    assumed: int = 0
    """1 if the worker died at an update that nobody has reported."""
    applied: int = 0
    rolled_back: int = 0
    refused: Counter[str] = msgspec.field(default_factory=Counter)

    @property
    def name(self) -> str:
        """The worker's name in this incarnation, e.g. `edge-0`, and `edge-0#2` in its second."""
        return chance.draw_name(self.worker, max(1, self.incarnation))


class UpdateAccounting(Fold):
    """Takes the records of a journal, in its order, and makes the accounting of updates."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.steps = StepAccounting()
        """Accounting of the shards' steps."""
        super().__init__(timeline, self.steps)
        self.lives: dict[tuple[str, int], WorkerIncarnation] = {}
        self.lineage = array("q")
        """For each version of the model that was reported, the number of the incarnation whose update made it."""
        self.versions = array("q")
        """The versions that were reported, in order; others take no room."""
        self.version = 0
        """Version of the present model."""
        self.is_virtual = False
        """Whether time is virtual: then nodes that die have reported everything."""
        self.server = 0
        """Index of the server's present incarnation."""
        self.servers_died = [False]
        """For each incarnation of the server, whether it ended before it had reported all that it did."""
        self.joined: set[tuple[str, int, int]] = set()
        """Worker, incarnation and join that the present server knows; what it stores of an older one still counts."""
        self.present: set[str] = set()
        """Nodes that have come since training last began."""
        self.frozen: dict[str, Halt] = {}
        self.silent: set[str] = set()
        self.finished: records.Finished | None = None
        self.final_version: int | None = None
        self.is_restored = False
        """Whether there was more than one server, so that nobody knows which one's model an evaluation was of."""
        self.is_ended = False
        self.end_reason: str | None = None
        """Why the trial has ended."""
        self.is_reported = False
        """Whether nodes have reported joins or pushes: without any there is nothing to account for."""
        self.has_updates = False
        self.problems: Counter[str] = Counter()

    # --- reading ------------------------------------------------------------------------------------------------

    @on(records.Refused)
    def _refused(self, _: float, __: str, record: records.Refused) -> None:
        if record.step >= 0 and record.worker:
            life = self._life(record.worker, record.incarnation)
            if self._see(life, record.joins, record.step):
                life.refused[record.code] += 1
            _answer(life, record.joins, is_answered=record.code in ANSWERED)

    @on(records.Unanswered)
    def _unanswered(self, _: float, node: str, record: records.Unanswered) -> None:
        self.is_reported = True
        life = self._life(node, record.incarnation)
        life.given_up_joins = max(life.given_up_joins, record.joins)
        if record.step >= 0:
            life.unanswered[record.step] = record.joins

    @on(records.Joined)
    def _joined(self, _: float, __: str, record: records.Joined) -> None:
        self.is_reported = True
        life = self._life(record.worker, record.incarnation)
        life.joined[record.joins] = self.server
        _answer(life, record.joins)
        self.joined.add((record.worker, record.incarnation, record.joins))

    @on(records.Left)
    def _left(self, _: float, __: str, record: records.Left) -> None:
        life = self._life(record.worker, record.incarnation)
        life.left_joins = max(life.joined, default=0)

    @on(records.Finished)
    def _finished(self, _: float, __: str, record: records.Finished) -> None:
        self.finished = record

    @on(records.Evaluated)
    def _evaluated(self, _: float, __: str, record: records.Evaluated) -> None:
        self.final_version = record.version if record.final else self.final_version

    @on(records.Ended)
    def _ended(self, _: float, __: str, record: records.Ended) -> None:
        self.is_ended, self.end_reason = True, record.reason

    @on(records.Fault)
    def _fault(self, _: float, __: str, record: records.Fault) -> None:
        if record.problem or record.no_op:
            return
        halt = self.frozen.get(record.target) or Halt(record.trigger.partition(" ")[0] in POINTS)
        if record.action in ENDS_LIFE:
            life = self.lives.get((record.target, self.timeline.incarnations.get(record.target, 0)))
            if life:
                life.halt = halt
        if record.action in FREEZES:
            self.frozen[record.target] = halt
        elif record.action in ENDS_FREEZE:
            self.frozen.pop(record.target, None)

    def _life(self, worker: str, incarnation: int) -> WorkerIncarnation:
        key = worker, incarnation
        life = self.lives.get(key)
        if life is None:
            life = self.lives[key] = WorkerIncarnation(worker, incarnation, self.server, len(self.lives))
        return life

    @on(records.Update)
    def _update(self, _: float, __: str, record: records.Update) -> None:
        self.has_updates = True
        life = self._life(record.worker, record.incarnation)
        if self.is_reported and (record.worker, record.incarnation, record.joins) not in self.joined:
            self._problem(f"{life.name}: the server applied pushes of a join that it did not know")
        _answer(life, record.joins)
        if not self._see(life, record.joins, record.step):
            return
        if record.version <= self.version:
            self._problem("the server reported a version of the model twice")
            return
        if record.version > self.version + 1:
            self._problem("the server left out versions of the model")
        self.version = record.version
        self.versions.append(record.version)
        self.lineage.append(life.number)
        life.applied += 1

    def _see(self, life: WorkerIncarnation, joins: int, step: int) -> bool:
        """Note that the server has seen a step; False if it had seen it before."""
        seen, place = life.seen, (self.server, joins)
        at = len(seen)
        if seen and step <= seen[-1].last:  # from an older join, overtaken by the next
            at = bisect_right([stretch.first for stretch in seen], step)
            if at and step <= seen[at - 1].last:
                self._problem(f"{life.name}: the server saw an update twice")
                return False
        if at and seen[at - 1].last + 1 == step and seen[at - 1].place == place:
            seen[at - 1].last = step
        else:
            seen.insert(at, Stretch(step, step, joins, self.server))
        return True

    @on(records.Pushes)
    def _pushes(self, _: float, node: str, record: records.Pushes) -> None:
        self.is_reported = True
        life = self._life(node, record.incarnation)
        life.begun, life.pushed = record.begun, record.pushed

    @on(records.Node)
    def _node(self, _: float, __: str, record: records.Node) -> None:
        if record.state == "joined":
            self.present.add(record.name)
            before = self.lives.get((record.name, record.incarnation - 1))
            if before and not before.is_stopped:
                self._end_unheard(before)
            self.frozen.pop(record.name, None)
        (self.silent.add if record.state == "unresponsive" else self.silent.discard)(record.name)
        if record.name == SERVER:
            if record.state == "died" and self.finished is None:
                self.servers_died[-1] = True
        elif record.state in ("joined", "died", "stopped"):
            self._worker(self._life(record.name, record.incarnation), record.state, record.reason)

    def _worker(self, life: WorkerIncarnation, state: str, reason: str) -> None:
        """Note that an incarnation of a worker has begun or ended."""
        if state == "joined":
            life.born = self.server  # the server may have told of it before
            return
        life.end = self.server
        life.is_gone, life.is_stopped = state == "died", state == "stopped"
        life.goodbye = reason if life.is_stopped else None
        if state == "died":
            life.halt = life.halt or self.frozen.get(life.worker) or Halt()

    @on(records.Restored)
    def _restored(self, _: float, __: str, record: records.Restored) -> None:
        """Note a new incarnation of the server: what the one before did after this version is lost."""
        self.is_restored = True
        if record.replayed is not None:
            self._went_on(record)
            return
        if self.finished is None:
            self.servers_died[-1] = True
        self.server += 1
        self.servers_died.append(False)
        self.joined.clear()
        self.finished = None
        if record.version > self.version:
            self._problem("the server was restored to a version with updates that nobody has reported")
        self.version = record.version
        kept = bisect_right(self.versions, record.version)
        lives = list(self.lives.values())
        for place in self.lineage[kept:]:
            lives[place].applied -= 1
            lives[place].rolled_back += 1
        del self.lineage[kept:], self.versions[kept:]

    def _went_on(self, record: records.Restored) -> None:
        """Note a server that went on from the log of the one before, which so has not ended."""
        self.servers_died[-1] = False
        self.finished = None
        if record.version < self.version:
            self._problem(f"the server forgot {self.version - record.version:,} updates that it had applied")
        elif record.version > self.version:
            self._problem("the server was restored to a version with updates that nobody has reported")

    @on(records.Trial)
    def _trial(self, _: float, __: str, record: records.Trial) -> None:
        """Training begins, or is resumed after its controller was gone: no node outlasts that for long."""
        self.is_virtual = is_virtual(record.runtime)
        newest = self.timeline.incarnations
        for life in self.lives.values():
            is_old = life.incarnation < newest.get(life.worker, 0) or life.worker not in self.present
            if is_old and not life.is_stopped:
                self._end_unheard(life)
                life.end = self.server - 1 if life.end is None else life.end
        self.present.clear()
        self.is_ended = False

    def _end_unheard(self, life: WorkerIncarnation) -> None:
        """Note that a worker has ended, and that nobody heard of it unless its death was told."""
        if not life.is_gone:
            life.is_gone, life.halt = True, self.frozen.get(life.worker) or Halt(unheard=True)

    def _problem(self, text: str) -> None:
        self.problems[text] += 1

    # --- closing ------------------------------------------------------------------------------------------------

    def close(self) -> Accounting | None:
        """The accounting of updates, or of steps in layer-wise training; None where nothing was reported."""
        if self.has_updates and not self.is_reported:
            return None
        lost = self.silent | self.frozen.keys()
        if SERVER in lost and self.finished is None:
            self.servers_died[-1] = True
        newest = dict(sorted(self.lives))  # worker: its last incarnation
        for life in self.lives.values():
            if life.incarnation < newest[life.worker] and not life.is_stopped:
                self._end_unheard(life)
            if life.incarnation == newest[life.worker] and life.worker in lost:
                life.is_gone = True
                life.halt = life.halt or self.frozen.get(life.worker)
        if self.steps.is_reported:
            ends = {name: self._end(life) for name, life in self.lives.items()}
            return self.steps.close(ends, self.finished, is_cut=self.servers_died[-1] or not self.is_ended)
        for life in self.lives.values():
            life.assumed = int(self._may_be_silent(life) and _died_at_another(life))
        lives = tuple(self._ledger(life) for _, life in sorted(self.lives.items()) if _begun(life))
        self._check_pushed()
        self._check_version()
        return closed(lives, self.problems)

    def _end(self, life: WorkerIncarnation) -> End:
        return End(life.is_gone, self._has_told_all(life), life.halt is not None and self._may_be_silent(life))

    def _may_be_silent(self, life: WorkerIncarnation) -> bool:
        """Whether a worker that died may have begun what it had not reported: in the simulation only unheard."""
        return not self.is_virtual or (life.halt is not None and life.halt.unheard)

    def _has_told_all(self, life: WorkerIncarnation) -> bool:
        """Whether it has said goodbye, and so reported everything.

        A node that was frozen, or killed while the trial ended, has stopped as well, but for a reason of its own.
        """
        return self.is_ended and life.is_stopped and life.goodbye == self.end_reason

    def _check_pushed(self) -> None:
        """Check that workers which have reported everything had pushed what the server has seen."""
        for life in self.lives.values():
            if self._has_told_all(life) and life.seen and life.seen[-1].last >= life.pushed:
                self._problem(f"{life.name}: the server saw updates that the worker had not pushed")

    def _check_version(self) -> None:
        final = self.finished.version if self.finished else None if self.is_restored else self.final_version
        if final is not None and final != self.version:
            self._problem(f"the final model is version {final:,}, and {self.version:,} updates made it")

    def _ledger(self, life: WorkerIncarnation) -> Ledger:
        """What became of each update of one incarnation."""
        begun, told = _begun(life), sorted(life.unanswered)
        fates: Counter[str] = Counter()
        for gap in _missing(life):
            first, last = bisect_left(told, gap.first), bisect_right(told, gap.last)
            for fate, count in self._fates(life, gap, told[first:last], begun):
                fates[fate] += count
        ledger = Ledger(
            worker=life.worker,
            incarnation=life.incarnation,
            begun=begun,
            applied=life.applied,
            refused=dict(life.refused),
            lost_in_flight=fates["flight"],
            lost_with_worker=fates["worker"],
            lost_with_server=fates["server"] + life.rolled_back,
            unfinished=fates["unfinished"],
            unexplained=fates["unexplained"],
        )
        if ledger.unexplained:
            self._problem(f"{life.name}: {ledger.unexplained:,} of its updates are missing without a reason")
        return ledger

    def _fates(self, life: WorkerIncarnation, gap: "Gap", told: list[int], begun: int) -> Iterator[tuple[str, int]]:
        """What became of a run of missing steps, and of how many of them; a run is as long as its ends say.

        `told` are the steps that the worker gave up waiting for, `begun` is how many steps the incarnation has begun.
        """
        if gap.is_within_a_join:
            yield "unexplained", gap.last - gap.first + 1
            return
        lost_joins = gap.joins_between  # each of them may have ended with one lost
        has_died = any(self._died(life, gap))
        said = max(life.begun, max(life.unanswered, default=-1) + 1)
        first, alone = gap.first, sorted({*told, begun - 1} if gap.last == begun - 1 else told)
        for step in (*alone, gap.last + 1):
            count = step - first
            if has_died:
                yield "server", count
            elif gap.after is None and not self.is_ended and self.finished is None:
                yield "unfinished", count  # the journal breaks off before the server's report of it
            else:
                silent = max(0, step - max(first, said - 1))
                lost = min(silent, max(0, lost_joins))
                lost_joins -= lost
                yield "flight", lost  # the worker's report was lost with the worker
                yield "unexplained", count - lost
            first = step + 1
            if step > gap.last:
                return
            if step in life.unanswered:
                lost_joins -= 1
                yield "server" if self._ended_with_server(life, step, has_died=has_died) else "flight", 1
            else:
                yield self._last_fate(life, step), 1

    def _last_fate(self, life: WorkerIncarnation, step: int) -> str:
        """What became of the last update of an incarnation, which nobody saw."""
        if life.is_gone:
            return "worker"
        return "server" if self.servers_died[-1] and step < life.pushed else "unfinished"

    def _died(self, life: WorkerIncarnation, gap: "Gap") -> list[bool]:
        """Whether each incarnation of the server died in which missing steps may have been pushed."""
        since = gap.before.server if gap.before else life.born
        if gap.after is not None:
            return self.servers_died[since : gap.after.server]
        return self.servers_died[since : None if life.end is None else life.end + 1]

    def _ended_with_server(self, life: WorkerIncarnation, step: int, *, has_died: bool) -> bool:
        """Whether the worker gave up waiting because the server was gone: the same one did not see it join again."""
        joins = life.unanswered[step]
        server = life.joined.get(joins)
        if server is None:  # the record of it went with a server
            return has_died
        is_back = any(later > joins and life.joined[later] == server for later in life.joined)
        return self.servers_died[server] and not is_back


class Gap(msgspec.Struct, frozen=True):
    """A run of missing steps, and what the server has seen before and after them."""

    first: int
    last: int
    before: Stretch | None
    after: Stretch | None

    @property
    def is_within_a_join(self) -> bool:
        """Whether the gap lies within one join, which cannot be: a worker pushes in order, and TCP loses nothing."""
        return self.before is not None and self.after is not None and self.before.place == self.after.place

    @property
    def joins_between(self) -> int:
        """Number of joins that ended within the gap."""
        if self.after is None:
            return 0
        return self.after.joins - (self.before.joins if self.before else 0)


def _answer(life: WorkerIncarnation, joins: int, *, is_answered: bool = True) -> None:
    """Note whether the server has sent a model for what it saw of an incarnation; older joins are ignored."""
    if joins >= life.answered_joins:
        life.answered_joins, life.is_answered = joins, is_answered and joins > life.left_joins


def _died_at_another(life: WorkerIncarnation) -> bool:
    """Whether a worker died unreported, and the server had answered all that the worker is known to have begun."""
    if not life.is_gone or life.halt is None or life.halt.at_point:
        return False
    last = _told(life) - 1
    is_over = last in life.unanswered or last == (life.seen[-1].last if life.seen else -1)
    return is_over and life.is_answered and life.given_up_joins < life.answered_joins


def _told(life: WorkerIncarnation) -> int:
    """Number of updates of an incarnation that somebody has reported."""
    seen = life.seen[-1].last + 1 if life.seen else 0
    return max(life.begun, seen, max(life.unanswered, default=-1) + 1)


def _begun(life: WorkerIncarnation) -> int:
    return _told(life) + life.assumed


def _missing(life: WorkerIncarnation) -> Iterator[Gap]:
    """The steps that the server has not seen."""
    due, before = 0, None
    for stretch in life.seen:
        if stretch.first > due:
            yield Gap(due, stretch.first - 1, before, stretch)
        due, before = stretch.last + 1, stretch
    if _begun(life) > due:
        yield Gap(due, _begun(life) - 1, before, None)
