"""What hosts the nodes: the shells around the hearts, and the ways to start nodes."""

from typing import Literal, get_args

Runtime = Literal["process", "simulation", "docker"]
"""`process`: local processes; `simulation`: virtual time; `docker`: a container for each node."""
RUNTIMES: tuple[Runtime, ...] = get_args(Runtime)
Emulation = Literal["auto", "kernel", "model"]
"""What holds links and caps in the process runtime. `kernel`: network namespaces and cgroups, for root; `model`: the
transport's own model of a link, and pacing; `auto`: the kernel for root, else the model."""
EMULATIONS: tuple[Emulation, ...] = get_args(Emulation)
