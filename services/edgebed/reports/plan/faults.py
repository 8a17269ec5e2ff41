"""The faults of a plan in words: when, what, and to which nodes; random ones with the expected number."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from edgebed.core.actions import TAKES_AWAY
from edgebed.core.plan import Plan, TrainingPlan
from edgebed.core.planned.fault import FaultPlan, FaultStep, Trigger
from edgebed.core.quantities import count_text, number_text
from edgebed.core.units import format_duration
from edgebed.reports.writing.page import Grid
from edgebed.roles.control.fault_text import setting_text, trigger_text

TIMES_MAX = 4
"""Moments, or steps, of a fault that are listed one by one; more are summed up."""
RUNS_MAX = 6
"""Runs of neighbouring nodes that are listed one by one; more are summed up."""


@dataclass(frozen=True, kw_only=True)
class FaultRow:
    """What happens to some nodes at a time, by one entry of the scenario."""

    name: str
    when: str
    """When the fault happens, e.g. `at 30s`, `after-push 12`, `after-push, 0.04 % of them`."""
    what: str
    """What is done, with seconds since the trigger, e.g. `cut, heal after 5s`."""
    nodes: tuple[str, ...]
    peers: tuple[str, ...] = ()
    """The nodes between which and `nodes` it happens; none: it happens to the nodes themselves."""
    expected: float | None = None
    """Expected number of times for a random fault; None where it cannot be predicted, or where it is certain."""
    every_s: float | None = None
    """Time from one to the next where the entry is repeated."""


def fault_rows(plan: Plan) -> Iterator[FaultRow]:
    """The plan's faults; nodes to which the same happens at the same time are in one row."""
    groups: dict[tuple[str, Trigger, str], list[FaultPlan]] = {}
    for fault in plan.faults:
        groups.setdefault((fault.name, fault.trigger, steps_text(fault.steps)), []).append(fault)
    for (name, trigger, what), faults in groups.items():
        yield FaultRow(
            name=name,
            when=when_text(trigger),
            what=what,
            nodes=tuple(dict.fromkeys(fault.node for fault in faults)),
            peers=tuple(dict.fromkeys(peer for fault in faults if (peer := fault.steps[0].injection.peer))),
            expected=_expected(plan, trigger, faults),
            every_s=faults[0].every_s,
        )


def fault_grid(rows: Sequence[FaultRow]) -> Grid:
    """A line for each entry of the scenario, however many moments it has."""
    entries: dict[tuple[str, str], list[FaultRow]] = {}  # rows of an entry are in the order of their moments
    for row in rows:
        entries.setdefault((row.name, row.what), []).append(row)
    cells = [(name, _times(group), what, _whom(group)) for (name, what), group in entries.items()]
    return Grid(("fault", "when", "what", "nodes"), cells)


def when_text(trigger: Trigger) -> str:
    """A trigger in words, e.g. `at 30s`."""
    if trigger.probability is not None:
        return f"{trigger.point}, {number_text(100 * trigger.probability)} % of them"
    first = "first " if trigger.point and trigger.step is None else ""
    return first + trigger_text(trigger, trigger.step)


def steps_text(steps: Sequence[FaultStep]) -> str:
    """What a fault does to one node, in order."""
    texts = [_step_text(each) for each in steps]
    if len(texts) > TIMES_MAX:
        span = format_duration(steps[-1].after_s)
        return f"{', '.join(texts[:TIMES_MAX])}, ..., {count_text(len(texts), 'step')} in {span}"
    return ", ".join(texts)


def nodes_text(nodes: Sequence[str]) -> str:
    """Nodes in few words: neighbours of a class joined, e.g. `edge-0..3, hub-0`."""
    runs: list[tuple[str, int, int]] = []
    for node in nodes:
        owner, _, index = node.rpartition("-")
        k = int(index) if owner and index.isdecimal() else -1
        if k > 0 and runs and (runs[-1][0], runs[-1][2]) == (owner, k - 1):
            runs[-1] = (owner, runs[-1][1], k)
        else:
            runs.append((owner if k >= 0 else node, k, k))
    texts = [owner if first < 0 else f"{owner}-{first}{f'..{last}' * (last > first)}" for owner, first, last in runs]
    if len(texts) > RUNS_MAX:
        return f"{', '.join(texts[: RUNS_MAX - 1])} and others, {count_text(len(nodes), 'node')}"
    return ", ".join(texts)


def _step_text(each: FaultStep) -> str:
    change = setting_text(each.injection)
    text = f"{each.injection.action} {change}" if change else each.injection.action
    return f"{text} after {format_duration(each.after_s)}" if each.after_s else text


def _expected(plan: Plan, trigger: Trigger, faults: Sequence[FaultPlan]) -> float | None:
    """Expected number of a random fault: its nodes' pushes times its probability, or one a node that it takes away."""
    if trigger.probability is None or not isinstance(plan, TrainingPlan) or plan.stop_updates is None:
        return None
    expected = trigger.probability * plan.stop_updates * len(faults) / len(plan.workers())
    last = faults[0].steps[-1].injection.action
    return min(expected, float(len(faults))) if last in TAKES_AWAY else expected


def _times(rows: Sequence[FaultRow]) -> str:
    texts = list(dict.fromkeys(row.when for row in rows))
    if every_s := rows[0].every_s:
        return (
            f"{texts[0]}, then every {format_duration(every_s)}: {count_text(len(texts), 'time')}, the last {texts[-1]}"
        )
    if len(texts) > TIMES_MAX:
        return f"{texts[0]} ... {texts[-1].removeprefix('at ')}, {count_text(len(texts), 'time')}"
    return ", ".join(texts)


def _whom(rows: Sequence[FaultRow]) -> str:
    nodes = nodes_text(list(dict.fromkeys(node for row in rows for node in row.nodes)))
    if rows[0].peers:
        nodes = f"between {nodes} and {nodes_text(rows[0].peers)}"
    if rows[0].every_s and any(row.nodes != rows[0].nodes for row in rows):
        moments = [f"{nodes_text(row.nodes)} {row.when}" for row in rows[:TIMES_MAX]]
        return "; ".join(moments) + (f"; ..., in all {nodes}" if len(rows) > TIMES_MAX else "")
    expected = sum(row.expected or 0.0 for row in rows)
    return f"{nodes}; about {number_text(expected)} in all" if expected else nodes
