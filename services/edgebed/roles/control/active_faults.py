"""What has been done to a node on purpose and not been undone; by whom, since several faults may do the same."""

import math
from typing import NamedTuple

import msgspec

from edgebed.core.actions import ACTIONS, KILLS, Action
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkChange, LinkPlan
from edgebed.core.units import format_duration
from edgebed.roles.control.members import Member, State
from edgebed.roles.control.pending_actions import FaultCause

BY_HAND = "by hand"
INSTANT_S = 1e-3  # no real node is launched twice in a millisecond
LAUNCHES_MAX = 100
"""Launches of a node within an instant; with more of them, virtual time does not go on."""


class Deviation(NamedTuple):
    """Settings of a node that are not as planned."""

    changes: dict[str, LinkChange | None]
    cpus: float | None


class ActiveFaults(msgspec.Struct):
    """Active faults of a node, and what caused them."""

    frozen_by: set[str] = msgspec.field(default_factory=set)
    cut_by: dict[str, set[str]] = msgspec.field(default_factory=dict)
    """By whom the node is cut off from each other one; from all of them with an empty name."""
    changes: dict[str, LinkChange | None] = msgspec.field(default_factory=dict)
    """Changes of what is between the node and each other one, and with an empty name of its link; None: as planned
    again."""
    cpus: float | None = None
    """CPU cap of the node, if not as planned."""
    ending: bool = False
    """Whether the node is being killed."""
    launch: FaultCause | None = None
    """Why the node is to be launched when it has ended."""
    instant_s: float = -math.inf
    """When the instant began in which the node was launched last."""
    launches: int = 0
    """Launches of the node in that instant."""
    missed: set[Action] = msgspec.field(default_factory=set)
    """Actions that the node's next incarnation is to have, and that were asked for while it was not there."""

    @property
    def changed(self) -> Deviation:
        """What of the node is not as planned."""
        return Deviation(dict(self.changes), self.cpus)

    def cuts(self, peer: str = "") -> set[str]:
        """Who cuts the node off from another one; without a name from all."""
        return self.cut_by.get(peer, set())

    def no_op(self, injection: Injection, member: Member, overlap: str = "") -> str:
        """Say why there is nothing to do; empty if there is. `overlap`: why the step takes no doing by itself."""
        if injection.action == "launch":
            return f"it is {member.state}" if member.is_there or member.state is State.EXPECTED else ""
        if injection.action in KILLS and self.ending:
            return "it is being killed"
        if member.is_there:
            return overlap
        later = f"; {overlap or 'its next life will be so'}" if ACTIONS[injection.action].outlasts else ""
        return f"it is not there ({member.state}){later}"

    def unevenness(self, change: LinkChange, planned: LinkPlan) -> str:
        """Say why a link cannot be so: its jitter would be above its latency, whatever is planned; empty if it can."""
        merged, moments = _merged(self.changes.get(""), change), (planned, *planned.changes)
        assert merged is not None
        latencies, jitters = ([getattr(each, field) or 0.0 for each in moments] for field in ("latency_s", "jitter_s"))
        latency_s = max(latencies) if merged.latency_s is None else merged.latency_s
        jitter_s = min(jitters) if merged.jitter_s is None else merged.jitter_s
        if jitter_s <= latency_s or (change.latency_s, change.jitter_s) == (None, None):
            return ""
        return f"a jitter of {format_duration(jitter_s)} is above the latency of {format_duration(latency_s)}"

    def note(self, cause: FaultCause, injection: Injection) -> str:
        """Note that a step is done; say why it takes no doing, empty if it does."""
        match injection.action:
            case "freeze":
                return _hold(self.frozen_by, cause.name, "frozen")
            case "thaw":
                return _let_go(self.frozen_by, cause, "frozen")
            case "cut":
                return _hold(self.cut_by.setdefault(injection.peer, set()), cause.name, "cut")
            case "heal":
                return _let_go(self.cut_by.setdefault(injection.peer, set()), cause, "cut")
            case "link":
                self.changes[injection.peer] = _merged(self.changes.get(injection.peer), injection.change)
            case "cpus":
                self.cpus = injection.cpus
        return ""

    def launched(self, now: float) -> str:
        """Note a launch; say why there is to be none, empty if there may be one."""
        if now - self.instant_s > INSTANT_S:
            self.instant_s, self.launches = now, 0
        self.launches += 1
        if self.launches <= LAUNCHES_MAX:
            return ""
        return (
            f"it has been launched {LAUNCHES_MAX} times at {self.instant_s:g} s, so that time does not go on: let a "
            "restart take time (`delay`, `restart_delay`, `restart_time`), or the fault happen less often"
        )

    def take_back(self, cause: FaultCause, injection: Injection, before: Deviation) -> list[Injection]:
        """Note that a step could not be done; return what holds instead, for nodes that were told of it."""
        node = injection.node
        self.ending &= injection.action not in KILLS
        match injection.action:
            case "freeze":
                self.frozen_by.discard(cause.name)
            case "link":
                peer = injection.peer
                self.changes[peer] = change = before.changes.get(peer)
                again = [Injection(node=node, action="link", peer=peer, change=change)] if change else []
                return [Injection(node=node, action="link", peer=peer), *again]
            case "cpus":
                self.cpus = before.cpus
                return [Injection(node=node, action="cpus", cpus=self.cpus)]
        return []

    def end(self) -> FaultCause | None:
        """Note that the node has ended; return why it is to be launched, None if it is not."""
        self.frozen_by.clear()
        self.ending = False
        cause, self.launch = self.launch, None
        return cause

    def catch_up(self, node: str) -> list[Injection]:
        """Return what undoes at the node's place, which outlives it, all that was undone while it was not there.

        A runtime may have held its link and its cap meanwhile as they were.
        """
        missed, self.missed = self.missed, set()
        undone: list[Injection] = []
        if "link" in missed:
            ended = (peer for peer, change in self.changes.items() if peer and change is None)
            undone += [Injection(node=node, action="link", peer=peer) for peer in ("", *ended)]
        if "heal" in missed:
            healed = (peer for peer, holders in self.cut_by.items() if not holders)
            undone += [Injection(node=node, action="heal", peer=peer) for peer in healed]
        if "cpus" in missed and self.cpus is None:
            undone.append(Injection(node=node, action="cpus"))
        return undone

    def injections(self, node: str) -> list[Injection]:
        """Return what has to be done to the node's next incarnation."""
        changes = ((peer, change) for peer, change in self.changes.items() if change is not None)
        again = [Injection(node=node, action="link", peer=peer, change=change) for peer, change in changes]
        again += [Injection(node=node, action="cut", peer=peer) for peer, holders in self.cut_by.items() if holders]
        if self.cpus is not None:
            again.append(Injection(node=node, action="cpus", cpus=self.cpus))
        return again


def _hold(holders: set[str], name: str, state: str) -> str:
    held = bool(holders)
    holders.add(name)
    return f"it is {state} already" if held else ""


def _let_go(holders: set[str], cause: FaultCause, state: str) -> str:
    if not holders:
        return f"it is not {state}"
    if cause.name == BY_HAND or cause.undoes_all:
        holders.clear()
    holders.discard(cause.name)
    return f"it is {state} by {', '.join(sorted(holders))}, too" if holders else ""


def _merged(before: LinkChange | None, change: LinkChange | None) -> LinkChange | None:
    """Merge both changes; the later one where they differ. None: as planned again."""
    if before is None or change is None:
        return change
    return msgspec.structs.replace(before, at_s=change.at_s, **change.given())
