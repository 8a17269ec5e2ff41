"""What holds links and caps on this machine: decided before anything starts, so that `plan` can say it."""

import functools
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from edgebed.core.errors import InfrastructureError, KernelLackError, ScenarioError, lacking
from edgebed.core.plan import NodePlan, Plan, ProgramsPlan
from edgebed.core.planned.link import LinkChange
from edgebed.core.runtimes import TRAITS, Emulation, Runtime
from edgebed.emulation.calibration import Place
from edgebed.emulation.cgroups import Cgroups
from edgebed.emulation.namespaces import PORTS_MAX
from edgebed.emulation.readback import Delay, Mechanism

INSTEAD = "Run as root of the machine, or leave the option out"
NOT_ROOT = "that takes root"
WITHOUT = "Without it, links are held by --runtime process --emulation model and by --runtime simulation"
NO_NETEM = lacking("netem", "sch_netem")
NETEM_ALONE = "that takes links that the kernel's netem holds"


@dataclass(frozen=True)
class Mechanisms:
    """What holds the links of a run."""

    place: Place | None
    """Place where links are held; None: nothing holds them, the time is virtual."""
    netem: bool | None = False
    """Whether the kernel's netem can delay and lose packets; None: unknown until the nodes' containers are there."""
    hindered: str = ""
    """What keeps the kernel from holding links although this is root; empty: it does, or nobody is."""

    @property
    def by_kernel(self) -> bool:
        """Whether the kernel limits rates."""
        return self.place in ("docker", "namespaces")

    def mechanism(self, node: NodePlan) -> Mechanism:
        """Return what limits the rates of a node's link."""
        limited = node.link.limited or node.changeable
        if self.by_kernel:
            return "tc" if limited or self.delay(node) == "netem" else "none"
        return "model" if limited else "none"

    def delay(self, node: NodePlan) -> Delay:
        """Return what makes the latency and jitter of a node's link, and loses packets."""
        if not (node.link.delayed or node.link.lossy or node.changeable):
            return ""
        return "netem" if self.by_kernel and self.netem else "line"

    def why_not(self, node: NodePlan, change: LinkChange) -> str:
        """Say why a node's link cannot be changed so during training; empty if it can."""
        if self.by_kernel and self.netem:
            return ""
        if change.asks("packets"):
            return f"packets cannot be lost here: {NO_NETEM if self.by_kernel else NETEM_ALONE}"
        if self.by_kernel and change.asks("delay") and not self.delay(node):
            return f"latency cannot be made here: {NO_NETEM}, and the link was planned without any"
        return ""

    def notes(self, plan: Plan) -> Iterator[str]:
        """Yield notes for readers of the run: what holds its links; the evaluator's carries no training."""
        links = [node.link for node in plan.nodes if node.role != "evaluator"]
        if any(link.limited for link in links):
            instead = f", and not by the kernel: {self.hindered}" if self.hindered else ""
            yield f"Rates of links are held by {self}{instead}."
        if any(link.delayed for link in links):
            line = "the transport's own delay line" + (": the kernel has no netem" if self.by_kernel else "")
            yield f"Latency and jitter of links are made by {'the kernel (netem)' if self.netem else line}."
        if any(link.lossy for link in links):
            yield "Packets are lost by the kernel (netem)."
        if not all(link.limited for link in links):
            unlimited = "Links without a limit" if any(link.shaped for link in links) else "Links"
            yield f"{unlimited} are as fast as the machine, unless a fault or a user changes them."
        if any(node.changeable for node in plan.nodes):
            yield f"What faults do to links is done by {self}."

    def __str__(self) -> str:
        match self.place:
            case "docker":
                return "the kernel's queues (tc) in each container's network namespace"
            case "namespaces":
                return "the kernel's queues (tc) in a network namespace for each node"
            case "model":
                return "the transport's own model of a link"
            case None:
                return "the model of a link, in virtual time"


def place_of(runtime: Runtime, emulation: Emulation = "auto") -> Place | None:
    """Return the place where the links of a run are held."""
    if TRAITS[runtime].is_virtual:
        return None
    if TRAITS[runtime].has_containers:
        return "docker"
    if emulation == "auto":
        return "model" if why_no_namespaces() else "namespaces"
    return "namespaces" if emulation == "kernel" else "model"


def mechanisms_of(runtime: Runtime, emulation: Emulation = "auto") -> Mechanisms:
    """Return the place, and what the kernel can do there; tries the kernel in a network namespace of its own."""
    place = place_of(runtime, emulation)
    if place not in ("docker", "namespaces"):
        is_hindered = place == "model" and emulation == "auto" and os.geteuid() == 0
        return Mechanisms(place, hindered=why_no_namespaces() if is_hindered else "")
    from edgebed.emulation import tc  # pyroute2 takes a while

    try:
        return Mechanisms(place, tc.probe().netem)
    except InfrastructureError:
        return Mechanisms(place, None)


def lacks_caps(runtime: Runtime, emulation: Emulation) -> bool:
    """Whether nodes are processes that no cgroup caps."""
    return TRAITS[runtime].has_local_processes and not has_cgroups(emulation)


def has_cgroups(emulation: Emulation) -> bool:
    """Whether the kernel holds the caps of nodes that are processes; else these are paced."""
    return emulation == "kernel" or (emulation == "auto" and not why_no_cgroups())


