"""What a node's container runs: the same node as in every runtime, with its name and address from the environment.

    EDGEBED_NODE, EDGEBED_CONTROLLER_ADDRESS             its name, and whom to say hello to
    EDGEBED_SECRET, EDGEBED_SECURITY                     what it shows, and asks for, wherever it connects; how
    EDGEBED_DATA_SUBNET, EDGEBED_MANAGEMENT_SUBNET       its own address in each is where it listens
    EDGEBED_MECHANISM, EDGEBED_DELAY                     what limits its link, and what delays what passes it
    EDGEBED_LOG_FOLDER                                   of a server that keeps a log

Everything else comes over the management network.
"""

import gc
import os
import sys

import msgspec

from edgebed.core.errors import EdgebedError
from edgebed.core.plan import Security
from edgebed.emulation.readback import Delay, Mechanism
from edgebed.emulation.resources import own_address
from edgebed.learning.allocator import keep_freed_memory
from edgebed.runtimes.live.node import NodeEnvironment, run_node


def main() -> int:
    """Run the node; return the exit code."""
    gc.disable()  # until the node is built: nearly all that it imports stays
    keep_freed_memory()
    told = os.environ
    try:
        here = NodeEnvironment(
            node=told["EDGEBED_NODE"],
            contained=True,
            controller_address=told["EDGEBED_CONTROLLER_ADDRESS"],
            secret=told.pop("EDGEBED_SECRET"),  # what the node itself may start does not inherit it
            security=msgspec.convert(told["EDGEBED_SECURITY"], Security),
            data_host=own_address(told["EDGEBED_DATA_SUBNET"]),
            management_host=own_address(told["EDGEBED_MANAGEMENT_SUBNET"]),
            mechanism=msgspec.convert(told["EDGEBED_MECHANISM"], Mechanism),
            delay=msgspec.convert(told["EDGEBED_DELAY"], Delay),
            log_folder=told["EDGEBED_LOG_FOLDER"],
        )
    except EdgebedError as error:
        sys.exit(str(error))
    return run_node(here)


if __name__ == "__main__":
    sys.exit(main())
