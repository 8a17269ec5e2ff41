"""ZeroMQ sockets with the options that each network needs.

Each socket asks whoever connects for the secret of the run (authentication.py). Until then a stranger holds no more
than one frame's memory, for the time that a handshake may take.

The *data* sockets have no ZeroMQ heartbeats: on a slow link a large frame outlasts their time-out and the message is
lost in silence (libzmq issue 2709). The kernel asks a silent server instead, between the bytes of a message and not
after them, and what that means is for data_endpoints.py to say. Their high-water marks are low, so that no hidden queue
falsifies staleness. The *management* sockets have heartbeats. A frame above the limit ends its connection.
"""

import zmq

from edgebed.core.errors import InfrastructureError
from edgebed.runtimes.live.authentication import Credentials
from edgebed.wire.frames import MAX_HEADER_BYTES
from edgebed.wire.tensors import FRAME_BYTES

DATA_FRAME_BYTES_MAX = 2 * FRAME_BYTES  # headers are far smaller
REPORT_BYTES_MAX = 1024 * 1024  # what a node sends the controller: a report is the largest
UNREAD_MAX = 64
"""Messages of a node that wait at the controller; what comes after them waits at the node."""
FILES_BESIDE = 64
"""Files that a node or the controller has open besides connections."""
HIGH_WATER_MARK = 4  # messages; a worker has one on its way
SHARDS_ROOM = 1_000  # messages; how many a shard has on its way, its queue says
HEARTBEAT_MS = 5_000
HEARTBEAT_TIMEOUT_MS = 60_000  # a frozen peer may come back: cutting its connection would lose what is on its way
HANDSHAKE_S = 10.0
BACKLOG = 1024  # connections that wait to be accepted: hundreds of nodes start at once
RECONNECT_MS = 200
RECONNECT_MAX_MS = 5_000
KEEPALIVE_S_MAX = 120  # the kernel itself gives a connection up only then


def data_socket(
    context: zmq.Context[zmq.Socket[bytes]],
    kind: int,
    credentials: Credentials,
    identity: str = "",
    patience_s: float = 4.0,
    room: int = HIGH_WATER_MARK,
) -> zmq.Socket[bytes]:
    """A socket for the data network: `zmq.ROUTER` where others connect, `zmq.DEALER` elsewhere.

    `patience_s`: for how long a living peer is silent at most to one that waits, given its link and this one.
    `room`: messages that a peer may leave unread; a router drops what is beyond.
    """
    socket = _socket(context, kind, identity)
    handshake_s = 3.0 * patience_s  # it goes back and forth, on the same links
    _authenticate(socket, credentials, encrypted=credentials.encrypts_data, handshake_s=handshake_s)
    socket.setsockopt(zmq.SNDHWM, room)
    socket.setsockopt(zmq.RCVHWM, room)
    socket.setsockopt(zmq.MAXMSGSIZE, DATA_FRAME_BYTES_MAX)
    socket.setsockopt(zmq.TCP_KEEPALIVE, 1)
    socket.setsockopt(zmq.LINGER, 0)
    ask_s = max(1, int(patience_s / 4)) if kind == zmq.DEALER else 30  # one end asks: each asking takes its share
    socket.setsockopt(zmq.TCP_KEEPALIVE_IDLE, ask_s)
    socket.setsockopt(zmq.TCP_KEEPALIVE_INTVL, ask_s)
    socket.setsockopt(zmq.TCP_KEEPALIVE_CNT, max(1, KEEPALIVE_S_MAX // ask_s))
    if kind == zmq.DEALER:
        socket.setsockopt(zmq.CONNECT_TIMEOUT, int(patience_s * 500))
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, 0)  # without back-off
    return socket


def management_socket(
    context: zmq.Context[zmq.Socket[bytes]], kind: int, credentials: Credentials, identity: str = "", room: int = 0
) -> zmq.Socket[bytes]:
    """A socket for the management network: `zmq.ROUTER` at the controller, `zmq.DEALER` elsewhere.

    `room`: messages that the other end may leave unread; 0: any number, so that no report is dropped.
    """
    socket = _socket(context, kind, identity)
    _authenticate(socket, credentials, encrypted=True, handshake_s=HANDSHAKE_S)
    socket.setsockopt(zmq.SNDHWM, room)
    socket.setsockopt(zmq.RCVHWM, UNREAD_MAX)
    socket.setsockopt(zmq.MAXMSGSIZE, REPORT_BYTES_MAX if kind == zmq.ROUTER else MAX_HEADER_BYTES)
    socket.setsockopt(zmq.HEARTBEAT_IVL, HEARTBEAT_MS)
    socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, HEARTBEAT_TIMEOUT_MS)
    socket.setsockopt(zmq.LINGER, 2_000)
    return socket


def bind(socket: zmq.Socket[bytes], host: str) -> str:
    """Bind to any free port of that address, and return what to connect to.

    Raises InfrastructureError where this machine cannot listen there.
    """
    try:
        socket.bind(f"tcp://{host}:*")
    except zmq.ZMQError as error:
        raise InfrastructureError(f"cannot listen on {host}: {error.strerror}") from error
    return socket.getsockopt_string(zmq.LAST_ENDPOINT)


def _socket(context: zmq.Context[zmq.Socket[bytes]], kind: int, identity: str) -> zmq.Socket[bytes]:
    socket = context.socket(kind)
    if identity:
        socket.setsockopt(zmq.IDENTITY, identity.encode())
    if kind == zmq.ROUTER:
        socket.setsockopt(zmq.BACKLOG, BACKLOG)
        socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
        socket.setsockopt(zmq.ROUTER_HANDOVER, 1)  # a peer whose connection broke comes back on a new one
    else:
        socket.setsockopt(zmq.IMMEDIATE, 1)
        socket.setsockopt(zmq.RECONNECT_IVL, RECONNECT_MS)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, RECONNECT_MAX_MS)
    return socket


def _authenticate(socket: zmq.Socket[bytes], credentials: Credentials, *, encrypted: bool, handshake_s: float) -> None:
    """Have a socket ask for the secret, within so long, where others connect to it, and else show it."""
    if socket.type == zmq.ROUTER:
        credentials.ask(socket, encrypted=encrypted)
        socket.setsockopt(zmq.HANDSHAKE_IVL, int(1000 * handshake_s))
    else:
        credentials.show(socket, encrypted=encrypted)
