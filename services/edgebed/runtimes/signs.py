"""Signs of life: a thread that tells the controller, over a connection of its own, that this process still runs.

It does so whatever the node computes, so that only a process that is frozen, starved or gone gives none.
"""

import contextlib
import threading
from collections.abc import Iterator

import zmq

from edgebed.runtimes.sockets import management_socket
from edgebed.wire import frames
from edgebed.wire.messages import Alive

SIGN_OF_LIFE = "!alive"
"""After the identity of a node's connection to the controller: that of the thread's own."""
SIGNS_A_CHECK = 3


@contextlib.contextmanager
def signs_of_life(
    context: zmq.Context[zmq.Socket[bytes]], address: str, identity: str, alive: Alive, check_s: float
) -> Iterator[None]:
    """Give several every `check_s` while entered. `identity` is that of the node's connection to the controller."""
    socket = management_socket(context, zmq.DEALER, identity + SIGN_OF_LIFE)
    socket.setsockopt(zmq.SNDHWM, SIGNS_A_CHECK)  # old ones tell nothing
    socket.setsockopt(zmq.LINGER, 0)
    socket.connect(address)
    ended = threading.Event()

    def give() -> None:
        buffers = frames.encode(alive, ())
        while not ended.wait(check_s / SIGNS_A_CHECK):
            with contextlib.suppress(zmq.Again):  # the controller is gone, or does not read
                socket.send_multipart(buffers, zmq.NOBLOCK)
        socket.close()

    thread = threading.Thread(target=give, name="signs", daemon=True)  # never what keeps the process alive
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
