"""What a node's container runs: the same node as everywhere, told by the environment who it is and where.

    EDGEBED_NODE, EDGEBED_CONTROLLER_ADDRESS             its name, and whom to say hello to
    EDGEBED_DATA_SUBNET, EDGEBED_MANAGEMENT_SUBNET       its own address in each is where it listens

Everything else comes over the management network.
"""

import ipaddress
import os
import socket
import sys

import psutil

from edgebed.learning.allocator import keep_freed_memory
from edgebed.runtimes.node import Surroundings, run_node


def main() -> int:
    """Be the node; return the exit code."""
    keep_freed_memory()
    return run_node(
        Surroundings(
            node=os.environ["EDGEBED_NODE"],
            controller_address=os.environ["EDGEBED_CONTROLLER_ADDRESS"],
            data_host=own_address(os.environ["EDGEBED_DATA_SUBNET"]),
            management_host=own_address(os.environ["EDGEBED_MANAGEMENT_SUBNET"]),
        )
    )


def own_address(subnet: str) -> str:
    """This machine's address in `subnet`; interfaces have any name and order. SystemExit if it has none."""
    network = ipaddress.ip_network(subnet)
    for addresses in psutil.net_if_addrs().values():
        for entry in addresses:
            if entry.family == socket.AF_INET and ipaddress.ip_address(entry.address) in network:
                return entry.address
    sys.exit(f"this container has no address in {subnet}")


if __name__ == "__main__":
    sys.exit(main())
