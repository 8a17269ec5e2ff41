"""Warnings about a plan's links, and refusals of what cannot be made here, before anything starts."""

from collections.abc import Iterator, Sequence
from typing import Literal

from edgebed.core import quantities
from edgebed.core.errors import InfrastructureError, ScenarioError
from edgebed.core.framing import ACK_SHARE
from edgebed.core.plan import NodePlan, Plan, ProgramsPlan, TrainingPlan
from edgebed.core.planned.link import Kind, LinkPlan, asked
from edgebed.core.quantities import number_text
from edgebed.core.runtimes import TRAITS, Emulation, Runtime
from edgebed.emulation.conditions import LinkSchedule, LinkState
from edgebed.emulation.means import (
    NO_NETEM,
    Mechanisms,
    kernel_lacks_links,
    mechanisms_of,
    place_of,
    why_no_namespaces,
)
from edgebed.planning.planned import PlannedTrial
from edgebed.scenario.faults.link import LinkFault
from edgebed.scenario.faults.settings.targets import OF_CLASSES
from edgebed.scenario.schema import Scenario

CHANGE_S = 0.00085
"""Seconds of a core to change both directions of a link that the kernel holds."""
CORES_MAX = 0.5
"""Cores that changing links may take before there is a warning."""

Direction = Literal["uplink", "downlink"]


def check_links(
    scenario: Scenario, trials: Sequence[PlannedTrial], runtime: Runtime, emulation: Emulation = "auto"
) -> None:
    """Refuse every loss that nothing here can make, and latency of programs, each where it was written.

    InfrastructureError where the kernel lacks what that takes, else ScenarioError.
    """
    lossy = [(planned.plan.trial, path) for planned in trials for path in _paths(scenario, planned.plan, "packets")]
    late = [
        (planned.plan.trial, path)
        for planned in trials
        if isinstance(planned.plan, ProgramsPlan)
        for path in _paths(scenario, planned.plan, "delay")
    ]
    if not (lossy or late):
        return
    mechanisms = mechanisms_of(runtime, emulation)
    if late and mechanisms.netem is False:
        lack = f"latency cannot be made here: {NO_NETEM}, and nothing else delays what programs send. Or leave it out"
        places = dict.fromkeys(scenario.place(*each) for each in late)
        raise InfrastructureError("\n".join(str(place.problem(lack)) for place in places))
    if not lossy:
        return
    lack = why_no_namespaces() if TRAITS[runtime].has_local_processes and _is_lacking(emulation) else ""
    if (reason := loss_refusal(mechanisms, lack)) is None:
        return
    places = dict.fromkeys(scenario.place(trial, path) for trial, path in lossy)
    refusals = [place.problem(reason) for place in places]
    if lack or mechanisms.by_kernel:
        raise InfrastructureError("\n".join(map(str, refusals)))
    raise ScenarioError(*refusals)


def _is_lacking(emulation: Emulation) -> bool:
    """Whether the kernel would hold the links of processes if it lacked nothing."""
    return emulation == "auto" and kernel_lacks_links()


def loss_refusal(mechanisms: Mechanisms, lack: str = "") -> str | None:
    """Why packets cannot be lost here, and what to do; None if they can, or if that is not known yet.

    `lack` is what the kernel lacks, where it does not hold the link for that.
    """
    if mechanisms.by_kernel:
        lack = NO_NETEM if mechanisms.netem is False else ""
        return f"packets cannot be lost here: {lack}. Or remove the loss" if lack else None
    if lack:
        return f"packets cannot be lost here: {lack}. Or remove the loss"
    return (
        f"packets cannot be lost here: the link is held by {mechanisms}, which delays but loses nothing. Remove the "
        "loss, or let the kernel hold the link: --runtime docker, or --runtime process as root"
    )


def _paths(scenario: Scenario, plan: Plan, kind: Kind) -> Iterator[str]:
    """The keys by which a link loses packets, or delays them."""
    for node in plan.nodes:
        if node.link.asks(kind):
            section = f"fleet.{node.device_class}" if node.role in OF_CLASSES else node.role
            yield f"{section}.{next(iter(asked(kind, node.link)), 'link_steps')}"
    for k, entry in enumerate(scenario.trials[plan.trial].faults):
        if isinstance(entry, LinkFault):
            yield from (f"faults.{k}.{key}" for key in asked(kind, entry.change()))


