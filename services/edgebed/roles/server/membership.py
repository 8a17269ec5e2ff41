"""Members of the training, as far as the server can tell from the data network.

    expected ---> join ---> takes part ---> silent for `silence_s`, or its connection broken for BROKEN_S ---> has left
       |            ^
       '--- not joined for JOIN_S: nobody waits for it

A worker's processes are counted by its incarnation, and the joins of each; the pair orders them all, and the highest
alone holds. What is remembered of a worker that has left is this pair. The controller tells of each incarnation when
the worker is asked to begin; over the other network the join may come first, and waits.

Silent is a worker that was answered and sends nothing: while it waits for an answer, as at a barrier, it has nothing to
say.
"""

import math
from collections.abc import Iterable
from typing import Literal, NamedTuple

from edgebed.roles.events import MessageReceived

BROKEN_S = 2.0  # more than what a worker needs to connect again and join
JOIN_S = 10.0  # more than what a worker needs to join once it is asked to begin
WORD_S = 10.0  # more than what the controller's word may take longer than a worker's join

Reason = Literal["reset", "silence", "oracle"]
"""How the server knows that a worker has left: by itself, or from the controller."""


class JoinId(NamedTuple):
    """Incarnation and join that a worker is in."""

    incarnation: int
    joins: int

    def __str__(self) -> str:
        return f"join {self.joins} of incarnation {self.incarnation}"


class Objection(NamedTuple):
    """Why a message is refused."""

    code: str
    reason: str
    told: bool = True
    """Whether its sender is answered: one that has joined again since waits for another answer, and must not mistake
    it."""


class Early(NamedTuple):
    """A join that waits for the controller's word."""

    event: MessageReceived
    worker: str
    incarnation: int
    since_s: float


