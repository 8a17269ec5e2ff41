"""What a trial of programs ends with, and how it has ended then: exit codes decide. Pure."""

from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple

from edgebed.core.plan import ProgramsPlan
from edgebed.core.recorded.program import Exited

SHOWN_MAX = 8
"""Programs whose end a reason names."""


class End(NamedTuple):
    """An end of a trial."""

    outcome: Literal["completed", "failed"]
    reason: str


def end_of(plan: ProgramsPlan, over: Collection[str], exits: Mapping[str, Exited], seen_end: str) -> End | None:
    """The end that a trial has come to; None: it goes on.

    `over`: the programs that have ended for good, each with how in `exits`; `seen_end`: the node whose output had the
    line that `ends` waits for, if any.
    """
    ends = plan.program.ends
    is_all = len(over) == len(plan.nodes)
    if ends.kind == "first":
        by_itself = [name for name in over if not (exits[name].asked or exits[name].consequence_of)]
        if by_itself:
            return judged(by_itself, exits, "the first program has ended")
    elif ends.kind == "class":
        awaited = [node.node for node in plan.nodes if ends.of in (node.node, node.device_class)]
        if set(awaited) <= set(over):
            return judged(awaited, exits, f"the program of {ends.of} has ended")
    elif ends.kind == "log":
        if seen_end:
            return End("completed", f"{seen_end} has said what matches {ends.log!r}")
        if is_all:
            text = judged(over, exits, "all programs have ended").reason
            return End("failed", f"no line of output matched {ends.log!r} (ends.log): {text}")
    return judged(over, exits, "all programs have ended") if is_all else None


def judged(deciding: Collection[str], exits: Mapping[str, Exited], what: str) -> End:
    """The end of a trial when `what` has happened: failed if a program that decides failed by itself."""
    failed = [exits[name] for name in deciding if exits[name].is_failure]
    others = [exits[name] for name in deciding if exits[name].code != 0]
    named = ", ".join(f"{each.name}: {each.text}" for each in (failed or others)[:SHOWN_MAX])
    more = f", and {len(failed or others) - SHOWN_MAX} more" if len(failed or others) > SHOWN_MAX else ""
    return End("failed" if failed else "completed", f"{what}; {named}{more}" if named else what)