def link_warnings(plan: TrainingPlan) -> Iterator[str]:
    """A sentence for each thing about links that may surprise."""
    for node in {node.device_class: node for node in plan.nodes}.values():
        yield from node_warnings(node)
    yield from _bottleneck(plan, "uplink", "downlink", "push")
    yield from _bottleneck(plan, "downlink", "uplink", "pull")


def node_warnings(node: NodePlan) -> Iterator[str]:
    """A sentence for each thing about the link of a node, and of all of its class, that may surprise."""
    yield from _acknowledgement_warnings(node)
    yield from _loss_warnings(node)


def pace_warnings(plan: Plan, runtime: Runtime, emulation: Emulation) -> Iterator[str]:
    """Warnings about links that change so often that changing them takes much of the machine's time."""
    changes_a_second = sum(len(node.link.changes) / node.link.period_s for node in plan.nodes if node.link.period_s)
    cores = changes_a_second * CHANGE_S
    if cores > CORES_MAX and Mechanisms(place_of(runtime, emulation)).by_kernel:
        yield (
            f"the links change {changes_a_second:,.0f} times a second in all, which takes {number_text(cores)} cores "
            f"({1000 * CHANGE_S:g} ms each): changes come late, and nodes have less. Take a trace with rows further "
            "apart, or fewer workers."
        )


def moments(link: LinkPlan) -> list[LinkState]:
    """All conditions that a link ever has."""
    schedule = LinkSchedule(link)
    return list(schedule.conditions) if link.period_s is not None else [schedule.initial, *schedule.conditions]


def rate_text(rate_bit_s: float) -> str:
    """A rate to three digits as a scenario writes it, e.g. 45.9mbit."""
    return quantities.rate_text(rate_bit_s).replace(" ", "")


def rate_of(now: LinkState, direction: Direction) -> int | None:
    """The rate of one direction, in bit/s; None: no limit."""
    return now.uplink_bit_s if direction == "uplink" else now.downlink_bit_s


def _acknowledgement_warnings(node: NodePlan) -> Iterator[str]:
    """A warning where an uplink is too slow to acknowledge what the downlink could bring at its worst moment."""
    too_slow = [
        (now.uplink_bit_s / now.downlink_bit_s, now.uplink_bit_s, now.downlink_bit_s)
        for now in moments(node.link)
        if now.uplink_bit_s and now.downlink_bit_s and now.uplink_bit_s < ACK_SHARE * now.downlink_bit_s
    ]
    if too_slow:
        _, up, down = min(too_slow)
        yield (
            f"{node.device_class}: to acknowledge {rate_text(down)} takes {rate_text(ACK_SHARE * down)} upwards, more "
            f"than the uplink of {rate_text(up)}: it will receive no more than {rate_text(up / ACK_SHARE)}."
        )


def _loss_warnings(node: NodePlan) -> Iterator[str]:
    """A warning where a link loses packets and has no rate: what TCP hands over at once is lost at once."""
    directions: tuple[Direction, ...] = ("uplink", "downlink")
    for direction in directions:
        if any(now.loss and rate_of(now, direction) is None for now in moments(node.link)):
            yield (
                f"{node.device_class}: its {direction} loses packets and has no rate: as many as TCP sends at once, "
                f"up to 64 kB, are lost together. Give it a rate, also a high one."
            )


def _bottleneck(plan: TrainingPlan, theirs: Direction, servers: Direction, what: str) -> Iterator[str]:
    """A warning where busy workers together ask more than the server's link takes."""
    server = next(node for node in plan.nodes if node.role == "server")
    total_bit_s, limit_bit_s = sum(_highest(node, theirs) for node in plan.workers()), _highest(server, servers)
    if limit_bit_s and total_bit_s > limit_bit_s:
        yield (
            f"the workers' {theirs}s add up to {rate_text(total_bit_s)}, the server's {servers} is "
            f"{rate_text(limit_bit_s)}: when many {what} at once, the server's link is what limits them."
        )


def _highest(node: NodePlan, direction: Direction) -> int:
    """The highest rate that a link ever has, in bit/s; 0 where it is not limited."""
    return max(rate_of(now, direction) or 0 for now in moments(node.link))