class Membership:
    """Workers that take part. Times are seconds of the trial, and never decrease from call to call."""

    transient = ("silence_s", "told", "early", "silent", "broken")
    """Attributes that do not outlast the server."""

    def __init__(self, silence_s: float | None) -> None:
        """`silence_s`: how long a worker may be silent; None: for ever."""
        self.silence_s = silence_s
        self.expected: dict[str, float] = {}
        """Workers that were asked to begin and have not joined: since when, the longest first."""
        self.away: set[str] = set()
        """Workers that took part when the server came back, and are expected to be heard of again: they need not join.
        """
        self.told: dict[str, int] = {}
        """Highest incarnation of each worker that the controller has told of."""
        self.early: dict[str, Early] = {}
        """Joins of incarnations that it has not, by connection, the longest first."""
        self.latest: dict[str, JoinId] = {}
        """Highest incarnation and join of each worker that ever joined."""
        self.peers: dict[str, str] = {}
        """Connection on which each worker that takes part has joined."""
        self.silent: dict[str, float] = {}
        """Workers that have something to say: since when they have said nothing, the longest first."""
        self.broken: dict[str, float] = {}
        """Workers whose connection broke, and that have said nothing since: when, the longest first."""

    def tell(self, incarnations: Iterable[tuple[str, int]]) -> list[MessageReceived]:
        """Note incarnations that the controller told of; return the joins that have waited for that."""
        self.told.update(incarnations)
        known = [peer for peer, join in self.early.items() if self.is_known(join.worker, join.incarnation)]
        return [self.early.pop(peer).event for peer in known]

    def is_known(self, worker: str, incarnation: int) -> bool:
        """Whether the controller has told of that incarnation, or of a later one."""
        return incarnation <= self.told.get(worker, 0)

    def wait(self, event: MessageReceived, worker: str, incarnation: int, now: float) -> None:
        """Let a join wait for the controller's word; of a connection one waits, its last."""
        self.early.pop(event.peer, None)
        self.early[event.peer] = Early(event, worker, incarnation, now)

    def unknown(self, now: float) -> list[Early]:
        """Return joins for which the controller's word has not come in time; they do not wait any more."""
        over = [peer for peer, join in self.early.items() if join.since_s + WORD_S <= now]
        return [self.early.pop(peer) for peer in over]

    def refuse_join(self, worker: str, join_id: JoinId, peer: str) -> Objection | None:
        """Return why `worker` may not join, if so."""
        latest = self.latest.get(worker)
        if latest is None or join_id > latest:
            return None
        if join_id < latest:
            return Objection("stale-incarnation", f"{latest} holds", told=join_id.incarnation < latest.incarnation)
        if self.peers.get(worker, peer) != peer:
            return Objection("duplicate", f"{latest} was on another connection")
        return None

    def refuse_push(self, worker: str, join_id: JoinId, peer: str) -> Objection | None:
        """Return why a push of `worker` is not for the model, if so."""
        latest = self.latest.get(worker)
        if latest is None or join_id > latest:
            return Objection("not-joined", f"{worker!r} has not joined")
        if join_id.incarnation < latest.incarnation:
            return Objection("stale-incarnation", f"{latest} holds")
        if join_id < latest:
            return Objection("not-joined", f"{latest} holds", told=False)
        if worker not in self.peers and worker not in self.away:
            return Objection("not-joined", f"{worker!r} was given up")
        if self.peers.get(worker, peer) != peer:
            return Objection("duplicate", f"{latest} was on another connection")
        return None

    def expect(self, worker: str, now: float) -> bool:
        """Expect `worker`, which was asked to begin; False: it takes part already."""
        if worker in self.peers:
            return False
        self.expected.setdefault(worker, now)
        return True

    def connected(self, worker: str, peer: str) -> None:
        """Note the connection of a worker that takes part: it may be another than before the server came back."""
        self.peers[worker] = peer
        self.expected.pop(worker, None)
        self.away.discard(worker)

    def disconnect_all(self, now: float) -> None:
        """Expect all who take part to be back: the server has come back, and no connection is left."""
        self.away |= self.peers.keys()
        self.expected = dict.fromkeys([*self.expected, *self.peers], now)
        for table in (self.peers, self.silent, self.broken):
            table.clear()

    def join(self, worker: str, join_id: JoinId, peer: str) -> bool:
        """Let `worker` take part; False: it did already, in this very incarnation and join."""
        known = worker in self.peers and self.latest[worker] == join_id
        self.latest[worker] = join_id
        self.connected(worker, peer)
        self.broken.pop(worker, None)
        return not known

    def heard(self, worker: str, peer: str, now: float) -> bool:
        """Note a message of `worker`: its connection is there. Return whether it is one that owes a push."""
        if self.peers.get(worker) != peer:
            return False
        self.broken.pop(worker, None)
        is_owing = worker in self.silent
        if is_owing:
            self.answered(worker, now)
        return is_owing

    def waits(self, worker: str) -> None:
        """Note that `worker` waits for the server's answer."""
        self.silent.pop(worker, None)

    def answered(self, worker: str, now: float) -> None:
        """Note that `worker` was answered, and has something to say."""
        self.silent.pop(worker, None)
        self.silent[worker] = now

    def disconnected(self, peer: str, now: float) -> None:
        """Note a connection that broke; a worker's earlier join's is of no interest."""
        self.early.pop(peer, None)
        for worker, present in self.peers.items():
            if present == peer:
                self.broken.setdefault(worker, now)

    def leave(self, worker: str) -> None:
        """Remove `worker`, which takes part no more, and is not expected to."""
        self.away.discard(worker)
        for table in (self.expected, self.peers, self.silent, self.broken):
            table.pop(worker, None)

    def lost(self, now: float) -> list[tuple[str, Reason]]:
        """Return the workers that have left, and why."""
        reset = [worker for worker, at_s in self.broken.items() if at_s + BROKEN_S <= now]
        silent = [
            worker
            for worker, at_s in self.silent.items()
            if worker not in reset and self.silence_s is not None and at_s + self.silence_s <= now
        ]
        return [*((worker, "reset") for worker in reset), *((worker, "silence") for worker in silent)]

    def absent(self, now: float) -> list[str]:
        """Return the workers that are not waited for any more: they should have joined by now."""
        return [worker for worker, since_s in self.expected.items() if since_s + JOIN_S <= now]

    @property
    def next_s(self) -> float:
        """Return when a worker may be lost or absent, or a join has waited for too long, at the earliest."""
        early = next(iter(self.early.values()), None)
        early_s = early.since_s + WORD_S if early else math.inf
        absent_s = next(iter(self.expected.values()), math.inf) + JOIN_S
        broken_s = next(iter(self.broken.values()), math.inf) + BROKEN_S
        silence_s = math.inf if self.silence_s is None else self.silence_s
        return min(early_s, absent_s, broken_s, next(iter(self.silent.values()), math.inf) + silence_s)
