"""What cannot be had of a plan's links here, and what may surprise: before anything starts."""

from collections.abc import Iterator, Sequence
from typing import Literal

from edgebed.emulation.conditions import Conditions, Timeline
from edgebed.emulation.framing import ACK_SHARE
from edgebed.emulation.means import Means, means_of, place_of
from edgebed.errors import ScenarioError
from edgebed.faults.link import Link as LinkFault
from edgebed.observe import quantities
from edgebed.observe.quantities import number_text
from edgebed.runtimes import Emulation, Runtime
from edgebed.scenario.plan import Link, NodePlan, Plan
from edgebed.scenario.planning import PlannedTrial
from edgebed.scenario.schema import Scenario

CHANGE_S = 0.00085
"""Time of a core to change both directions of a link that the kernel holds."""
CORES_MAX = 0.5
"""Changing links may take so much before it is warned of."""

Direction = Literal["uplink", "downlink"]


def check_links(
    scenario: Scenario, trials: Sequence[PlannedTrial], runtime: Runtime, emulation: Emulation = "auto"
) -> None:
    """ScenarioError with every loss that nothing here can make, each where it was written."""
    lossy = [(planned.plan.trial, path) for planned in trials for path in _loss_paths(scenario, planned.plan)]
    if not lossy or (reason := loss_refusal(means_of(runtime, emulation))) is None:
        return
    places = dict.fromkeys(scenario.place(trial, path) for trial, path in lossy)
    raise ScenarioError(*(f"{place}: {reason}" for place in places))


def loss_refusal(means: Means) -> str | None:
    """Why packets cannot be lost, and what to do; None if they can, or if that is not known yet."""
    if means.by_kernel:
        lacking = "packets cannot be lost here: this kernel has no netem. Take the loss away, or load it: "
        return f"{lacking}modprobe sch_netem" if means.netem is False else None
    return (
        f"packets cannot be lost here: the link is held by {means}, which delays but loses nothing. Take the loss "
        "away, or let the kernel hold the link: --runtime docker, or --runtime process as root"
    )


def _loss_paths(scenario: Scenario, plan: Plan) -> Iterator[str]:
    """The keys that make a link lossy."""
    for node in plan.nodes:
        if node.link.lossy:
            section = node.role if node.role != "worker" else f"fleet.{node.device_class}"
            yield f"{section}.{'loss' if node.link.loss else 'link_steps'}"
    for k, entry in enumerate(scenario.trials[plan.trial].faults):
        if isinstance(entry, LinkFault) and entry.loss:
            yield f"faults.{k}.loss"


def link_doubts(plan: Plan) -> Iterator[str]:
    """A sentence for each thing about links that may surprise."""
    for node in {node.device_class: node for node in plan.nodes}.values():
        yield from _acknowledgement_doubts(node)
        yield from _loss_doubts(node)
    yield from _bottleneck(plan, "uplink", "downlink", "push")
    yield from _bottleneck(plan, "downlink", "uplink", "pull")


def pace_doubts(plan: Plan, runtime: Runtime, emulation: Emulation) -> Iterator[str]:
    """Links that change so often that this itself takes the machine's time."""
    changes_a_second = sum(len(node.link.changes) / node.link.period_s for node in plan.nodes if node.link.period_s)
    cores = changes_a_second * CHANGE_S
    if cores > CORES_MAX and Means(place_of(runtime, emulation)).by_kernel:
        yield (
            f"the links change {changes_a_second:,.0f} times a second in all, which takes {number_text(cores)} cores "
            f"({1000 * CHANGE_S:g} ms each): changes come late, and nodes have less. Take a trace with rows further "
            "apart, or fewer workers."
        )


def moments(link: Link) -> list[Conditions]:
    """All that a link ever is."""
    timeline = Timeline(link)
    return list(timeline.conditions) if link.period_s is not None else [timeline.initial, *timeline.conditions]


def rate_text(rate_bit_s: float) -> str:
    """A rate to three digits as a scenario writes it, e.g. 45.9mbit."""
    return quantities.rate_text(rate_bit_s).replace(" ", "")


def rate_of(now: Conditions, direction: Direction) -> int | None:
    """One of the two rates."""
    return now.uplink_bit_s if direction == "uplink" else now.downlink_bit_s


def _acknowledgement_doubts(node: NodePlan) -> Iterator[str]:
    """An uplink too slow to acknowledge what the downlink could bring; at the worst moment."""
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


def _loss_doubts(node: NodePlan) -> Iterator[str]:
    """Without a rate, what TCP hands over at once is lost at once."""
    directions: tuple[Direction, ...] = ("uplink", "downlink")
    for direction in directions:
        if any(now.loss and rate_of(now, direction) is None for now in moments(node.link)):
            yield (
                f"{node.device_class}: its {direction} loses packets and has no rate: as many as TCP sends at once, "
                f"up to 64 kB, are lost together. Give it a rate, also a high one."
            )


def _bottleneck(plan: Plan, theirs: Direction, servers: Direction, what: str) -> Iterator[str]:
    """More than the server's link takes when all workers are busy."""
    server = next(node for node in plan.nodes if node.role == "server")
    total_bit_s, limit_bit_s = sum(_highest(node, theirs) for node in plan.workers()), _highest(server, servers)
    if limit_bit_s and total_bit_s > limit_bit_s:
        yield (
            f"the workers' {theirs}s add up to {rate_text(total_bit_s)}, the server's {servers} is "
            f"{rate_text(limit_bit_s)}: when many {what} at once, the server's link is what limits them."
        )


def _highest(node: NodePlan, direction: Direction) -> int:
    """The highest rate that a link ever has; 0 where it is not limited."""
    return max(rate_of(now, direction) or 0 for now in moments(node.link))
