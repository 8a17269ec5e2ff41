"""Mistakes that somebody could make in a server with a log, each planted by patching one function of the real code.

Tests must find every one of them: those of a server alone (tests/unit/runtimes/test_server_log.py), which knows a
kill between any two things that it does, or storms of random faults in virtual time
(tests/simulation/test_storms_and_mistakes.py).
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple

import pytest
import random_faults

from edgebed.algorithms.aggregation import synchronous
from edgebed.algorithms.aggregator import Aggregator
from edgebed.core.records import Refused, Update
from edgebed.roles.events import Append, Effect, Journal, Send
from edgebed.roles.server.answers import Answers
from edgebed.roles.server.downlink import Downlink
from edgebed.roles.server.entries import Accepted, Departed, Snapshot, decode_entry
from edgebed.roles.server.membership import Membership
from edgebed.roles.server.parameter_server import ParameterServer
from edgebed.roles.server.snapshot import dump_lasting, load_lasting
from edgebed.runtimes import server_log
from edgebed.runtimes.log_file import NAME, FolderInMemory, LogFile, read_records
from edgebed.runtimes.server_log import ServerLog
from edgebed.wire.messages import Push

Patch = Callable[[pytest.MonkeyPatch], None]


class Mistake(NamedTuple):
    """A mistake, and who must find it."""

    name: str
    breaks: str
    plant: Patch
    alone: bool = True
    """Whether the laws of a server alone find it."""
    storm: bool = True
    """Whether storms in virtual time find it: nodes die between two events there, and old connections say nothing."""
    methods: tuple[Any, ...] = random_faults.SERVED
    """Methods of these storms."""


@contextmanager
def planted(mistake: Mistake) -> Iterator[None]:
    """Have the mistake in the code while entered."""
    with pytest.MonkeyPatch.context() as patch:
        mistake.plant(patch)
        yield


def _instead(owner: Any, name: str, change: Callable[[Any], Any]) -> Patch:
    """Replace a function by what `change` makes of it."""
    return lambda patch: patch.setattr(owner, name, change(getattr(owner, name)))


def _forgets(owner: type, attribute: str) -> Patch:
    """Leave an attribute out of snapshots."""
    return lambda patch: patch.setattr(owner, "transient", (*owner.transient, attribute))  # type: ignore[attr-defined]


def _is_push(entry: Any) -> bool:
    return isinstance(entry, Accepted) and isinstance(entry.message, Push)


def _skips(is_skipped: Callable[[Any], bool]) -> Patch:
    """Append only the other entries."""

    def change(take: Any) -> Any:
        def fewer(self: ServerLog, effect: Effect) -> None:
            if not (isinstance(effect, Append) and is_skipped(effect.entry)):
                take(self, effect)

        return fewer

    return _instead(ServerLog, "take", change)


def _answers_first(handle: Any) -> Any:
    def other_order(self: ParameterServer, event: Any, now: float) -> list[Effect]:
        return sorted(handle(self, event, now), key=lambda effect: not isinstance(effect, Send))

    return other_order


def _does_twice(redo: Any) -> Any:
    def twice(self: ParameterServer, entry: Any, frames: Any = ()) -> Any:
        if _is_push(entry):
            redo(self, entry, frames)
            self.steps.clear()
        return redo(self, entry, frames)

    return twice


def _swaps(read: Any) -> Any:
    def swapped(content: BinaryIO) -> list[Any]:
        found = list(read(content))
        if len(found) > 2:
            found[-2:] = found[:-3:-1]
        return found

    return swapped


def _counts_refused(refuse: Any) -> Any:
    def counted(self: ParameterServer, *given: Any, push: Push | None = None, **named: Any) -> list[Effect]:
        effects = refuse(self, *given, push=push, **named)
        for k, effect in enumerate(effects):
            if isinstance(effect, Journal) and isinstance(effect.record, Refused) and push and effect.record.worker:
                effects[k] = Journal(_applied(self, push))
        return effects

    return counted


def _applied(server: ParameterServer, push: Push) -> Update:
    return Update(
        worker=push.sender, incarnation=push.incarnation, joins=push.joins, step=push.step,
        version=server.aggregation.version, base=push.base, staleness=0, entries=1, bits=1, bytes=1, loss=push.loss,
    )  # fmt: skip


def _renames_first(_: Any) -> Any:
    def replace(self: FolderInMemory, name: str, buffers: Any, *, synced: bool) -> int:
        file = self.names[name] = max(self.files, default=0) + 1
        self.files[file] = bytearray()
        self.write(file, buffers)
        return file

    return replace


def _keeps_tail(begin: Any) -> Any:
    def with_tail(self: LogFile, payload: Any) -> None:
        found = self.disk.read(NAME)
        before = [bytes(each) for _, each in read_records(found)] if found else []
        begin(self, payload)
        for each in before[-2:]:
            if not isinstance(decode_entry(memoryview(each))[0], Snapshot):
                self.append([each])

    return with_tail


def _restores_first_state(restore: Any) -> Any:
    def restored(self: ParameterServer, *given: Any) -> None:
        first = dump_lasting(self.aggregation)
        restore(self, *given)
        load_lasting(self.aggregation, first)

    return restored


def _restores_version_before(restore: Any) -> Any:
    def restored(self: ParameterServer, *given: Any) -> None:
        restore(self, *given)
        self.aggregation.version = max(0, self.aggregation.version - 1)

    return restored


def _numbers_too_low(number: Any) -> Any:
    return lambda self, part: max(0, number(self, part) - 1)


def _leaves_untold_out(renew: Any) -> Any:
    def renewed(self: ServerLog) -> None:
        untold, self.untold = self.untold, type(self.untold)()
        renew(self)
        self.untold = untold

    return renewed


def _never(*_: Any) -> bool:
    return False


def _takes_old_joins(refuse: Any) -> Any:
    def refused(self: Membership, worker: str, join_id: Any, peer: str) -> Any:
        objection = refuse(self, worker, join_id, peer)
        return None if objection and worker in self.peers else objection

    return refused


def _waits_for_ever(_: Any) -> Any:
    return lambda self: math.inf


def _releases_nobody(leave: Any) -> Any:
    def left(self: ParameterServer, departed: Departed) -> list[Effect]:
        self.aggregation.left = lambda worker: None  # type: ignore[method-assign]
        try:
            return leave(self, departed)
        finally:
            del self.aggregation.left

    return left


MISTAKES = (
    Mistake("skips-an-append", "every third push is in no log",
            _skips(lambda entry: _is_push(entry) and entry.message.step % 3 == 2)),
    Mistake("logs-no-departures", "who has left is in no log", _skips(lambda entry: isinstance(entry, Departed))),
    Mistake(
        "answers-first", "whoever is to be answered is answered before the log has the push",
        _instead(ParameterServer, "handle", _answers_first), storm=False,
    ),
    Mistake("does-twice", "what is in the log is done twice", _instead(ParameterServer, "redo", _does_twice)),
    Mistake("swaps-entries", "a log's last two entries are done in the wrong order",
            _instead(server_log, "read_records", _swaps)),
    Mistake("forgets-held", "a snapshot is without the pushes that are held", _forgets(ParameterServer, "pending")),
    Mistake("forgets-steps", "a snapshot does not say who pushed what", _forgets(ParameterServer, "steps")),
    Mistake("forgets-waiting", "a snapshot does not say who waits for an answer",
            _forgets(ParameterServer, "unanswered")),
    Mistake("forgets-refused", "a snapshot does not say what was refused",
            _forgets(ParameterServer, "rejected"), storm=False),
    Mistake("forgets-pulls", "a snapshot is without the counters of staleness",
            _forgets(Aggregator, "counts_at_pull"), methods=("adacomp",)),
    Mistake("forgets-copies", "a snapshot is without the copies that a downlink knows of",
            _forgets(Downlink, "copies"), methods=random_faults.DOWNLINK),
    Mistake("forgets-changes", "a snapshot does not say which entries changed when", _forgets(Answers, "changes")),
    Mistake("forgets-joins", "a snapshot does not say who joined how often", _forgets(Membership, "latest")),
    Mistake("restores-first-state", "momentum and schedule are those of the beginning",
            _instead(ParameterServer, "restore", _restores_first_state)),
    Mistake("restores-version-before", "the model is taken for that of the version before",
            _instead(ParameterServer, "restore", _restores_version_before)),
    Mistake("renames-first", "a log is begun anew before the new file is whole",
            _instead(FolderInMemory, "replace", _renames_first), storm=False),
    Mistake("keeps-tail", "the last entries before a snapshot are behind it, too",
            _instead(LogFile, "begin", _keeps_tail)),
    Mistake("numbers-too-low", "the controller is told of fewer durable records than there were",
            _instead(ServerLog, "number", _numbers_too_low), storm=False),
    Mistake("leaves-untold-out", "a snapshot is without the records that the controller lacks",
            _instead(ServerLog, "_renew", _leaves_untold_out), storm=False),
    Mistake("applies-again", "a push that comes once more is applied once more",
            _instead(ParameterServer, "_has_come", lambda _: _never)),
    Mistake("applies-late", "a push of a round that is over is part of the next",
            _instead(synchronous.Aggregation, "late", lambda _: _never)),
    Mistake("counts-refused", "the journal has a refused push as applied",
            _instead(ParameterServer, "_refuse", _counts_refused)),
    Mistake("takes-old-joins", "a push of a join that is over is taken",
            _instead(Membership, "refuse_push", _takes_old_joins), storm=False),
    Mistake("drops-the-deadline", "a round waits for ever",
            _instead(ParameterServer, "_round_ends_s", _waits_for_ever)),
    Mistake("waits-for-the-gone", "who has left is waited for",
            _instead(ParameterServer, "_leave", _releases_nobody)),
)  # fmt: skip
