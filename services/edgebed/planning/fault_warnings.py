"""Warnings about a plan's faults, before anything starts, and what cannot be: a fault between nodes that never talk."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from edgebed.core.actions import ACTIONS, BRINGS_BACK, ENDS_LIFE, FREEZES, TAKES_AWAY
from edgebed.core.errors import ScenarioError
from edgebed.core.plan import Plan, TrainingPlan
from edgebed.core.planned.fault import FaultPlan, FaultStep
from edgebed.core.quantities import all_text, count_text, first_text
from edgebed.core.runtimes import Emulation, Runtime
from edgebed.core.units import format_duration
from edgebed.emulation.means import lacks_caps


def fault_warnings(plan: TrainingPlan) -> Iterator[str]:
    """A sentence for each thing about faults that may surprise, whatever the runtime."""
    yield from overlapping(plan)
    yield from _server_gone(plan)
    yield from _workers_gone(plan)
    yield from _before_checkpoint(plan)
    yield from _taken_for_dead(plan)


def check_between(plan: TrainingPlan, name: str) -> None:
    """Raise ScenarioError where none of those that an entry called `name` has a fault between ever talk."""
    steps = [step.injection for fault in plan.faults if fault.name == name for step in fault.steps]
    pairs, known = [(step.node, step.peer) for step in steps if step.peer], plan.neighbours()
    if pairs and not any(peer in known[node] for node, peer in pairs):
        node, peer = pairs[0]
        talks = f"{node} talks with {first_text(known[node], 5)} alone, {peer} with {first_text(known[peer], 5)} alone"
        raise ScenarioError(f"{node} and {peer} send each other nothing: {talks}. Name two that talk")


def fault_mechanism_warnings(plan: TrainingPlan, runtime: Runtime, emulation: Emulation) -> Iterator[str]:
    """Warnings about faults that cannot be done where the nodes run."""
    if lacks_caps(runtime, emulation) and _entries(plan, "memory"):
        yield (
            f"{', '.join(_entries(plan, 'memory'))}: without root nothing caps the memory of a process, so that none "
            "can run out of it; the fault is not done."
        )


class _Span(NamedTuple):
    begin_s: float
    end_s: float
    name: str
    node: str


def overlapping(plan: Plan) -> Iterator[str]:
    """Warnings about two entries that set the same thing: the end of the first ends the second as well."""
    for action, what in ((action, traits.sets) for action, traits in ACTIONS.items() if traits.sets):
        spans: dict[str, list[_Span]] = {}
        for fault in plan.faults:
            if fault.trigger.at_s is not None:
                for span in _spans(fault, fault.trigger.at_s, action):
                    spans.setdefault(f"{span.node} {fault.steps[0].injection.peer}", []).append(span)
        pairs: dict[tuple[str, str], list[str]] = {}
        for of_node in spans.values():
            for first, second in pairwise(sorted(of_node)):
                if second.begin_s < first.end_s < float("inf"):
                    pairs.setdefault((first.name, second.name), []).append(first.node)
        for (first_name, second_name), nodes in pairs.items():
            yield (
                f"{first_name} and {second_name} overlap at {count_text(len(nodes), 'node')}, e.g. {nodes[0]}: what "
                f"ends first sets {what} back to what is planned, whatever the other one says."
            )


def _spans(fault: FaultPlan, at_s: float, action: str) -> Iterator[_Span]:
    """The times during which a fault holds a setting."""
    steps = [each for each in fault.steps if each.injection.action == action]
    for k, each in enumerate(steps):
        if _sets(each):
            end_s = at_s + steps[k + 1].after_s if k + 1 < len(steps) else float("inf")
            yield _Span(at_s + each.after_s, end_s, fault.name, fault.node)


def _sets(each: FaultStep) -> bool:
    return each.injection.change is not None or each.injection.cpus is not None


def _server_gone(plan: TrainingPlan) -> Iterator[str]:
    """Warnings about faults that kill the server for good, which ends the trial."""
    for fault in plan.faults:
        actions = [each.injection.action for each in fault.steps]
        if fault.node == "server" and actions[-1] in ENDS_LIFE and plan.on_failure != "restart":
            yield f"{fault.name} kills the server, and nothing starts it anew: the trial ends there. See restart."


def _workers_gone(plan: TrainingPlan) -> Iterator[str]:
    """A warning where faults leave no worker, which ends the trial."""
    lasts = [(fault, fault.steps[-1].injection.action) for fault in plan.faults if fault.trigger.probability is None]
    gone = {fault.node: fault.name for fault, last in lasts if last in TAKES_AWAY}
    back = {fault.node for fault, last in lasts if last in BRINGS_BACK}
    workers = {worker.node for worker in plan.workers()}
    if workers <= gone.keys() and not workers & back and plan.on_failure != "restart":
        names = all_text(dict.fromkeys(name for node, name in gone.items() if node in workers))
        yield f"After {names} no worker is left, and nothing brings one back: the trial ends there."


def _before_checkpoint(plan: TrainingPlan) -> Iterator[str]:
    """Warnings where the server dies before its first checkpoint, and so begins at the beginning."""
    every = plan.server.checkpoint_every_updates
    for fault in plan.faults:
        at_update, ends = fault.trigger.at_update, fault.steps[-1].injection.action
        if fault.node == "server" and ends == "launch" and at_update is not None and every and at_update < every:
            yield (
                f"{fault.name} comes at update {at_update:,}, before the first checkpoint (every {every:,} updates): "
                "all that was learnt is lost. See checkpoints."
            )


def _taken_for_dead(plan: TrainingPlan) -> Iterator[str]:
    """Warnings about freezes that end at an update: until it comes nobody knows that they end, and the policy acts.

    One with an end of its own, or with a thaw at a time, is no death, however long it is.
    """
    policy = {"restart": "starts it anew", "stop": "ends the trial"}.get(plan.on_failure)
    timed = {fault.node for fault in _thaws(plan) if fault.trigger.at_s is not None}
    late = {fault.node: fault.name for fault in _thaws(plan) if fault.node not in timed}
    found: dict[tuple[str, str], str] = {}
    for fault in plan.faults if policy else ():
        if fault.steps[-1].injection.action in FREEZES and fault.node in late:
            found.setdefault((fault.name, late[fault.node]), fault.node)
    for (name, thaw), node in found.items():
        yield (
            f"{name} is ended by {thaw} at an update that may come late: {node} counts as dead when it has been silent "
            f"for two deadlines.check ({format_duration(2 * plan.check_s)}), and on_failure: {plan.on_failure} "
            f"{policy}. Give {name} a for, or {thaw} an at."
        )


def _thaws(plan: TrainingPlan) -> list[FaultPlan]:
    return [fault for fault in plan.faults if fault.steps[0].injection.action == "thaw"]


def _entries(plan: TrainingPlan, action: str) -> list[str]:
    """The names of the scenario's entries that do this action."""
    found = (fault.name for fault in plan.faults if any(each.injection.action == action for each in fault.steps))
    return list(dict.fromkeys(found))
