"""Heartbeats: a thread that shows the controller, over a connection of its own, that this process still runs.

It sends them whatever the node computes, so that only a process that is frozen, starved or gone sends none. It also
ends the process where the node itself does not, since its computation never ends, and no controller is left that would.
On another host than the controller's, it asks for the time meanwhile.
"""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator

import zmq

from edgebed.runtimes.live.authentication import Credentials
from edgebed.runtimes.live.clocks.following import FollowedClock
from edgebed.runtimes.live.endpoint import DealerEndpoint
from edgebed.runtimes.live.sockets import management_socket
from edgebed.wire import frames
from edgebed.wire.messages import Alive

HEARTBEAT = "!alive"
"""Suffix that makes the identity of the heartbeat's connection from that of the node's connection to the controller."""
SIGNS_A_CHECK = 3
CONTROLLER_LOST_S = 15.0
"""Without a connection to the controller for so long a node ends by itself."""
ENDING_S = 10.0
"""Time that it then has for it; one that still computes is ended."""
LOOK_S = 2.0  # the connection is looked at so often, however seldom heartbeats are wanted


@contextlib.contextmanager
def heartbeats(
    context: zmq.Context[zmq.Socket[bytes]],
    address: str,
    credentials: Credentials,
    identity: str,
    alive: Alive,
    check_s: float,
    lost_s: float = CONTROLLER_LOST_S + ENDING_S,
    clock: FollowedClock | None = None,
) -> Iterator[None]:
    """Send several heartbeats every `check_s` while entered; end this process when the controller is gone for `lost_s`.

    `identity`: of the node's connection to the controller. `clock`: what follows the controller's, if the node's is
    another.
    """
    socket = management_socket(context, zmq.DEALER, credentials, identity + HEARTBEAT)
    socket.setsockopt(zmq.SNDHWM, SIGNS_A_CHECK)  # old heartbeats are of no use
    socket.setsockopt(zmq.LINGER, 0)
    end = DealerEndpoint(socket, "controller", "management", lambda _: None)
    end.lost_for_s(0.0)  # from here on the end of the connection is noticed
    socket.connect(address)
    ended = threading.Event()

    def give() -> None:
        buffers = frames.encode(alive, ())
        if clock:
            clock.keep(end)
        while not ended.wait(min(check_s / SIGNS_A_CHECK, LOOK_S)):
            with contextlib.suppress(zmq.Again):  # the controller is gone, or does not read
                socket.send_multipart(buffers, zmq.NOBLOCK)
            if clock:
                clock.keep(end)
            if end.lost_for_s(time.monotonic()) > lost_s:
                print(f"{alive.sender}: the controller is gone, and the computation does not end", file=sys.stderr)
                sys.stderr.flush()
                os._exit(1)
        end.monitor.close()
        socket.close()

    thread = threading.Thread(target=give, name="signs", daemon=True)  # does not keep the process alive
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
