"""What holds of a server's heart after everything that it does, and what it remembers, whoever drives it."""

from typing import Any

from edgebed.core.records import Update
from edgebed.roles.events import Append, Effect, Journal
from edgebed.roles.server.entries import Accepted
from edgebed.roles.server.membership import JoinId
from edgebed.roles.server.parameter_server import ParameterServer
from edgebed.roles.server.snapshot import dump
from edgebed.wire.messages import Push

SLACK_S = 1e-6


def memory_of(server: ParameterServer, *but: str) -> tuple[Any, list[bytes]]:
    """All that it remembers but for who is connected, which a kill changes, and attributes of these names."""
    snapshot, frames = dump(server, but=(*but, "membership"))
    for name in but:
        snapshot.values["answers"][1].pop(name, None)
    return (snapshot.values, server.membership.latest.copy(), server.rejected.copy()), [bytes(each) for each in frames]


def check_effects(server: ParameterServer, effects: list[Effect]) -> None:
    """Whom it believes, what a round is made of, and that somebody may always go on."""
    for effect in effects:
        entry = effect.entry if isinstance(effect, Append) else None
        if isinstance(entry, Accepted) and isinstance(entry.message, Push):
            push = entry.message
            latest = server.membership.latest.get(push.sender)
            assert latest == JoinId(push.incarnation, push.joins), (
                f"{push.sender}: a push of another join than {latest}"
            )
        if isinstance(effect, Journal) and isinstance(effect.record, Update) and server.aggregation.in_rounds:
            assert effect.record.staleness == 0, f"{effect.record}: of another round"
    peers = server.membership.peers.keys()
    if peers and not server.finished and not server.membership.expected:
        assert not peers <= server.unanswered, f"{sorted(peers)} all wait, and for nobody"


def check_deadline(server: ParameterServer, now: float) -> None:
    """No push is held for longer than the method says."""
    deadline_s = server.aggregation.deadline_s
    if server.pending and deadline_s is not None and not server.finished:
        assert now <= server.pending_s + deadline_s + SLACK_S, f"held since {server.pending_s:g} s, at {now:g} s"
