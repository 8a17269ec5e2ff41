"""Strangers at every socket of a live run, whatever its runtime; and what the run looks like that goes on among them.

A trial is attacked at its three kinds of sockets: data, the server's for the evaluator, management. What hearts were
told, the journal, its accounts and the server's memory show what came of it.
"""

import contextlib
import random
import socket
from collections.abc import Callable, Iterator
from typing import NamedTuple

import psutil
import zmq
from raw_zmtp import (
    OLD_GREETINGS,
    at_random,
    closes,
    command,
    connected,
    frame,
    greeting,
    is_ended,
    no_mechanism,
    plain_hello,
    unfinished,
)
from staged_trial import StagedTrial
from waiting import until

from edgebed.core import records
from edgebed.core.package import fingerprint
from edgebed.journal.journal import read_journal
from edgebed.journal.series import Series
from edgebed.runtimes.live.authentication import Credentials, new_secret
from edgebed.runtimes.live.sockets import data_socket, management_socket
from edgebed.wire import frames as codec
from edgebed.wire import messages

SCENARIO = """
name: strangers
question: Does a run go on among strangers?
task: { data: digits, model: small, batch_size: 10 }
method: asgd
fleet: { edge: { count: 2, waiting: 20ms } }
evaluation: { every: 1000 updates }
stop: { time: 10m }
"""
RANDOM_PEERS = 100  # at each socket
GROWTH_MAX = 20_000_000  # bytes
HELD = 8
"""Connections to each socket that stop at the same place."""
HALF = 200_000
"""Bytes of half a frame that a socket would take."""
FLOOD_MAX = 200_000_000
HELLO = codec.encode(messages.Hello(sender="edge-0", pid=1, code=fingerprint()))[0]


class SocketLimits(NamedTuple):
    """A socket that binds, as a stranger sees it."""

    address: str
    opened: Callable[..., zmq.Socket[bytes]]
    """What opens sockets of this kind."""
    mechanism: bytes


def check(stage: StagedTrial, series: Series) -> None:
    """Check that what strangers did was counted, and did nothing else."""
    assert series.outcome == "interrupted"  # by the test, when it was done
    assert series.server.refused["duplicate"] == 1  # the last of all, who has the secret
    assert series.server.refused.keys() <= {"duplicate", "finished"}  # a push may come when all is over
    assert not [text for _, _, text in series.notes if "refused" in text]
    assert {node.state for _, node in series.nodes}.isdisjoint({"died", "unresponsive"})
    assert series.accounting.closes, series.accounting.problems
    said = [record for _, _, record in read_journal(stage.folder.journal)]
    dropped = [record.reason for record in said if isinstance(record, records.Dropped)]  # halves of frames
    dropped = [reason for reason in dropped if not reason.endswith("the peer is gone")]  # at the end, all at a time
    assert all("without the end of a message" in reason for reason in dropped)
    counted = [record for record in said if isinstance(record, records.Unauthenticated)]
    for network, least in (("data", 20), ("management", 40)):  # the server's two sockets and the controller's
        assert sum(record.count for record in counted if record.socket == network) >= least
    assert len(counted) < sum(record.count for record in counted) / 3


def attack(stage: StagedTrial) -> None:
    """All attacks in the middle of training, and at last the end of the run."""
    try:
        goes_on(stage)
        pids, ready = dict(stage.launcher.pids), stage.heart.members["server"].ready
        doors = (
            SocketLimits(ready.data_address, data_socket, b"PLAIN"),
            SocketLimits(ready.management_address, data_socket, b"PLAIN"),
            SocketLimits(stage.launcher.address, management_socket, b"CURVE"),
        )
        server = psutil.Process(pids["server"])
        before = server.memory_info().rss
        with contextlib.ExitStack() as stack:
            held = [each for door in doors for each in hold(stack, door)]
            for door in doors:
                for parts in shapeless():
                    assert closes(door.address, *parts), (door, parts)
                assert flood(door) < FLOOD_MAX
                pretend(door, stage.heart.members["edge-0"].peer)
                draw_at_random(door)
            assert server.memory_info().rss - before < GROWTH_MAX
            assert all(map(is_ended, held)), "half a handshake is held open"
        claim_a_name(ready.data_address, stage.launcher.credentials)
        goes_on(stage)
        assert server.memory_info().rss - before < GROWTH_MAX
        assert stage.launcher.pids == pids
        for pid in pids.values():
            process = psutil.Process(pid)
            told = {} if stage.launcher.by_environment else process.environ()
            assert stage.launcher.secret not in str((process.cmdline(), told))
    finally:
        stage.controller.interruptions = 1


