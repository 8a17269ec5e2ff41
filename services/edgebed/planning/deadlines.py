"""Deadlines that follow from a plan: how long a worker may be silent, and a trial make no progress; pure.

    model comes ---> computes ---> pauses ---> push goes        what a worker does between two messages
    silence, stall   three times the longest of that in the fleet, a minute at least, where the scenario gives none

A worker that computes or pauses for a third of the shorter of both says so (roles/worker.py), and so however slow it is
it stays.
What the scenario itself gives is refused where no push fits into it, with the class and the seconds.

Computing has the seconds of virtual time. On a real machine those of a device that the scenario names are a least; of
others nothing is known there but their pauses and links. What faults do to a device or a link is left out.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np

from edgebed.algorithms.aggregation import synchronous
from edgebed.algorithms.compressor import StepContext
from edgebed.algorithms.registry import (
    aggregation_of,
    applied_together,
    batches_a_push,
    compression_of,
    cut_of,
    row_size,
)
from edgebed.core.errors import LocatedProblem, Location, ScenarioError
from edgebed.core.framing import wire_bytes
from edgebed.core.plan import ServerPlan, TrainingNode, TrainingPlan, Waiting, WorkerPlan
from edgebed.core.planned.link import LinkPlan
from edgebed.core.runtimes import TRAITS, Runtime
from edgebed.core.units import format_duration
from edgebed.emulation.conditions import LinkSchedule, LinkState
from edgebed.scenario.faults.settings.deadlines import Deadlines
from edgebed.scenario.schema import Scenario
from edgebed.wire.tensors import bits, encode_piece

PUSHES = 3
"""Slowest pushes that a deadline is as long as; a worker that computes is heard three times in that time."""
LEAST_S = 60.0
SHOWN_S = 0.0005  # what is shorter rounds to nothing
RARE = 1000
"""One exponential pause in so many is longer than a long one."""

UNLIMITED_BIT_S = 1e15

Rate = Callable[[LinkState], float]


class PushTime(NamedTuple):
    """Seconds between the server's answer to a worker and the worker's next push."""

    pull_s: float
    """Seconds until all of the model has come."""
    computing_s: float
    pause_s: float
    push_s: float
    """Seconds until all of the push has come."""

    @property
    def total_s(self) -> float:
        """The whole time."""
        return sum(self)

    @property
    def parts(self) -> str:
        """What the time is made of, e.g. `computing 1m5s, push 1.6s`."""
        named = zip(("pull", "computing", "pause", "push"), self, strict=True)
        return ", ".join(f"{name} {_text(each_s)}" for name, each_s in named if each_s >= SHOWN_S)


class MessageSizes(NamedTuple):
    """Bytes of what server and workers send each other."""

    model: int
    push: int


def with_deadlines(plan: TrainingPlan, given: Deadlines, step_s: float = 0.0) -> TrainingPlan:
    """`plan` with its deadlines: those given, else what follows from the slowest push, or a step of all shards."""
    slowest_s, times = step_s, 1
    if plan.pushes:
        sizes, workers = sizes_of(plan), len(plan.workers())
        slowest_s = max(push_time(each, plan.server, sizes, workers, rare=True).total_s for each in _classes(plan))
        times = math.ceil(applied_together(plan.server.method, workers) / workers)
    silence_s, stall_s = given.silence or _fitting_s(slowest_s), given.stall or _fitting_s(times * slowest_s)
    nodes = tuple(_with_silence(node, silence_s, stall_s) for node in plan.nodes)
    return msgspec.structs.replace(plan, nodes=nodes, stall_deadline_s=stall_s)


def check_deadlines(scenario: Scenario, plans: Sequence[TrainingPlan], runtime: Runtime) -> None:
    """Refuse deadlines that the scenario gives, and into which no push fits; ScenarioError with each where it is."""
    problems = dict.fromkeys(problem for plan in plans for problem in _too_short(scenario, plan, runtime))
    if problems:
        raise ScenarioError(*problems)


def sizes_of(plan: TrainingPlan) -> MessageSizes:
    """Bytes of a model, and of the push of a random gradient; nothing where no link makes them take time."""
    task = plan.nodes[0].task
    if not any(node.link.limited for node in plan.nodes):
        return MessageSizes(0, 0)
    size = row_size(plan.nodes[0].method, task)
    return MessageSizes(4 * size, random_push(plan, size)[1])


def random_push(plan: TrainingPlan, size: int) -> tuple[int, int]:
    """Entries and bytes of the push of a random gradient of `size` entries."""
    compression = compression_of(plan.nodes[0].method, plan.nodes[0].task)
    gradient = np.random.default_rng(0).standard_normal(size, np.float32)
    pieces, _ = compression.compress(gradient, None, StepContext(0))
    return compression.restore(pieces).entries, sum(bits(encode_piece(piece)[0], piece) for piece in pieces) // 8


def push_time(
    node: WorkerPlan,
    server: ServerPlan,
    sizes: MessageSizes,
    senders: int = 1,
    *,
    is_virtual: bool = True,
    rare: bool = False,
) -> PushTime:
    """What a worker needs between two messages, as far as that is known in virtual time, or else on a machine.

    `senders` workers share the server's link. `rare`: a pause drawn from a distribution without an end is a long one,
    and a recorded link is in its slowest stretch; else both are as on the mean.
    """
    latency_s = _latency_s(node.link) + _latency_s(server.link)
    model, push = wire_bytes(sizes.model), wire_bytes(sizes.push)
    passing_s = partial(_passing_s, slowest=rare)
    return PushTime(
        pull_s=latency_s + max(passing_s(model, node.link, _down), passing_s(senders * model, server.link, _up)),
        computing_s=_computing_s(node) if is_virtual or node.core else 0.0,
        pause_s=long_pause_s(node.waiting) * (math.log(RARE) if rare and node.waiting.mean_s else 1.0),
        push_s=latency_s + max(passing_s(push, node.link, _up), passing_s(senders * push, server.link, _down)),
    )


def long_pause_s(waiting: Waiting) -> float:
    """Seconds of a long pause: the longest one, or where there is none the mean."""
    return waiting.mean_s if waiting.distribution == "exponential" else max(waiting.low_s, waiting.high_s)


def _computing_s(node: WorkerPlan) -> float:
    """Virtual seconds of a push's gradients and of what is beside them."""
    batch_s = node.batch_s(cut_of(node).mean_size / node.task.batch_size)
    work_s = (batches_a_push(node) * batch_s + node.compression_s) / node.compute_speed
    cap = min(1.0, node.cpus or 1.0)
    stretched_s = work_s / cap if node.core else max(work_s, work_s * min(1.0, node.compute_speed) / cap)
    return stretched_s + node.task.exchange_time_s


