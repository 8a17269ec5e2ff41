"""What a program is told of its place among all nodes: by its environment, and by /etc/hosts. Pure.

Beside edgebed's own variables there are those that torch.distributed reads (`env://`), and those by which gloo,
TensorPipe and NCCL choose an interface: they need nothing else. What else a program is told stands in its command
(core/planned/command.py).
"""

from collections.abc import Iterable, Sequence

from edgebed.core.planned.command import Member

MASTER_PORT = 29500
"""The port of torchrun's rendezvous, at the node of rank 0."""


def environment(
    rank: int, members: Sequence[Member], *, seed: int, incarnation: int, interface: str, url: str = ""
) -> dict[str, str]:
    """The variables for the node of that rank; `interface` is the one on the data network, `url` its own address."""
    own, world_size = members[rank], len(members)
    told: dict[str, object] = {
        "EDGEBED_NODE": own.node,
        "EDGEBED_CLASS": own.device_class,
        "EDGEBED_INDEX": own.number,
        "EDGEBED_RANK": rank,
        "EDGEBED_WORLD_SIZE": world_size,
        "EDGEBED_INCARNATION": incarnation,
        "EDGEBED_SEED": seed,
        "EDGEBED_NODES": ",".join(f"{each.node}={each.address}" for each in members),
        **({"EDGEBED_URL": url} if url else {}),
        "RANK": rank,
        "WORLD_SIZE": world_size,
        "LOCAL_RANK": 0,
        "MASTER_ADDR": members[0].address,
        "MASTER_PORT": MASTER_PORT,
        "GLOO_SOCKET_IFNAME": interface,
        "TP_SOCKET_IFNAME": interface,
        "NCCL_SOCKET_IFNAME": interface,
    }
    return {name: str(value) for name, value in told.items()}


def hosts(members: Iterable[Member]) -> str:
    """The text of /etc/hosts that has all nodes by name."""
    return "127.0.0.1\tlocalhost\n" + "".join(f"{each.address}\t{each.node}\n" for each in members)