def has_links(plan: Plan) -> bool:
    """Whether something has to hold the nodes' links, now or when a fault changes them."""
    return any(node.link.shaped or node.changeable for node in plan.nodes)


def caps_cpus(plan: Plan) -> bool:
    """Whether something has to hold CPU caps, now or when a fault changes them."""
    planned = any(node.cpus is not None for node in plan.nodes)
    return planned or any(step.injection.action == "cpus" for fault in plan.faults for step in fault.steps)


def caps_memory(plan: Plan) -> bool:
    """Whether something has to hold memory caps."""
    return any(node.memory_bytes is not None for node in plan.nodes)


def check_mechanisms(plans: Iterable[Plan], runtime: Runtime, emulation: Emulation) -> None:
    """Raise ScenarioError where what the user asked to hold links and caps cannot hold these."""
    if emulation not in TRAITS[runtime].emulations:
        raise ScenarioError(f"--emulation {emulation}: {TRAITS[runtime].held_by}; leave it out")
    if not TRAITS[runtime].has_local_processes:
        return
    for plan in plans:
        linked, capped = has_links(plan), caps_cpus(plan) or caps_memory(plan)
        if emulation == "kernel" and linked and kernel_lacks_links():
            raise InfrastructureError(f"the kernel cannot hold links here: {why_no_namespaces()}. {WITHOUT}")
        if emulation == "kernel" and linked and (reason := why_no_namespaces()):
            raise ScenarioError(f"--emulation kernel: the kernel cannot hold links here: {reason}. {INSTEAD}")
        if emulation == "kernel" and capped and (reason := why_no_cgroups()):
            raise ScenarioError(f"--emulation kernel: the kernel cannot hold caps here: {reason}. {INSTEAD}")
        num_nodes = sum(node.role != "evaluator" for node in plan.nodes)
        if linked and num_nodes > PORTS_MAX and place_of(runtime, emulation) == "namespaces":
            raise ScenarioError(
                f"{plan.trial}: {num_nodes} nodes with links of their own are too many: the kernel's bridge "
                f"takes {PORTS_MAX}. Take fewer workers, or --emulation model"
            )
        _check_caps_of_faults(plan, emulation)
        _check_between(plan, runtime, emulation)


def check_conditions(plans: Iterable[ProgramsPlan]) -> None:
    """Raise ScenarioError where this machine cannot give programs that are its processes their conditions."""
    if reason := why_no_namespaces() or why_no_cgroups():
        raise ScenarioError(
            "programs of this machine run in network namespaces and cgroups of their own, and none can be made here: "
            f"{reason}. Run as root of the machine"
        )
    for plan in plans:
        if len(plan.nodes) > PORTS_MAX:
            raise ScenarioError(f"{plan.trial}: {len(plan.nodes)} nodes are too many: a bridge takes {PORTS_MAX}")


def _check_caps_of_faults(plan: Plan, emulation: Emulation) -> None:
    """Raise ScenarioError where a fault needs a cap that the kernel alone can hold, and it does not."""
    if has_cgroups(emulation):
        return
    reason = "--emulation model asks for that" if emulation == "model" else why_no_cgroups()
    for fault in plan.faults:
        actions = {step.injection.action for step in fault.steps}
        if "memory" in actions:
            needed = f"{fault.node} is to run into its memory cap"
        elif "cpus" in actions and plan.node(fault.node).role == "server":
            needed = "the server's CPU cap is to change"
        else:
            continue
        raise ScenarioError(
            f"{plan.trial}: fault {fault.name}: {needed}, which the kernel alone can hold, and it does not here: "
            f"{reason}. Run as root, with --runtime docker, or without this fault"
        )


def _check_between(plan: Plan, runtime: Runtime, emulation: Emulation) -> None:
    """Raise ScenarioError where a part of a node's link is to be cut, which the kernel alone can."""
    cuts = [fault for fault in plan.faults if fault.steps[0].injection.action != "link"]
    between = [fault for fault in cuts if fault.steps[0].injection.peer]
    if not between or place_of(runtime, emulation) != "model":
        return
    known = plan.neighbours()
    for fault in between:
        peer = fault.steps[0].injection.peer
        if known[fault.node] != (peer,):
            raise ScenarioError(
                f"{plan.trial}: fault {fault.name}: {fault.node} is to be cut off from {peer} and not from "
                "others, which the kernel alone can do, and it holds no links here. Run as root, with --runtime "
                "docker or simulation, or cut its whole link"
            )


def why_no_namespaces() -> str:
    """Say why this process cannot give nodes network namespaces with links; empty if it can. Tries it."""
    return str(_hindrance() or "")


def kernel_lacks_links() -> bool:
    """Whether it is the kernel that lacks what links take, and no right of this process's. Tries it."""
    return isinstance(_hindrance(), KernelLackError)


@functools.cache
def _hindrance() -> InfrastructureError | None:
    """Return what keeps this process from giving nodes network namespaces with links."""
    if os.geteuid() != 0:
        return InfrastructureError(NOT_ROOT)
    from edgebed.emulation import switch

    try:
        switch.probe()
    except InfrastructureError as error:
        return error
    return None


@functools.cache
def why_no_cgroups() -> str:
    """Say why this process cannot give nodes cgroups of their own; empty if it can. Tries it."""
    if os.geteuid() != 0:
        return NOT_ROOT
    try:
        Cgroups().remove()
    except InfrastructureError as error:
        return str(error)
    return ""
