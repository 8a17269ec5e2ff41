"""Shards rolled back by hand: all resume from the newest backup that is not beyond a step."""

from collections.abc import Callable

from edgebed.core.errors import EdgebedError
from edgebed.core.records import Note
from edgebed.roles.control.admission import NodeInputs
from edgebed.roles.control.members import Member, State
from edgebed.roles.control.name import NAME
from edgebed.roles.events import CommandResult, Effect, Journal, Send
from edgebed.wire import messages

BackupAt = Callable[[int], NodeInputs | None]
"""Function that gives the newest backup of all shards that is not beyond a step; EdgebedError where it is of no use."""


def roll_back(server: Member, backup_at: BackupAt, ticket: int, step: int) -> list[Effect]:
    """Send the server the backup that all shards are to resume from, and answer the user."""
    if not server.plan.method.is_layerwise:
        return [CommandResult(ticket, f"the method '{server.plan.method.name}' makes no backups of shards")]
    if server.state not in (State.RUNNING, State.UNRESPONSIVE):
        return [CommandResult(ticket, "the server is not there at present; try again when it is back")]
    try:
        given = backup_at(step)
    except EdgebedError as error:
        return [CommandResult(ticket, str(error))]
    if given is None:
        return [CommandResult(ticket, f"there is no backup of step {step:,} or before")]
    to, parts = given.backup_step, given.backup_parts
    message = messages.RollBack(sender=NAME, step=to, parts=parts, tensors=given.tensors)
    noted = Journal(Note(text=f"rolled back to step {to:,} by hand"))
    return [noted, Send(server.peer, message, given.frames), CommandResult(ticket, told=f"step {to}")]