def _up(state: LinkState) -> float:
    return math.inf if state.uplink_bit_s is None else state.uplink_bit_s


def _down(state: LinkState) -> float:
    return math.inf if state.downlink_bit_s is None else state.downlink_bit_s


def _passing_s(size: int, link: LinkPlan, rate: Rate, *, slowest: bool) -> float:
    """Seconds that bytes take in one direction of a link: at its lowest rate; of a trace at its mean, or at most."""
    schedule = LinkSchedule(link)
    if link.period_s is None or not schedule.conditions:
        return 8 * size / min(map(rate, schedule.possible()))
    times_s = np.array([*schedule.times_s, link.period_s + schedule.times_s[0]])
    rates = np.minimum([rate(state) for state in schedule.conditions], UNLIMITED_BIT_S)
    passed = np.cumsum([0.0, *np.diff(times_s) * rates])
    if not slowest:
        return float(8 * size * link.period_s / passed[-1])
    periods, left = divmod(8.0 * size, passed[-1])
    ends_s = np.interp(
        passed[:-1] + left, [*passed, *passed[1:] + passed[-1]], [*times_s, *times_s[1:] + link.period_s]
    )
    return float(periods * link.period_s + max(ends_s - times_s[:-1]))


def _latency_s(link: LinkPlan) -> float:
    return max(state.latency_s for state in LinkSchedule(link).possible())


def _with_silence(node: TrainingNode, silence_s: float, stall_s: float) -> TrainingNode:
    if isinstance(node, ServerPlan):
        return msgspec.structs.replace(node, silence_s=silence_s)
    if isinstance(node, WorkerPlan) and node.pushes:
        return msgspec.structs.replace(node, working_s=min(silence_s, stall_s) / PUSHES)
    return node


def _too_short(scenario: Scenario, plan: TrainingPlan, runtime: Runtime) -> Iterator[LocatedProblem]:
    """The deadlines of a trial that are shorter than what they are about, each with the class that shows it."""
    given = scenario.training[plan.trial].deadlines
    if not plan.pushes or not (given.silence or given.stall):
        return
    sizes, is_virtual = sizes_of(plan), TRAITS[runtime].is_virtual
    times = [(push_time(each, plan.server, sizes, is_virtual=is_virtual), each) for each in _classes(plan)]
    times.sort(key=lambda time: time[0].total_s)
    fitting = _text(_fitting_s(times[-1][0].total_s))
    for key, given_s, (time, node), consequence in (
        ("silence", given.silence, times[-1], "a worker that says nothing for {} is taken to have left"),
        ("stall", given.stall, times[-1 if _waits_for_all(plan) else 0], "a trial without an update for {} fails"),
    ):
        if given_s and time.total_s > given_s:
            takes_s = _text(time.total_s)
            takes = f"{takes_s} in virtual time" if is_virtual else f"at least {takes_s}"
            yield _place(scenario, plan, key, node).problem(
                f"a push of class {node.device_class} takes {takes} ({time.parts}), but "
                f"{consequence.format(_text(given_s))}. Give {fitting}, or leave deadlines.{key} out, and it is three "
                "times the slowest push"
            )


def _classes(plan: TrainingPlan) -> list[WorkerPlan]:
    """A worker of each class: the one with most examples, which pushes last where it goes through all of them."""
    found: dict[str, WorkerPlan] = {}
    for node in sorted(plan.workers(), key=lambda node: node.num_examples):
        found[node.device_class] = node
    return list(found.values())


def _waits_for_all(plan: TrainingPlan) -> bool:
    """Whether no update is applied before everybody has pushed."""
    _, config = aggregation_of(plan.server.method)
    return isinstance(config, synchronous.Config) and config.quorum == 1.0 and config.deadline_s is None


def _place(scenario: Scenario, plan: TrainingPlan, key: str, node: WorkerPlan) -> Location:
    fleet = (f"fleet.{node.device_class}.{name}" for name in ("waiting", "compute_speed", "uplink", "downlink"))
    return scenario.cause(plan.trial, f"deadlines.{key}", *fleet)


def _fitting_s(push_s: float) -> float:
    """The deadline that fits a push, in whole seconds."""
    return max(LEAST_S, float(math.ceil(PUSHES * push_s)))


def _text(duration_s: float) -> str:
    return format_duration(round(duration_s, 3))
