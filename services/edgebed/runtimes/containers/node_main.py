"""What a node's container runs: the same node as everywhere, told by the environment who it is and where.

    EDGEBED_NODE, EDGEBED_CONTROLLER_ADDRESS             its name, and whom to say hello to
    EDGEBED_DATA_SUBNET, EDGEBED_MANAGEMENT_SUBNET       its own address in each is where it listens
    EDGEBED_MECHANISM, EDGEBED_DELAY                     what limits its link, and what delays what passes it

Everything else comes over the management network.
"""

import os
import sys

import msgspec

from edgebed.emulation.readback import Delay, Mechanism
from edgebed.errors import EdgebedError
from edgebed.learning.allocator import keep_freed_memory
from edgebed.observe.resources import own_address
from edgebed.runtimes.node import Surroundings, run_node


def main() -> int:
    """Be the node; return the exit code."""
    keep_freed_memory()
    told = os.environ
    try:
        here = Surroundings(
            node=told["EDGEBED_NODE"],
            contained=True,
            controller_address=told["EDGEBED_CONTROLLER_ADDRESS"],
            data_host=own_address(told["EDGEBED_DATA_SUBNET"]),
            management_host=own_address(told["EDGEBED_MANAGEMENT_SUBNET"]),
            mechanism=msgspec.convert(told["EDGEBED_MECHANISM"], Mechanism),
            delay=msgspec.convert(told["EDGEBED_DELAY"], Delay),
        )
    except EdgebedError as error:
        sys.exit(str(error))
    return run_node(here)


if __name__ == "__main__":
    sys.exit(main())
