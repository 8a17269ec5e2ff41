"""What hosts the nodes: the shells around the hearts, and the ways to start nodes."""

from typing import Literal, get_args

Runtime = Literal["process", "simulation", "docker"]
"""`process`: local processes; `simulation`: virtual time; `docker`: a container for each node."""
RUNTIMES: tuple[Runtime, ...] = get_args(Runtime)
