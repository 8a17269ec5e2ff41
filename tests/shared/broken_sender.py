"""Sends broken messages to a socket of a live run, from a process of its own.

    python broken_sender.py ADDRESS data|management COUNT SEED     the run's secret comes over standard input

It has the secret, and what it sends first is what the nodes of a run send. Every thousand messages it comes under
another identity, most of them such as nodes have. In the end it asks something that is answered, and waits until no
answer comes any more: then all before has been read. What it prints is the number of answers, and the time it took.
"""

import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import zmq
from broken_messages import mutate
from example_messages import example_messages

from edgebed.core.package import fingerprint
from edgebed.runtimes.live.authentication import Credentials, node_of
from edgebed.runtimes.live.sockets import data_socket, management_socket
from edgebed.wire import frames as codec
from edgebed.wire import messages
from edgebed.wire.errors import RemoteWireError

SOCKETS: dict[str, Callable[..., Any]] = {"data": data_socket, "management": management_socket}
A_CONNECTION = 1_000
"""Messages over one connection."""
IDENTITIES = ("edge-0~1", "edge-1~0123456789abcdef", "edge-0", "server~", "evaluator~", "controller", "x" * 200)
"""Beginnings of identities, which a number follows; where there is no tilde, nothing of it is read."""
ANSWER_S = 60.0
SILENCE_MS = 500
SIZE_MAX = 10_000  # of a message: it is not about the wire's speed


def last_words(network: str, node: str) -> messages.AnyMessage:
    """What is answered for sure: with the model, or as a second hello of that node."""
    if network == "data":
        return messages.Pull(sender=node, at_version=0)
    return messages.Hello(sender=node, pid=1, code=fingerprint())


def broken(network: str, count: int, seed: int) -> Iterator[list[bytes]]:
    """So many messages, most of them such as a socket of this network reads, before something in them is changed."""
    rng = random.Random(seed)
    all_of = [
        (message, [bytes(each) for each in codec.encode(message, frames)]) for message, frames in example_messages()
    ]
    valid = [frames for _, frames in all_of if sum(map(len, frames)) < SIZE_MAX]
    kinds = messages.DATA if network == "data" else messages.MANAGEMENT
    own = [frames for message, frames in all_of if isinstance(message, kinds) and frames in valid]
    for _ in range(count):
        while is_believed(changed := mutate(rng, rng.choice(own if rng.random() < 0.8 else valid), valid)):
            pass
        yield changed or [b""]


def is_believed(frames: list[bytes]) -> bool:
    """Whether a message is a whole and proper join or push: whoever has the secret is believed its name.

    A join takes the place of the worker that has the name; a refused push is in the journal as one of that worker's.
    """
    try:
        return isinstance(codec.decode(frames, "data")[0], messages.Join | messages.Push)
    except RemoteWireError:
        return False


def send_all(address: str, network: str, count: int, seed: int, credentials: Credentials) -> int:
    """Send them; return how many answers came."""
    answers, left = 0, broken(network, count, seed)
    with zmq.Context() as context:
        for k in range(-(-count // A_CONNECTION)):
            identity = f"{IDENTITIES[k % len(IDENTITIES)]}{seed}-{k}"
            with SOCKETS[network](context, zmq.DEALER, credentials, identity) as client:
                client.connect(address)
                for _, frames in zip(range(A_CONNECTION), left, strict=False):
                    answers += sent(client, frames)
                answers += until_answered(client, network, node_of(identity)) if node_of(identity) else 0
    return answers


def until_answered(client: Any, network: str, node: str) -> int:
    """Ask, again where no answer comes, and read until there is silence: a router drops answers to who reads slowly."""
    answers, end_s = 0, time.monotonic() + ANSWER_S
    while time.monotonic() < end_s:
        answers += sent(client, codec.encode(last_words(network, node)))
        before = answers
        while client.poll(SILENCE_MS):
            client.recv_multipart()
            answers += 1
        if answers > before:
            return answers
    sys.exit(f"no answer to {node} for {ANSWER_S:g} s")


def sent(client: Any, frames: Any) -> int:
    """Send a message as soon as it is taken; return how many answers were read meanwhile."""
    answers = 0
    while True:
        events = client.poll(int(1000 * ANSWER_S), zmq.POLLIN | zmq.POLLOUT)
        if events & zmq.POLLIN:
            client.recv_multipart()
            answers += 1
        elif events & zmq.POLLOUT:
            client.send_multipart(frames)
            return answers
        else:
            sys.exit(f"nothing was taken for {ANSWER_S:g} s")


if __name__ == "__main__":
    where, which, how_many, number = sys.argv[1:]
    began_s = time.monotonic()
    came = send_all(where, which, int(how_many), int(number), Credentials.of(sys.stdin.readline().strip()))
    print(came, f"{time.monotonic() - began_s:.3f}")
