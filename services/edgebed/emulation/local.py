"""What holds the links and caps of one trial in the process runtime, and what the run says of that."""

from collections.abc import Iterator
from dataclasses import dataclass

from edgebed.emulation.means import has_cgroups, means_of, why_no_cgroups, why_no_namespaces
from edgebed.emulation.readback import Delay, Mechanism
from edgebed.runtimes import Emulation
from edgebed.scenario.plan import NodePlan, Plan


@dataclass(frozen=True, kw_only=True)
class Local:
    """The kernel's means as far as the plan needs them and they can be had here."""

    plan: Plan
    namespaces: bool = False
    netem: bool = False
    cgroups: bool = False
    why_model: str = ""
    """Why links are not the kernel's, where they could be."""
    why_paced: str = ""
    """Why caps are not the kernel's, where they could be."""

    def mechanism(self, node: NodePlan) -> Mechanism:
        """What limits the rates of a node's link."""
        if self.namespaces:
            return "tc" if node.link.limited or self.delay(node) == "netem" else "none"
        return "model" if node.link.limited else "none"

    def delay(self, node: NodePlan) -> Delay:
        """What makes its latency and jitter, and loses packets."""
        if not (node.link.delayed or node.link.lossy):
            return ""
        return "netem" if self.namespaces and self.netem else "line"

    def notes(self) -> Iterator[str]:
        """For a reader of the run: what holds links and caps; the evaluator's link carries no training."""
        links = [node.link for node in self.plan.nodes if node.role != "evaluator"]
        if any(link.shaped for link in links) and self.why_model:
            yield f"The kernel does not hold links: {self.why_model}."
        if any(link.limited for link in links):
            held_by = "the kernel (tc) in a network namespace for each node" if self.namespaces else "the transport"
            yield f"Rates of links are held by {held_by}."
        if any(link.delayed for link in links):
            line = "the transport's own delay line" + (": the kernel has no netem" if self.namespaces else "")
            yield f"Latency and jitter of links are made by {'the kernel (netem)' if self.netem else line}."
        if any(link.lossy for link in links):
            yield "Packets are lost by the kernel (netem)."
        if not all(link.limited for link in links):
            unlimited = "Links without a limit" if any(link.shaped for link in links) else "Links"
            yield f"{unlimited} are as fast as the machine."
        yield from self._notes_of_caps()

    def _notes_of_caps(self) -> Iterator[str]:
        cpus = any(node.cpus is not None for node in self.plan.nodes)
        memory = any(node.memory_bytes is not None for node in self.plan.nodes)
        if self.cgroups:
            if cpus:
                yield "CPU caps are held by the kernel (cgroups)."
            if memory:
                yield "Memory caps are held by the kernel (cgroups); pages that nodes share, as torch's, do not count."
            return
        if (cpus or memory) and self.why_paced:
            yield f"The kernel does not hold caps: {self.why_paced}."
        if cpus:
            yield "CPU caps below one core are held by pacing: workers and the evaluator stretch their own work."
        if any(node.cpus is not None for node in self.plan.nodes if node.role == "server"):
            yield "The server's CPU cap is not held."
        if memory:
            yield "Memory caps are not held."


def local_of(plan: Plan, emulation: Emulation) -> Local:
    """What the plan needs and this machine has; tries the kernel only for that."""
    linked = any(node.link.shaped for node in plan.nodes)
    capped = any(node.cpus is not None or node.memory_bytes is not None for node in plan.nodes)
    means = means_of("process", emulation if linked else "model")
    cgroups = capped and has_cgroups(emulation)
    return Local(
        plan=plan,
        namespaces=means.by_kernel,
        netem=bool(means.netem),
        cgroups=cgroups,
        why_model=why_no_namespaces() if linked and emulation == "auto" else "",
        why_paced=why_no_cgroups() if capped and emulation == "auto" else "",
    )
