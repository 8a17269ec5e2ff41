"""How long a gradient, compressing a push, and a restart take in virtual time, and where these numbers come from."""

from collections.abc import Callable, Hashable, Iterator
from typing import TypeVar

from edgebed.core.plan import NodePlan, TrainingPlan, WorkerPlan
from edgebed.core.planned.device_core import REFERENCE
from edgebed.core.quantities import ms_text, operations_text
from edgebed.core.units import format_duration

Key = TypeVar("Key", bound=Hashable)


def virtual_time_text(plan: TrainingPlan) -> str:
    """A sentence, e.g. `a gradient takes 14 ms (130 MFLOP, as counted, on the reference core of 10 GFLOP/s), ...`."""
    server_s, others_s = plan.server.restart_s, max(node.restart_s for node in plan.nodes if node is not plan.server)
    if server_s or others_s:
        restarts = f"{format_duration(server_s)} (server), {format_duration(others_s)} (others)"
        return f"{_work_text(plan)}; a restart {restarts}"
    return _work_text(plan)


def _work_text(plan: TrainingPlan) -> str:
    task, method = plan.nodes[0].task, plan.nodes[0].method
    if plan.is_profiled:
        return "layers take what they took where shards.profile was measured"
    gradient = f"a gradient takes {gradient_text(plan)}"
    if not plan.pushes:
        from edgebed.algorithms.registry import rule_of  # loads every part of a method

        beside = "" if rule_of(method).is_alone else "; what lies beside them takes time of its own at the same rate"
        return f"{gradient}, divided among the layers by counted operations{beside}"
    taken, why = "no time", "task.compression_time's default"
    if task.compression_time_s:
        taken, why = ", ".join(_compressions(plan)), "the scenario's compression_time"
        if any(node.compression_s != task.compression_time_s for node in plan.workers()):
            why += f", {ms_text(task.compression_time_s)} on the reference core"
    exchange = f", its exchange {ms_text(task.exchange_time_s)}" if task.exchange_time_s else ""
    return f"{gradient}, compressing a push {taken} ({why}){exchange}"


def gradient_text(plan: TrainingPlan) -> str:
    """What a gradient takes on each class of workers, and which of the three says so."""
    task = plan.nodes[0].task
    if task.uncounted:
        return (
            f"{ms_text(task.gradient_time_s)} (nobody's figure: the operations of {task.model} cannot be counted, "
            f"{task.uncounted}; give task.gradient_time)"
        )
    if not task.gradient_flop:
        return f"{ms_text(task.gradient_time_s)} (the scenario's gradient_time)"
    return f"{', '.join(_by_core(plan))} ({operations_text(task.gradient_flop)}, as counted)"


def speed_text(node: NodePlan) -> str:
    """How fast a node's device is: its name, its speed, or its speed relative to another's."""
    if node.core is None:
        return f"{node.compute_speed:g}"
    return node.core.device or f"{operations_text(node.core.flop_s)}/s"


def _by_core(plan: TrainingPlan) -> Iterator[str]:
    for (core, gradient_s), where in _classes(plan, lambda node: (_core_text(node), node.gradient_s)):
        yield f"{ms_text(gradient_s)}{where} by {core}"


def _compressions(plan: TrainingPlan) -> Iterator[str]:
    for compression_s, where in _classes(plan, lambda node: node.compression_s):
        yield f"{ms_text(compression_s)}{where}"


def _classes(plan: TrainingPlan, key: Callable[[WorkerPlan], Key]) -> Iterator[tuple[Key, str]]:
    """What classes of workers have, each value once, with the classes that have it; none are named if all do."""
    classes: dict[Key, dict[str, None]] = {}
    for node in plan.workers():
        classes.setdefault(key(node), {})[node.device_class] = None
    for value, names in classes.items():
        yield value, f" on {' and '.join(names)}" if len(classes) > 1 else ""


def _core_text(node: WorkerPlan) -> str:
    core = node.core
    if core is None:
        return f"the reference core, {operations_text(REFERENCE.flop_s)}/s"
    return f"device {core.device}" if core.device else f"its speed, {operations_text(core.flop_s)}/s"
