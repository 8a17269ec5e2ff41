"""Who takes part in the training, as far as the server can tell from the data network.

    expected ---> join ---> takes part ---> silent for `silence_s`, or its connection broken for BROKEN_S ---> has left
       |            ^
       '--- not joined for JOIN_S: nobody waits for it

A worker's lives are counted by its incarnation, and the joins of each life; the pair orders them all, and the highest
alone holds. What is remembered of a worker that has left is this pair.

Silent is a worker that was answered and sends nothing: while it waits for an answer, as at a barrier, it has nothing to
say.
"""

import math
from typing import Literal, NamedTuple

BROKEN_S = 2.0  # more than what a worker needs to connect anew and join
JOIN_S = 10.0  # more than what a worker needs to join once it is told to begin

Reason = Literal["reset", "silence", "oracle"]
"""How the server knows that a worker has left: of itself, or told by the controller."""


class Life(NamedTuple):
    """Which of its joins a worker is in."""

    incarnation: int
    joins: int

    def __str__(self) -> str:
        return f"join {self.joins} of incarnation {self.incarnation}"


class Objection(NamedTuple):
    """Why a message is refused."""

    code: str
    reason: str
    told: bool = True
    """Whether its sender is told: one that has joined anew since waits for another answer, and must not mistake it."""


class Membership:
    """Times are those of the trial, in seconds, and never decrease from call to call."""

    def __init__(self, silence_s: float | None) -> None:
        """`silence_s`: how long a worker may be silent; None: for ever."""
        self.silence_s = silence_s
        self.expected: dict[str, float] = {}
        """Those that were told to begin and have not joined: since when, the longest first."""
        self.latest: dict[str, Life] = {}
        """The highest of each worker that ever joined."""
        self.peers: dict[str, str] = {}
        """Those that take part: the connection that each joined on."""
        self.silent: dict[str, float] = {}
        """Those that have something to say: since when they have said nothing, the longest first."""
        self.broken: dict[str, float] = {}
        """Those whose connection broke, and that have said nothing since: when, the longest first."""

    def refuse_join(self, worker: str, life: Life, peer: str) -> Objection | None:
        """Why `worker` may not join, if so."""
        latest = self.latest.get(worker)
        if latest is None or life > latest:
            return None
        if life < latest:
            return Objection("stale-incarnation", f"{latest} holds", told=life.incarnation < latest.incarnation)
        if self.peers.get(worker, peer) != peer:
            return Objection("duplicate", f"{latest} was on another connection")
        return None

    def refuse_push(self, worker: str, life: Life, peer: str) -> Objection | None:
        """Why a push of `worker` is not for the model, if so."""
        latest = self.latest.get(worker)
        if latest is None or life > latest:
            return Objection("not-joined", f"{worker!r} has not joined")
        if life.incarnation < latest.incarnation:
            return Objection("stale-incarnation", f"{latest} holds")
        if life < latest:
            return Objection("not-joined", f"{latest} holds", told=False)
        if worker not in self.peers:
            return Objection("not-joined", f"{worker!r} was given up")
        if self.peers[worker] != peer:
            return Objection("duplicate", f"{latest} was on another connection")
        return None

    def expect(self, worker: str, now: float) -> bool:
        """It was told to begin; False: it takes part already."""
        if worker in self.peers:
            return False
        self.expected.setdefault(worker, now)
        return True

    def join(self, worker: str, life: Life, peer: str) -> bool:
        """It takes part; False: it did already, in this very life and join."""
        known = worker in self.peers and self.latest[worker] == life
        self.latest[worker] = life
        self.peers[worker] = peer
        self.expected.pop(worker, None)
        self.broken.pop(worker, None)
        return not known

    def heard(self, worker: str, peer: str, now: float) -> None:
        """A message of `worker` came: its connection is there."""
        if self.peers.get(worker) == peer:
            self.broken.pop(worker, None)
            if worker in self.silent:
                self.answered(worker, now)

    def waits(self, worker: str) -> None:
        """It is for the server to answer it."""
        self.silent.pop(worker, None)

    def answered(self, worker: str, now: float) -> None:
        """It is for the worker to say something."""
        self.silent.pop(worker, None)
        self.silent[worker] = now

    def disconnected(self, peer: str, now: float) -> None:
        """A connection broke; that of a worker's earlier join is of no interest."""
        for worker, present in self.peers.items():
            if present == peer:
                self.broken.setdefault(worker, now)

    def leave(self, worker: str) -> None:
        """It takes part no more, and is not expected to."""
        for table in (self.expected, self.peers, self.silent, self.broken):
            table.pop(worker, None)

    def lost(self, now: float) -> list[tuple[str, Reason]]:
        """Those that have left, and why."""
        reset = [worker for worker, at_s in self.broken.items() if at_s + BROKEN_S <= now]
        silent = [
            worker
            for worker, at_s in self.silent.items()
            if worker not in reset and self.silence_s is not None and at_s + self.silence_s <= now
        ]
        return [*((worker, "reset") for worker in reset), *((worker, "silence") for worker in silent)]

    def absent(self, now: float) -> list[str]:
        """Those that are not waited for any more: they should have joined by now."""
        return [worker for worker, since_s in self.expected.items() if since_s + JOIN_S <= now]

    @property
    def next_s(self) -> float:
        """When somebody may be lost, or absent, at the earliest."""
        absent_s = next(iter(self.expected.values()), math.inf) + JOIN_S
        broken_s = next(iter(self.broken.values()), math.inf) + BROKEN_S
        silence_s = math.inf if self.silence_s is None else self.silence_s
        return min(absent_s, broken_s, next(iter(self.silent.values()), math.inf) + silence_s)
