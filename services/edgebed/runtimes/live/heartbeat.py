"""Heartbeats: a thread that shows the controller, over a connection of its own, that this process still runs.

It sends them whatever the node computes, so that only a process that is frozen, starved or gone sends none.
"""

import contextlib
import threading
from collections.abc import Iterator

import zmq

from edgebed.runtimes.live.authentication import Credentials
from edgebed.runtimes.live.sockets import management_socket
from edgebed.wire import frames
from edgebed.wire.messages import Alive

HEARTBEAT = "!alive"
"""Suffix that makes the identity of the heartbeat's connection from that of the node's connection to the controller."""
SIGNS_A_CHECK = 3


@contextlib.contextmanager
def heartbeats(
    context: zmq.Context[zmq.Socket[bytes]],
    address: str,
    credentials: Credentials,
    identity: str,
    alive: Alive,
    check_s: float,
) -> Iterator[None]:
    """Send several heartbeats every `check_s` while entered. `identity`: of the node's connection to the controller."""
    socket = management_socket(context, zmq.DEALER, credentials, identity + HEARTBEAT)
    socket.setsockopt(zmq.SNDHWM, SIGNS_A_CHECK)  # old heartbeats are of no use
    socket.setsockopt(zmq.LINGER, 0)
    socket.connect(address)
    ended = threading.Event()

    def give() -> None:
        buffers = frames.encode(alive, ())
        while not ended.wait(check_s / SIGNS_A_CHECK):
            with contextlib.suppress(zmq.Again):  # the controller is gone, or does not read
                socket.send_multipart(buffers, zmq.NOBLOCK)
        socket.close()

    thread = threading.Thread(target=give, name="signs", daemon=True)  # does not keep the process alive
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
