"""The runtimes by name, and their traits: what everything that runs no node may know of them."""

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

Runtime = Literal["process", "simulation", "docker"]
"""`process`: local processes; `simulation`: virtual time; `docker`: a container for each node."""
RUNTIMES: tuple[Runtime, ...] = get_args(Runtime)
Emulation = Literal["auto", "kernel", "model"]
"""What holds links and caps in the process runtime. `kernel`: network namespaces and cgroups, for root; `model`: the
transport's own model of a link, and pacing; `auto`: the kernel for root, else the model."""
EMULATIONS: tuple[Emulation, ...] = get_args(Emulation)


class Traits(NamedTuple):
    """What sets a runtime apart; how it runs nodes is runtimes/runtime.py's."""

    emulations: tuple[Emulation, ...]
    """What the user may ask to hold links and caps."""
    held_by: str = ""
    """What holds them where that is not the user's choice."""
    is_virtual: bool = False
    """Whether time is virtual: conditions are a model, which nobody measures."""
    has_containers: bool = False
    """Whether each node is a container, in which the kernel holds caps and the code is that of an image."""

    @property
    def has_local_processes(self) -> bool:
        """Whether nodes are processes of this machine, whose conditions the kernel may hold, or not."""
        return not (self.is_virtual or self.has_containers)

    @property
    def other_code_remedy(self) -> str:
        """What to do where a node has other code than the controller."""
        if not self.has_containers:
            return "start the run again"
        return (
            "build the images again: scripts/build-images. If another folder of the same name builds them on this "
            "engine, give one of the two a COMPOSE_PROJECT_NAME"
        )


TRAITS: Mapping[Runtime, Traits] = {
    "process": Traits(EMULATIONS),
    "simulation": Traits(("auto", "model"), "the simulation has a model of links and caps alone", is_virtual=True),
    "docker": Traits(("auto", "kernel"), "in the docker runtime the kernel holds links and caps", has_containers=True),
}


def has_choice_of_emulation(runtime: object) -> bool:
    """Whether the user may choose what holds links and caps in the runtime of that name, be it known or not."""
    return any(name == runtime and not traits.held_by for name, traits in TRAITS.items())


def is_virtual(runtime: object) -> bool:
    """Whether this is the name of a runtime in virtual time; of a run's folder it may be anything."""
    return any(name == runtime and traits.is_virtual for name, traits in TRAITS.items())
