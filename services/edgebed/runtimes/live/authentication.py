"""Who may connect: whoever has the secret of the run, which every socket asks for before it reads a frame.

    plain    a password that travels readable        data network and evaluator, on networks of one machine
    curve    keys, and everything is encrypted       management network always, data with `security: curve`

Password and keys are derived from the secret, each for its own purpose, so that a password that was overheard opens
nothing else. libzmq makes the handshake (PLAIN: ZeroMQ RFC 24, CURVE: RFC 26) and asks a thread of the same process
whether to admit a peer (ZAP: RFC 27). A socket that asks refuses every other mechanism, and versions of ZMTP without
any. All nodes of a run have its secret: this tells them from strangers, not from each other.
"""

import hashlib
import hmac
import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import zmq
from zmq.utils import z85

from edgebed.core.errors import InfrastructureError
from edgebed.core.plan import Security

SECRET_BYTES = 16
USER = b"edgebed"
ZAP = "inproc://zeromq.zap.01"
ADMITTED = (b"200", b"", USER, b"")
REFUSED = (b"400", b"", b"", b"")


def new_secret() -> str:
    """A secret for a run: 128 random bits as hexadecimal digits."""
    return secrets.token_hex(SECRET_BYTES)


def new_identity(node: str) -> str:
    """An identity for a connection of `node`, to be told apart by people and guessed by nobody."""
    return f"{node}~{secrets.token_hex(8)}"


def node_of(identity: str) -> str:
    """The node that an identity names; empty where it is none of ours. No name of a node has a tilde."""
    node, tilde, _ = identity.partition("~")
    return node if tilde else ""


class KeyPair(NamedTuple):
    """Two Curve25519 keys, each 32 bytes written as Z85."""

    public: bytes
    private: bytes


@dataclass(frozen=True)
class Credentials:
    """What the sockets of a run show each other."""

    password: bytes = field(repr=False)
    host: KeyPair = field(repr=False)
    """The keys of those who bind."""
    client: KeyPair = field(repr=False)
    """The keys of those who connect."""
    encrypts_data: bool

    @classmethod
    def of(cls, secret: str, security: Security = "plain") -> Self:
        """The credentials of the run with that secret.

        ValueError for anything but 128 bits; InfrastructureError where this libzmq has no CURVE.
        """
        raw = bytes.fromhex(secret)
        if len(raw) != SECRET_BYTES:
            raise ValueError(f"the secret of a run has {SECRET_BYTES} bytes, not {len(raw)}")
        if not zmq.has("curve"):
            raise InfrastructureError("this libzmq was built without CURVE; the wheels of pyzmq have it")
        password = _derived(raw, b"password")[:SECRET_BYTES].hex().encode()
        return cls(password, _key_pair(raw, b"host"), _key_pair(raw, b"client"), security == "curve")

    def ask(self, socket: zmq.Socket[bytes], *, encrypted: bool) -> None:
        """Make a socket that binds ask for the secret, and have its context answer whom to admit."""
        socket.setsockopt(zmq.ZAP_DOMAIN, USER)
        socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)  # nobody is admitted while nobody answers
        if encrypted:
            socket.setsockopt(zmq.CURVE_SERVER, 1)
            socket.setsockopt(zmq.CURVE_SECRETKEY, self.host.private)
        else:
            socket.setsockopt(zmq.PLAIN_SERVER, 1)
        self._answer_in(socket.context)

    def show(self, socket: zmq.Socket[bytes], *, encrypted: bool) -> None:
        """Make a socket that connects show that it has the secret; if `encrypted`, only to one that has it, too."""
        if encrypted:
            socket.setsockopt(zmq.CURVE_SERVERKEY, self.host.public)
            socket.setsockopt(zmq.CURVE_PUBLICKEY, self.client.public)
            socket.setsockopt(zmq.CURVE_SECRETKEY, self.client.private)
        else:
            socket.setsockopt(zmq.PLAIN_USERNAME, USER)
            socket.setsockopt(zmq.PLAIN_PASSWORD, self.password)

    def admits(self, mechanism: bytes, shown: Sequence[bytes]) -> bool:
        """Whether a peer has the secret, by what ZAP says that it has shown: user and password, or its public key."""
        match mechanism, *shown:
            case [b"PLAIN", user, password]:
                return user == USER and hmac.compare_digest(password, self.password)
            case [b"CURVE", public]:
                return hmac.compare_digest(public, z85.decode(self.client.public))
        return False

    def _answer_in(self, context: zmq.Context[zmq.Socket[bytes]]) -> None:
        """Answer the sockets of a context, in a thread that ends with it, unless one does already."""
        shadow: zmq.Context[zmq.Socket[bytes]] = zmq.Context.shadow(context)
        handler = shadow.socket(zmq.REP)  # of a shadow, so that the context leaves it to the thread to close it
        handler.setsockopt(zmq.LINGER, 0)
        try:
            handler.bind(ZAP)
        except zmq.ZMQError as error:
            handler.close()
            if error.errno != zmq.EADDRINUSE:
                raise
            return
        threading.Thread(target=self._answer, args=(handler,), name="admission", daemon=True).start()

    def _answer(self, handler: zmq.Socket[bytes]) -> None:
        with handler:
            while True:
                try:
                    version, request, _domain, _address, _identity, mechanism, *shown = handler.recv_multipart()
                    answer = ADMITTED if self.admits(mechanism, shown) else REFUSED
                    handler.send_multipart([version, request, *answer])
                except zmq.ContextTerminated:
                    return


def _derived(secret: bytes, purpose: bytes) -> bytes:
    """32 bytes for that purpose alone: BLAKE2b (RFC 7693) of the purpose, with the secret as its key."""
    return hashlib.blake2b(purpose, key=secret, digest_size=32).digest()


def _key_pair(secret: bytes, purpose: bytes) -> KeyPair:
    private = z85.encode(_derived(secret, purpose))
    return KeyPair(zmq.curve_public(private), private)