def goes_on(stage: StagedTrial) -> None:
    """Wait until every worker has had some more updates applied."""
    since = len(list(read_journal(stage.folder.journal)))

    def all_do() -> bool:
        new = list(read_journal(stage.folder.journal))[since:]
        return {record.worker for _, _, record in new if isinstance(record, records.Update)} == {"edge-0", "edge-1"}

    until(all_do, "updates")


def shapeless() -> Iterator[tuple[bytes, ...]]:
    """What is no handshake, or one that shows nothing; with a message behind it."""
    draws = random.Random(1)
    message = frame(HELLO)
    yield draws.randbytes(100), message
    yield b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", message
    for old in OLD_GREETINGS.values():
        yield old, message
    yield greeting(b"NULL"), no_mechanism(), message
    yield greeting(b"PLAIN"), plain_hello(b"edgebed", b"guessed"), message
    yield greeting(b"PLAIN"), plain_hello(b"edgebed", b""), command(b"INITIATE"), message
    yield greeting(b"PLAIN"), command(b"INITIATE"), message
    yield greeting(b"PLAIN"), message
    yield greeting(b"CURVE"), command(b"HELLO", draws.randbytes(194)), message
    yield greeting(b"CURVE"), message
    yield greeting(b"PLAIN"), unfinished(2**30, 100)
    yield greeting(b"CURVE"), unfinished(2**30, 100)


def hold(stack: contextlib.ExitStack, door: SocketLimits) -> Iterator[socket.socket]:
    """Connections that say nothing, or stop in the middle: of a greeting, of the handshake, of a command of it."""
    whole = greeting(door.mechanism)
    for said in (b"", whole[:20], whole, whole + unfinished(2 * HALF, HALF)):
        for _ in range(HELD):
            each = stack.enter_context(connected(door.address, timeout_s=30.0))
            with contextlib.suppress(ConnectionError):  # the other end may be quicker, and close before all is said
                each.sendall(said)
            yield each


def flood(door: SocketLimits) -> int:
    """Send one message without an end, after a handshake that shows nothing; return how many bytes were taken."""
    part, taken = frame(bytes(1_000_000), more=True), 0
    with contextlib.suppress(OSError), connected(door.address) as connection:
        connection.sendall(greeting(b"NULL") + no_mechanism())
        while taken < FLOOD_MAX:
            taken += connection.send(part)
    return taken


def pretend(door: SocketLimits, identity: str) -> None:
    """Come as a worker: by its identity, but without the secret or with another one."""
    with zmq.Context() as context:
        for others in (None, Credentials.of(new_secret())):
            kind = door.opened(context, zmq.DEALER, others) if others else context.socket(zmq.DEALER)
            with kind as client:
                client.linger = 0
                client.setsockopt(zmq.IDENTITY, identity.encode())
                client.setsockopt(zmq.IMMEDIATE, 1)
                client.connect(door.address)
                assert not client.poll(200, zmq.POLLOUT), "somebody else is let in"


def draw_at_random(door: SocketLimits) -> None:
    """Frames and commands of every form, filled by chance."""
    draws = random.Random(2)
    for _ in range(RANDOM_PEERS):
        with contextlib.suppress(OSError), connected(door.address) as connection:
            for part in at_random(draws):
                connection.sendall(part)


def claim_a_name(address: str, credentials: Credentials) -> None:
    """Come with the secret, and with what another worker's identity may be: it keeps its connection and its place."""
    with zmq.Context() as context, data_socket(context, zmq.DEALER, credentials, "edge-0~1") as client:
        client.connect(address)
        client.send_multipart(codec.encode(messages.Join(sender="edge-0", incarnation=1)))
        assert client.poll(10_000)
        answer, _ = codec.decode(client.recv_multipart(), "data")
        assert answer.code == "duplicate"
