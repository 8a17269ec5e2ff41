"""A client of hub.py: its gradient leads to weights of 1, and it comes back when its connection breaks."""

import array
import contextlib
import socket
import struct
import sys
import time

HEAD = struct.Struct("!I")


def work(hub: str) -> bool:
    """Push gradients until the hub says that all is done; False where the connection broke."""
    with socket.create_connection((hub, 8000), timeout=10) as connection, connection.makefile("rwb") as stream:
        while head := stream.read(HEAD.size):
            (size,) = HEAD.unpack(head)
            if size == 0:
                return True
            weights = array.array("d", stream.read(8 * size))
            gradient = array.array("d", (each - 1.0 for each in weights))
            stream.write(gradient.tobytes())
            stream.flush()
    return False


def main() -> None:
    """Work, and try again where the hub cannot be reached."""
    is_over = False
    while not is_over:
        with contextlib.suppress(OSError, ValueError, struct.error):
            is_over = work(sys.argv[1])
        time.sleep(0 if is_over else 0.5)


if __name__ == "__main__":
    main()
