"""Admission of nodes: who says hello is refused, or is sent its plan and all that it needs to build itself.

A node comes as it is launched. One that comes by itself, as where an engine has started it again, is let in as well,
but not for ever: whoever is let in is sent a model or data, and has lines in the journal.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from edgebed.core.plan import TrainingNode, TrainingPlan
from edgebed.core.records import Clock, Note, Restored
from edgebed.roles.control.members import ENDS, PRESENT, Members, State
from edgebed.roles.control.name import NAME
from edgebed.roles.events import Effect, Journal, MessageReceived, Send
from edgebed.wire import messages
from edgebed.wire.messages import Tensor
from edgebed.wire.shared_links import share
from edgebed.wire.tensors import Buffer


class NodeInputs(NamedTuple):
    """What a node is given besides its plan."""

    tensors: tuple[Tensor, ...] = ()
    """Model; or the node's part of the data, and the model's constants, which training does not change."""
    frames: Sequence[Buffer] = ()
    version: int = 0
    """Version of the model: above 0 the model is that of a checkpoint."""
    backup_step: int = 0
    """Server of shards: step of the backup that it resumes from."""
    backup_parts: tuple[tuple[str, int], ...] = ()
    """Parts of that backup; empty: there is none."""


Payload = Callable[[TrainingNode], NodeInputs]
"""Function that says what a node is given at that moment."""

UNASKED_MAX = 8
"""Incarnations of a node that nobody has launched."""


class Admission:
    """Decides who takes part in a trial, and what it is given."""

    def __init__(
        self,
        plan: TrainingPlan,
        payload: Payload,
        epoch_ns: int = 0,
        *,
        clock: str = "",
        code: str = "",
        other_code_remedy: str = "",
        sources: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """`epoch_ns`: the controller's monotonic clock at time 0, `clock` its name; nothing in virtual time.

        `code` is the fingerprint that a node's own must equal, `other_code_remedy` says what to do where it does not;
        `sources` are the user's modules that nodes are to be given: (path, text).
        """
        self.plan = plan
        self.payload = payload
        self.epoch_ns = epoch_ns
        self.clock = clock
        self.code = code
        self.other_code_remedy = other_code_remedy
        self.sources = sources
        self.neighbours = plan.neighbours()
        self.refused: set[tuple[str, str]] = set()
        """Refusals that were noted, by node and code; strangers are one."""
        self.unasked: Counter[str] = Counter()
        """Incarnations of each node that came by themselves."""
        self.errors: dict[str, float] = {}
        """How far the times of nodes may be wrong, in seconds, where their clock is not the controller's."""

    def refusal(self, hello: messages.Hello, members: Members, *, is_over: bool) -> tuple[str, str] | None:
        """Return (code, reason) of the refusal of a node; None where it may join."""
        if hello.sender not in members:
            return "unknown-node", f"{hello.sender!r} is not in the plan"
        if members[hello.sender].state in PRESENT:
            return "duplicate", f"{hello.sender} is here already"
        if is_over:
            return "finished", "the trial is over"
        if hello.code != self.code:
            return "other-code", f"its code is not the controller's; {self.other_code_remedy}"
        if members[hello.sender].state in ENDS and self.unasked[hello.sender] >= UNASKED_MAX:
            return "unasked", f"{hello.sender} has come {UNASKED_MAX} times without being launched"
        return None

    def refuse(self, peer: str, node: str, code: str, reason: str) -> list[Effect]:
        """Tell a node that it does not take part; of each node one refusal of a kind is noted, of strangers one."""
        refusal = messages.Refuse(sender=NAME, code=code, reason=reason)  # type: ignore[arg-type]
        kind = ("" if code == "unknown-node" else node), code
        noted = [] if kind in self.refused else [Journal(Note(text=f"refused {peer!r}: {reason}"))]
        self.refused.add(kind)
        return [*noted, Send(peer, refusal)]

    def admit(self, event: MessageReceived, pid: int, members: Members) -> list[Effect]:
        """Let a node join in a new incarnation, and send it what it needs."""
        member = members[event.message.sender]
        plan, is_server = member.plan, member.plan.role == "server"
        self.unasked[plan.node] += member.state in ENDS
        member.peer = event.peer
        member.incarnation += 1
        member.ready = None
        member.missed = 0
        given, neighbours = self.payload(plan), self.neighbours[plan.node]
        self.errors.pop(plan.node, None)  # its next life may be on another host
        configure = messages.Configure(
            sender=NAME,
            incarnation=member.incarnation,
            epoch_ns=self.epoch_ns,
            clock=self.clock,
            errors=tuple((name, self.errors[name]) for name in neighbours if name in self.errors),
            plan=plan,
            peers=tuple(worker.node for worker in self.plan.workers()) if is_server else (),
            tensors=given.tensors,
            version=given.version,
            backup_step=given.backup_step,
            backup_parts=given.backup_parts,
            sources=self.sources,
            links=share({name: members[name].plan.link for name in neighbours}),
        )
        member.begins_at = given.backup_step if plan.shard else given.version
        return [*members.become(plan.node, State.JOINED, pid=pid), Send(event.peer, configure, given.frames)]

    def clock_told(self, node: str, record: Clock, members: Members) -> list[Effect]:
        """Tell whoever gets messages of a node how far its times may be wrong."""
        self.errors[node] = record.error_s
        told = messages.Errors(sender=NAME, nodes=((node, record.error_s),))
        others = (name for name in members if name in self.neighbours[node] and members[name].state in PRESENT)
        return [effect for name in others for effect in members.send(name, told)]

    def restored(self, ready: messages.Ready, members: Members) -> list[Effect]:
        """Record from where a server that is not the first resumes."""
        member = members[ready.sender]
        if member.plan.role != "server" or member.incarnation == 1:
            return []
        version = member.begins_at if ready.replayed is None else ready.version
        record = Restored(
            version=version, incarnation=member.incarnation, replayed=ready.replayed, log_bytes=ready.log_bytes
        )
        return [Journal(record)]
