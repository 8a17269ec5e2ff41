"""What holds the links and caps of one trial in the process runtime, and what the run says of that."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from edgebed.core.plan import Plan
from edgebed.core.runtimes import Emulation
from edgebed.emulation.means import (
    Mechanisms,
    caps_cpus,
    caps_memory,
    has_cgroups,
    has_links,
    mechanisms_of,
    why_no_cgroups,
    why_no_namespaces,
)


@dataclass(frozen=True, kw_only=True)
class LocalMechanisms:
    """The kernel's means as far as the plan needs them and they can be had here."""

    plan: Plan
    mechanisms: Mechanisms = field(default_factory=lambda: Mechanisms("model"))
    """Mechanisms that hold the links."""
    cgroups: bool = False
    why_model: str = ""
    """Why links are not the kernel's, where they could be."""
    why_paced: str = ""
    """Why caps are not the kernel's, where they could be."""

    def notes(self) -> Iterator[str]:
        """Yield notes for readers of the run: what holds links and caps."""
        if self.why_model:
            yield f"The kernel does not hold links: {self.why_model}."
        yield from self.mechanisms.notes(self.plan)
        yield from self._notes_of_caps()

    def _notes_of_caps(self) -> Iterator[str]:
        cpus, memory = caps_cpus(self.plan), caps_memory(self.plan)
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


def local_mechanisms(plan: Plan, emulation: Emulation) -> LocalMechanisms:
    """Return what the plan needs and this machine has; tries the kernel only for that."""
    linked, capped = has_links(plan), caps_cpus(plan) or caps_memory(plan)
    return LocalMechanisms(
        plan=plan,
        mechanisms=mechanisms_of("process", emulation if linked else "model"),
        cgroups=capped and has_cgroups(emulation),
        why_model=why_no_namespaces() if linked and emulation == "auto" else "",
        why_paced=why_no_cgroups() if capped and emulation == "auto" else "",
    )
